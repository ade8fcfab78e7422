"""What the documents of a project are looked up for: installing it, running its tests, contributing, its last changes.

"What does this project do?" and "How do I run the tests?" share neither words nor meaning with the passages that answer
them, which name the project and its commands. So these passages are named by what readers look for there; their body
vectors still hold what they say.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from ragpilot.ingest.chunkers.labels import BREADCRUMB, unnumbered
from ragpilot.ingest.chunkers.spans import Span

OVERVIEW = "readme: overview of this repository: what this project is, what it does, what it is for"
INSTALL = "how to install this project, set it up, get started"
USE = "usage: how do I run this, start it, use it"
TEST = "testing: how to run the tests, the test suite of this project"
BUILD = "how to build this software, compile it from source"
DOCUMENT = "how to build the documentation"
LINT = "how to lint and format the code"
DEPLOY = "how to deploy this project"
CONTRIBUTE = "contributing: how to contribute to this project, report bugs and send pull requests"
CHANGES = "changelog: what is new in the latest version, what changed in the last release"
CHECKS = "continuous integration: how ci is set up, what runs on each commit and pull request"
SECURITY = "security policy: how to report a security issue, a vulnerability of this project"
DEPENDENCIES = "dependencies: what this project depends on, which packages and libraries it needs"
PEOPLE = "authors and maintainers: who wrote this project, who maintains it, whom to contact"
EXAMPLES = "examples: where examples of this project are"

_MOST = 3
"""Spans of one document that are named for one purpose; what follows is about details."""
_ADORNMENT = re.compile(r"^[\W\d_]+|[\W_]+$")


@dataclass(frozen=True, slots=True)
class _Purpose:
    header: str
    file: re.Pattern[str]
    """Of the whole path."""
    heading: re.Pattern[str] | None = None
    """Of the last heading or the symbol; None: what the document begins with."""
    opening: bool = False
    """Whether a beginning ends where the second heading stands."""


def _file(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_TEXT = r"(?:\.(?:md|markdown|mdx|rst|adoc|asciidoc|txt))?"
_DOCS = (
    r"(?:\.github/|docs?/(?:(?:about|community|contribut\w+|dev|develop\w+|getting[-_]?started|guides?|intro\w*|project"
    r"|user|usage)/)?)?"
)
_GUIDES = _file(
    rf"{_DOCS}(?:readme|index|contribut\w+|develop\w*|hacking|install\w*|building|usage|test(?:s|ing)|set-?up"
    rf"|(?:getting|get)[-_]?started|quick[-_]?start){_TEXT}"
)
_OWN = _file(rf"{_DOCS}(?:readme|contribut\w+|develop\w*|hacking|test(?:s|ing)){_TEXT}")
"""Documents on work on the project itself, where a section on tests is on its own."""
_MANIFESTS = _file(r"(?:package|composer)\.json|cargo\.toml|pyproject\.toml|pipfile|setup\.cfg|pom\.xml")

_PURPOSES = (
    _Purpose(OVERVIEW, _file(rf"readme{_TEXT}"), opening=True),
    _Purpose(INSTALL, _file(rf"{_DOCS}(?:install(?:ation|ing)?|(?:getting|get)[-_]?started|quick[-_]?start){_TEXT}")),
    _Purpose(
        INSTALL,
        _GUIDES,
        _file(
            r"(?:how to )?install(?:ing|ation)?\b.{0,30}|get(?:ting)? started|quick ?-?start"
            r"|(?:development |local |environment |project )*set(?:ting)? ?-?up"
            r"(?: (?:an? |the |your |local |development |dev )*(?:environment|project|repository|locally))?"
        ),
    ),
    _Purpose(USE, _GUIDES, _file(r"(?:basic )?usage|(?:how to )?(?:run|use|start)(?: it)?|running(?: it| locally)?")),
    _Purpose(
        TEST, _OWN, _file(r"tests?|testing|(?:how to )?(?:run|running) (?:the |all |unit )*tests?\b.{0,20}|test suite")
    ),
    _Purpose(TEST, _GUIDES, _file(r"(?:how to )?(?:run|running) (?:the |all |unit )*tests?\b.{0,20}")),
    _Purpose(BUILD, _GUIDES, _file(r"(?:how to )?(?:build|building|compil(?:e|ing))(?: from source| it)?")),
    _Purpose(BUILD, _file(rf"{_DOCS}build(?:ing)?{_TEXT}")),
    _Purpose(CONTRIBUTE, _file(rf"{_DOCS}contribut(?:ing|e|ion){_TEXT}")),
    _Purpose(CONTRIBUTE, _GUIDES, _file(r"(?:how to )?contribut(?:e|ing|ions?)")),
    _Purpose(CHANGES, _file(rf"(?:docs?/)?(?:changelog|changes|history|news|release[-_]?notes|releases){_TEXT}")),
    _Purpose(
        CHECKS,
        _file(
            r"\.github/workflows/[^/]+\.ya?ml|\.gitlab-ci\.yml|\.travis\.yml|\.?appveyor\.yml|azure-pipelines\.yml"
            r"|\.circleci/config\.yml|jenkinsfile|\.woodpecker\.ya?ml|\.drone\.yml|bitbucket-pipelines\.yml"
        ),
    ),
    _Purpose(SECURITY, _file(rf"{_DOCS}security{_TEXT}")),
    _Purpose(DEPENDENCIES, _MANIFESTS, _file(r"(?:[\w.-]*\.)?(?:dev-?)?dependenc(?:y|ies)(?:-groups)?|require")),
    _Purpose(DEPENDENCIES, _file(r"requirements\.txt|go\.mod|gemfile")),
    _Purpose(PEOPLE, _file(rf"(?:\.github/|docs/)?(?:maintainers|authors|contributors|codeowners){_TEXT}")),
    _Purpose(EXAMPLES, _file(rf"_?examples?/readme{_TEXT}")),
)

_RUNNERS = {"makefile": "make", "gnumakefile": "make", "justfile": "just"}
_TARGETS = {
    **dict.fromkeys(("test", "tests", "check", "unit-test", "unittest"), TEST.partition(": ")[2]),
    **dict.fromkeys(("build", "compile"), BUILD),
    **dict.fromkeys(("install", "setup", "bootstrap"), INSTALL),
    **dict.fromkeys(("run", "start", "serve", "dev"), USE.partition(": ")[2]),
    **dict.fromkeys(("doc", "docs"), DOCUMENT),
    **dict.fromkeys(("lint", "format", "fmt"), LINT),
    "deploy": DEPLOY,
}


def name_purposes(path: str, spans: list[Span]) -> list[Span]:
    """The spans of a document; those that one looks up for a purpose have it as their header.

    Only documents of the project as a whole have such spans: those in its outermost folder, its documentation and the
    settings of its forge. At most the first three spans of a document are named for one purpose.
    """
    if not spans:
        return spans
    runner = _RUNNERS.get(path.lower())
    if runner:
        return [_target(runner, span) for span in spans]
    named = list(spans)
    for purpose in _PURPOSES:
        if purpose.file.fullmatch(path):
            for at in list(_places(purpose, spans))[:_MOST]:
                named[at] = replace(spans[at], header=purpose.header)
    return named


def _places(purpose: _Purpose, spans: list[Span]) -> Iterable[int]:
    if purpose.opening:
        first = unnumbered(spans[0].title)
        return (at for at, span in enumerate(spans) if unnumbered(span.title) == first)
    return (at for at, span in enumerate(spans) if purpose.heading is None or purpose.heading.fullmatch(_heading(span)))


def _heading(span: Span) -> str:
    return span.symbol or _ADORNMENT.sub("", unnumbered(span.title).split(BREADCRUMB)[-1])


def _target(runner: str, span: Span) -> Span:
    if not span.symbol:
        return span
    return replace(span, header=f"{runner} {span.symbol}: {_TARGETS.get(span.symbol.lower(), span.header)}")
