"""What the documents of a project are looked up for: installing it, running its tests, contributing, its last changes.

Their passages are named by what readers look for there (``ragpilot.project_questions``); their body vectors still hold
what they say.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import groupby

from ragpilot.ingest.chunkers.labels import BREADCRUMB, unnumbered
from ragpilot.ingest.chunkers.spans import Span
from ragpilot.project_questions import (
    BUILD,
    CHANGES,
    CHECKS,
    CONTRIBUTE,
    DEPENDENCIES,
    DEPLOY,
    DOCUMENT,
    EXAMPLES,
    HELP,
    INSTALL,
    LICENSE,
    LINT,
    OVERVIEW,
    PEOPLE,
    REQUIREMENTS,
    SECURITY,
    TEST,
    USE,
)

_MOST = 3
"""Spans of one document that are named for one purpose; what follows is about details."""
_ADORNMENT = re.compile(r"^(?::\w+:|[\W\d_])+|[\W_]+$")


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
    _Purpose(INSTALL, _file(rf"{_DOCS}(?:install(?:ation|ing)?|(?:getting|get)[-_]?started|quick[-_]?start){_TEXT}")),
    _Purpose(
        INSTALL,
        _GUIDES,
        _file(
            r"(?:how to )?install(?:ing|ation)?\b.{0,40}|get(?:ting)? started|quick ?-?start"
            r"|adding .+ as a dependency|downloads?"
            r"|(?:development |local |environment |project )*set(?:ting)? ?-?up"
            r"(?: (?:an? |the |your |local |development |dev )*(?:environment|project|repository|locally))?"
        ),
    ),
    _Purpose(
        REQUIREMENTS,
        _GUIDES,
        _file(
            r"(?:system )?requirements|prerequisites|(?:minimum )?(?:supported )?(?:\w+ )?(?:versions?|platforms)"
            r"(?: (?:support|policy|guidance))?"
        ),
    ),
    _Purpose(USE, _GUIDES, _file(r"(?:basic )?usage|(?:how to )?(?:run|use|start)(?: it)?|running(?: it| locally)?")),
    _Purpose(
        TEST, _OWN, _file(r"tests?|testing|(?:how to )?(?:run|running) (?:the |all |unit )*tests?\b.{0,20}|test suite")
    ),
    _Purpose(TEST, _GUIDES, _file(r"(?:how to )?(?:run|running) (?:the |all |unit )*tests?\b.{0,20}")),
    _Purpose(BUILD, _GUIDES, _file(r"(?:how to )?(?:build|building|compil(?:e|ing))(?: from source| it)?")),
    _Purpose(BUILD, _file(rf"{_DOCS}build(?:ing)?{_TEXT}|build\.(?:sh|ps1|cmd|bat)")),
    _Purpose(CONTRIBUTE, _file(rf"{_DOCS}contribut(?:ing|e|ion){_TEXT}")),
    _Purpose(CONTRIBUTE, _GUIDES, _file(r"(?:how to )?contribut(?:e|ing|ions?)(?: to .+)?")),
    _Purpose(CHANGES, _file(rf"(?:docs?/)?(?:changelog|changes|history|news|release[-_]?notes|releases){_TEXT}")),
    _Purpose(
        CHECKS,
        _file(
            r"\.github/workflows/[^/]+\.ya?ml|\.gitlab-ci\.yml|\.travis\.yml|\.?appveyor\.yml|azure-pipelines\.yml"
            r"|\.circleci/config\.yml|jenkinsfile|\.woodpecker\.ya?ml|\.drone\.yml|bitbucket-pipelines\.yml"
        ),
    ),
    _Purpose(SECURITY, _file(rf"{_DOCS}security{_TEXT}")),
    _Purpose(
        SECURITY,
        _GUIDES,
        _file(
            r"(?:reporting )?(?:an? )?(?:security|vulnerabilit(?:y|ies))"
            r"(?: (?:issues?|policy|reports?|reporting|bugs))?"
        ),
    ),
    _Purpose(DEPENDENCIES, _MANIFESTS, _file(r"(?:[\w.-]*\.)?(?:dev-?)?dependenc(?:y|ies)(?:-groups)?|require")),
    _Purpose(DEPENDENCIES, _file(r"requirements\.txt|go\.mod|gemfile")),
    _Purpose(PEOPLE, _file(rf"(?:\.github/|docs/)?(?:maintainers|authors|contributors|codeowners){_TEXT}")),
    _Purpose(PEOPLE, _MANIFESTS, _file(r"(?:[\w.-]*\.)?(?:authors?|maintainers|contributors|developers)")),
    _Purpose(
        PEOPLE, _GUIDES, _file(r"(?:authors?|credits|maintainers?|contributors|(?:\w+ )*team(?: members)?|contact)")
    ),
    _Purpose(LICENSE, _file(r"(?:un)?licen[cs]e(?:[-.]\w+)?|copying")),
    _Purpose(LICENSE, _GUIDES, _file(r"(?:copyright (?:and|&) )?licen[cs](?:e|ing)(?: information)?")),
    _Purpose(
        HELP, _GUIDES, _file(r"(?:get(?:ting)? )?help(?: (?:and|&) docs)?|(?:asking )?questions|(?:\w+ \W )?community")
    ),
    _Purpose(HELP, _GUIDES, _file(r"(?:community )?support|doc(?:umentation|s)|documentation quick links")),
    _Purpose(EXAMPLES, _file(rf"_?examples?/readme{_TEXT}")),
    _Purpose(EXAMPLES, _GUIDES, _file(r"(?:an? )?(?:(?:basic|quick|simple|usage) )*examples?")),
    _Purpose(
        OVERVIEW, _file(rf"readme{_TEXT}"), _file(r"overview|introduction|about|what is \S+|why (?:should i )?use .+")
    ),
    _Purpose(OVERVIEW, _file(rf"readme{_TEXT}"), opening=True),
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
        return _opening([unnumbered(span.title) for span in spans])
    return (at for at, span in enumerate(spans) if purpose.heading is None or purpose.heading.fullmatch(_heading(span)))


def _opening(titles: list[str]) -> Iterable[int]:
    """What stands before the second heading, or before the first sections, where only a logo stands before the first.

    Of a document that begins with a section, only its first piece.
    """
    if BREADCRUMB in titles[0]:
        return range(1)
    chapters = [(title, len(list(same))) for title, same in groupby(titles)]
    (_, count), *others = chapters
    if len(others) > 1 and all(title.startswith(others[0][0] + BREADCRUMB) for title, _ in others[1:]):
        count += others[0][1]
    return range(count)


def _heading(span: Span) -> str:
    return span.symbol or _ADORNMENT.sub("", unnumbered(span.title).split(BREADCRUMB)[-1])


def _target(runner: str, span: Span) -> Span:
    if not span.symbol:
        return span
    return replace(span, header=f"{runner} {span.symbol}: {_TARGETS.get(span.symbol.lower(), span.header)}")
