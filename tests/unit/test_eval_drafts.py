from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ragpilot import cli_eval
from ragpilot.config import Environment, Settings
from ragpilot.evaluation.drafts import draft
from ragpilot.evaluation.questions import load_questions
from ragpilot.ingest.chunkers import chunk_text
from ragpilot.types import Chunk, Vector
from tests.builders import chunk
from tests.fakes import FakeEmbedder

ENGINE = '''"""Everything about engines."""


def start_engine(fuel, spark, choke, throttle):
    """Start the cold engine of a parked car. It may take a while."""
    return fuel, spark, choke, throttle
'''
UNDOCUMENTED = """def brew(beans, water, heat, pressure):
    kettle = heat(water)
    return pressure(beans, kettle)
"""


class NoEmbedder(FakeEmbedder):
    """Fails whoever embeds."""

    async def embed_documents(self, texts: object) -> list[Vector]:
        raise AssertionError(texts)


def chunks(path: str, text: str, source_type: str) -> list[Chunk]:
    return [
        replace(
            chunk(path, span.text, symbol=span.symbol, header=span.header, source_type=source_type),
            title=span.title,
            start_line=span.start_line,
        )
        for span in chunk_text(path, text, source_type)
    ]


def drafted(path: str, text: str, source_type: str) -> list[str]:
    return [row["query"] for row in draft(chunks(path, text, source_type))]


@pytest.mark.parametrize(
    ("path", "text", "source_type", "queries"),
    [
        ("car/engine.py", ENGINE, "code-python", ["Start the cold engine of a parked car"]),
        ("car/coffee.py", UNDOCUMENTED, "code-python", []),
        ("tests/test_engine.py", ENGINE, "code-python", []),
        ("car/checks.py", ENGINE.replace("start_engine", "test_start"), "code-python", []),
        ("a.go", "package a\n\n// Open returns a `Reader` of the\n// file that is named.\nfunc Open(name string) {}\n",
         "code-go", ["Open returns a Reader of the file that is named"]),
        ("a.rs", "/// Doubles a number without overflow.\nfn double(n: u8) -> u8 { n * 2 }\n", "code-rust",
         ["Doubles a number without overflow"]),
        ("b.py", 'x = 1\n\n\ndef f(a):\n    """Gives ``a`` (or `None`), *always* quickly."""\n', "code-python",
         ["Gives a (or None), always quickly"]),
        ("A.java", "class A {\n/**\n * Sends the mail to all {@link User}.\n */\nvoid send(int all) { go(all); }\n}\n",
         "code-java", ["Sends the mail to all User"]),
        (".github/workflows/ci.yml", "name: Continuous integration\njobs: {test: {runs-on: x}}\n", "config", []),
        ("LICENSE", "# The licence of this software\n\nPermission is hereby granted to everyone.\n", "docs-text", []),
        ("LICENSE.md", "# The licence of this software\n\nPermission is hereby granted to all.\n", "docs-markdown", []),
        ("CHANGELOG.md", "# All that has changed here\n\nA whole lot, and for the better.\n", "docs-markdown", []),
        ("notes.txt", "Some words without any heading at all, and more of them.\n", "docs-text", []),
        ("guide.md", "# Guide\n\n## How to install it on Linux\n\nUnpack the archive, then run the program.\n",
         "docs-markdown", ["How to install it on Linux"]),
        ("guide.md", "# The guide\n\n## For Linux\n\nUnpack the archive, then run the program.\n",
         "docs-markdown", ["The guide For Linux"]),
        ("guide.md", "# Usage\n\nUnpack the archive, then run the program.\n", "docs-markdown", []),
    ],
)  # fmt: skip
def test_drafts_ask_in_the_words_of_doc_comments_and_headings(
    path: str, text: str, source_type: str, queries: list[str]
) -> None:
    assert drafted(path, text, source_type) == queries


def test_a_draft_takes_one_question_a_document_evenly() -> None:
    everything = [piece for n in range(90) for piece in chunks(f"p{n:02}.py", ENGINE * 2, "code-python")]
    rows = draft(everything, most=30)
    assert [row["relevant"][0]["path"] for row in rows] == [f"p{n:02}.py" for n in range(0, 90, 3)]


def environment(base: Path) -> Environment:
    return Environment(settings=Settings(), state=base / "state", directory=base)


@pytest.mark.asyncio
async def test_a_draft_is_a_set_that_can_be_run_and_embeds_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "tree"
    root.mkdir()
    (root / "engine.py").write_text(ENGINE)
    (root / "coffee.py").write_text(UNDOCUMENTED)
    for _ in range(2):
        assert await cli_eval.run_make(environment(tmp_path), root, embedder=NoEmbedder()) == 0
        printed, told = capsys.readouterr()
        (tmp_path / "draft.jsonl").write_text(printed, encoding="utf-8")
        (question,) = load_questions(tmp_path / "draft.jsonl")
        assert (question.query, question.labels[0].path) == ("Start the cold engine of a parked car", "engine.py")
        assert 'add what these files do not answer, one a line and without "relevant":' in told
        # A run of the set embeds bodies; the next draft is the same.
        run = cli_eval.run_eval(environment(tmp_path), tmp_path / "draft.jsonl", root, embedder=FakeEmbedder())
        assert await run == 0
        capsys.readouterr()


@pytest.mark.asyncio
async def test_an_empty_draft_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = tmp_path / "tree"
    root.mkdir()
    (root / "coffee.py").write_text(UNDOCUMENTED)
    assert await cli_eval.run_make(environment(tmp_path), root, embedder=NoEmbedder()) == 1
    printed, told = capsys.readouterr()
    assert printed == ""
    assert f"No question could be drafted from {root}: of its 1 chunk, none is a symbol with a doc comment" in told
