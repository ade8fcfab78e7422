from __future__ import annotations

import numpy as np
import pytest

from ragpilot import project_questions
from ragpilot.adapters.minilm import MiniLmEmbedder
from ragpilot.ingest.chunkers import chunk_text
from ragpilot.project_questions import OVERVIEW

README = "# Kestrel\n\nKestrel moves parcels between depots.\n\n## Use\n\nCall `kestrel send`.\n"


def test_the_opening_of_the_outermost_readme_is_named_by_what_readers_look_for_there() -> None:
    spans = chunk_text("README.md", README, "docs-markdown")
    assert [(span.title, span.header == OVERVIEW) for span in spans] == [("Kestrel", True), ("Kestrel › Use", False)]
    assert spans[0].text == "# Kestrel\n\nKestrel moves parcels between depots."


@pytest.mark.parametrize("path", ["docs/README.md", "docs/guide.md", "READMES.md", "readme_tool.md"])
def test_other_documents_keep_their_headers(path: str) -> None:
    assert all(span.header != OVERVIEW for span in chunk_text(path, README, "docs-markdown"))


def test_a_long_opening_is_named_so_in_its_first_pieces() -> None:
    text = "# Kestrel\n\n" + "\n\n".join(f"Depot {number} sends parcels to all others. " * 18 for number in range(6))
    spans = chunk_text("README", text, "docs-text")
    assert len(spans) > 4
    assert [span.header == OVERVIEW for span in spans] == [True] * 3 + [False] * (len(spans) - 3)


def test_the_first_heading_below_a_logo_belongs_to_the_opening() -> None:
    text = "<img src='logo.png' alt='a kestrel with a parcel'>\n\n" + README
    found = [(span.title, span.header == OVERVIEW) for span in chunk_text("README.md", text, "docs-markdown")]
    assert found == [("README.md", True), ("Kestrel", True), ("Kestrel › Use", False)]
    chapters = "\n\n".join(
        [
            "A kestrel moves parcels between depots.",
            "# Depots",
            "There are depots " * 3,
            "# Parcels",
            "And parcels " * 4,
        ]
    )
    found = [(span.title, span.header == OVERVIEW) for span in chunk_text("README.md", chapters, "docs-markdown")]
    assert found == [("README.md", True), ("Depots", False), ("Parcels", False)]


def test_of_a_readme_that_begins_with_a_section_the_first_piece_is_its_opening() -> None:
    text = "# Kestrel\n\n## Usage\n\n" + "\n\n".join(f"Depot {at} sends parcels to all. " * 18 for at in range(3))
    headers = [span.header for span in chunk_text("README.md", text, "docs-markdown")]
    assert headers == [OVERVIEW, project_questions.USE, project_questions.USE]


SECTIONS = """# Kestrel

Kestrel moves parcels between all depots.

## 🚀 Installation on Linux

Call `apt install kestrel`.

## 2. Usage

Call `kestrel send parcel`.

## Running the tests

Call `make test` in the root.

## Testing

Testing parcels is done by shaking them.

## Building from source

Call `make all` in the root.

## Contributing

Talk to us first, please.

## Setup and fixtures of parcels

Parcels are set up in depots.
"""


PURPOSES = {value for name, value in vars(project_questions).items() if name.isupper() and isinstance(value, str)}


def headings(path: str, text: str, source_type: str = "docs-markdown") -> dict[str, str]:
    return {span.title.split(" › ")[-1]: span.header for span in chunk_text(path, text, source_type)}


def test_sections_of_the_documents_of_a_project_are_named_by_what_they_are_looked_up_for() -> None:
    found = headings("README.md", SECTIONS)
    assert found.pop("Setup and fixtures of parcels").startswith("readme: kestrel setup and fixtures of parcels")
    assert found == {
        "Kestrel": OVERVIEW,
        "🚀 Installation on Linux": project_questions.INSTALL,
        "2. Usage": project_questions.USE,
        "Running the tests": project_questions.TEST,
        "Testing": project_questions.TEST,
        "Building from source": project_questions.BUILD,
        "Contributing": project_questions.CONTRIBUTE,
    }


@pytest.mark.parametrize(
    ("heading", "header"),
    [
        ("Adding `Kestrel` as a Dependency", project_questions.INSTALL),
        ("Supported Versions", project_questions.REQUIREMENTS),
        ("Python Version", project_questions.REQUIREMENTS),
        ("Prerequisites", project_questions.REQUIREMENTS),
        ("Contributing to the kestrel project", project_questions.CONTRIBUTE),
        ("Security Issues", project_questions.SECURITY),
        ("Vulnerability reporting", project_questions.SECURITY),
        ("License", project_questions.LICENSE),
        ("Copyright and licence", project_questions.LICENSE),
        ("Help and docs", project_questions.HELP),
        ("Docs & Community", project_questions.HELP),
        ("Support", project_questions.HELP),
        ("Current project team members", project_questions.PEOPLE),
        (":wave: Credits", project_questions.PEOPLE),
        ("A Simple Example", project_questions.EXAMPLES),
        ("Why should I use Kestrel?", OVERVIEW),
    ],
)
def test_headings_by_which_such_a_section_is_known(heading: str, header: str) -> None:
    text = f"# Kestrel\n\nKestrel moves parcels between depots.\n\n## {heading}\n\nParcels are moved between depots.\n"
    assert [span.header for span in chunk_text("README.md", text, "docs-markdown")] == [OVERVIEW, header]


def test_elsewhere_a_section_is_about_what_the_document_is_about() -> None:
    assert headings("docs/dev/index.md", SECTIONS)["Running the tests"] == project_questions.TEST
    assert headings("docs/dev/index.md", SECTIONS)["Testing"].startswith("docs dev: kestrel testing")
    for path in ("docs/depots.md", "packages/kestrel/README.md", "docs/tutorial/index.md"):
        assert not set(headings(path, SECTIONS).values()) & PURPOSES


@pytest.mark.parametrize(
    ("path", "source_type", "text", "header"),
    [
        ("docs/user/install.rst", "docs-text", "Kestrel\n=======\n\npip install kestrel\n", project_questions.INSTALL),
        (".github/CONTRIBUTING.md", "docs-markdown", "# Hello\n\nTalk to us first.\n", project_questions.CONTRIBUTE),
        ("CHANGES.rst", "docs-text", "Version 2\n---------\n\nReleased: parcels fly.\n", project_questions.CHANGES),
        ("SECURITY.md", "docs-markdown", "# Holes\n\nWrite to us in private.\n", project_questions.SECURITY),
        ("LICENSE-MIT", "docs-text", "Permission is granted to move parcels.\n", project_questions.LICENSE),
        ("AUTHORS", "docs-text", "Ann Ash\nBob Birch\n", project_questions.PEOPLE),
        (".github/workflows/main.yml", "config", "name: checks\non: push\n", project_questions.CHECKS),
        ("go.mod", "config", "module kestrel\n\nrequire example.com/depot v1.2.3\n", project_questions.DEPENDENCIES),
        ("examples/README.md", "docs-markdown", "# Parcels\n\nSome parcels.\n", project_questions.EXAMPLES),
    ],
)
def test_whole_documents_are_named_in_their_first_spans(path: str, source_type: str, text: str, header: str) -> None:
    assert [span.header for span in chunk_text(path, text, source_type)] == [header]
    nested = [span.header for span in chunk_text(f"vendor/parcel/{path}", text, source_type)]
    assert header not in nested


def test_only_the_first_spans_of_a_long_document_are_named() -> None:
    text = "".join(f"## {number}.0\n\nParcels of version {number} fly higher than before.\n\n" for number in range(9))
    found = [span.header == project_questions.CHANGES for span in chunk_text("CHANGELOG.md", text, "docs-markdown")]
    assert found == [True] * 3 + [False] * 6


def test_dependencies_and_authors_are_found_in_manifests() -> None:
    text = (
        '{\n  "name": "kestrel",\n  "authors": [\n    {"name": "Ann Ash"},\n    {"name": "Bob Birch"}\n  ],\n'
        '  "dependencies": {\n    "depot": "^1.0.0",\n    "parcel": "^2.0.0"\n  }\n}\n'
    )
    found = {span.symbol: span.header for span in chunk_text("package.json", text, "config")}
    assert found["dependencies"] == project_questions.DEPENDENCIES
    assert found["authors"] == project_questions.PEOPLE
    cargo = '[package]\nname = "kestrel"\nversion = "1.0.0"\n\n[dev-dependencies]\ndepot = "1.0"\nparcel = "2.0"\n'
    found = {span.symbol: span.header for span in chunk_text("Cargo.toml", cargo, "config")}
    assert found["dev-dependencies"] == project_questions.DEPENDENCIES


@pytest.mark.parametrize(("path", "runner"), [("Makefile", "make"), ("justfile", "just")])
def test_targets_are_named_by_the_command_that_makes_them(path: str, runner: str) -> None:
    text = "# Ship parcels.\nship: depot\n\tkestrel send --all\n\ntest:\n\tpytest\n"
    found = {span.symbol: span.header for span in chunk_text(path, text, "config")}
    assert found["test"] == f"{runner} test: how to run the tests, the test suite of this project"
    assert found["ship"].startswith(f"{runner} ship: {path.lower()}: ship.")
    assert not any(span.header.startswith(runner + " ") for span in chunk_text("sub/Makefile", text, "config"))


ASKED = {
    project_questions.INSTALL: ["how do I install it?", "how can I set this up locally?", "how do I get started"],
    project_questions.REQUIREMENTS: ["which versions are supported?", "system requirements"],
    project_questions.USE: ["how do I run this?", "how do I use it?"],
    project_questions.TEST: ["how do I run the tests?", "which command runs the tests?"],
    project_questions.BUILD: ["how do I build this?", "how do I compile the project"],
    project_questions.CONTRIBUTE: ["how do I contribute", "where do I send a pull request"],
    project_questions.CHANGES: ["what changed in the last release", "what's new?"],
    project_questions.CHECKS: ["how is CI set up?", "what does the CI run?"],
    project_questions.LICENSE: ["what is the license?", "can I use this commercially?", "is it open source?"],
    project_questions.HELP: ["is there a chat or forum?", "where is the documentation"],
    project_questions.SECURITY: ["how do I report a security issue?", "where do I report vulnerabilities?"],
    project_questions.DEPENDENCIES: ["which dependencies does it have", "which third-party libraries are used?"],
    project_questions.PEOPLE: ["who maintains this project?", "who are the authors"],
    project_questions.EXAMPLES: ["where are the examples", "is there an example?"],
}
OTHERS = [
    "how do I run a marathon",
    "how do I set up a kubernetes cluster",
    "how does the query builder work",
    "how is a request sent?",
    "how does dependency injection work?",
    "who wrote hamlet?",
    "what changed in the tax law",
    "how do we validate tokens?",
    "how do I install solar panels",
    "how do I report a crime",
    "what is the license for driving a truck",
    "where can I get help with my homework",
]


@pytest.mark.asyncio
async def test_what_is_asked_is_near_its_purpose_and_other_questions_are_near_none() -> None:
    embedder = MiniLmEmbedder()
    named = dict(zip(ASKED, await embedder.embed_documents(list(ASKED)), strict=True))
    for purpose, questions in ASKED.items():
        for question in questions:
            vector = await embedder.embed_question(question)
            cosines = {name: float(np.dot(vector, held)) for name, held in named.items()}
            assert max(cosines, key=cosines.__getitem__) == purpose, question
            assert cosines[purpose] > 0.47, question
    for question in OTHERS:
        vector = await embedder.embed_question(question)
        assert max(float(np.dot(vector, held)) for held in named.values()) < 0.43, question
    await embedder.aclose()


@pytest.mark.asyncio
async def test_questions_about_the_project_are_near_and_those_about_other_things_are_not() -> None:
    embedder = MiniLmEmbedder()
    opening, *questions = await embedder.embed_documents(
        [
            OVERVIEW,
            "what does this project do?",
            "what is this repository about",
            "what is this library for?",
            "give me an overview of this codebase",
            "what is the purpose of this repo",
            "why should I use this?",
            "what is this?",
            "how do I get started with painting",
            "what is the capital of france",
            "who manages this building",
        ]
    )
    cosines = [float(np.dot(opening, question)) for question in questions]
    await embedder.aclose()
    assert min(cosines[:5]) > 0.5
    assert min(cosines[5:7]) > 0.4
    assert max(cosines[7:]) < 0.3
