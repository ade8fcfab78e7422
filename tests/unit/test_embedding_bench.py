from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ragpilot import cli_embed_bench
from ragpilot.bootstrap.embedders import EMBEDDERS, embedder_of
from ragpilot.cli import run
from ragpilot.cli_embed_bench import Row, candidates_of, label_of, parse, run_embed_bench, table
from ragpilot.config import EmbedderSettings, Environment, Settings
from ragpilot.errors import EmbedderUnavailableError, InvalidRequestError
from ragpilot.evaluation.embedding_bench import Figures, Text, load_texts, measure
from ragpilot.types import Vector
from tests.fakes import FakeEmbedder


class Directions(FakeEmbedder):
    """An embedder of texts that say where they point: ``"3 4"`` is the direction (0.6, 0.8)."""

    def __init__(self) -> None:
        super().__init__(2, name="directions")

    def vector(self, text: str) -> Vector:
        vector = np.array([float(part) for part in text.split()], dtype=np.float32)
        found: Vector = vector / np.linalg.norm(vector)
        return found


def environment(tmp_path: Path, **embedder: Any) -> Environment:
    return Environment(settings=Settings(embedder=EmbedderSettings(**embedder)), state=tmp_path / "state")


# --- the figures


@pytest.mark.asyncio
async def test_two_groups_at_right_angles() -> None:
    texts = [Text("x", "1 0"), Text("x", "2 0"), Text("y", "0 1"), Text("y", "0 3")]
    figures = await measure(Directions(), texts)
    assert (figures.name, figures.dimensions, figures.texts, figures.groups) == ("directions", 2, 4, 2)
    assert (figures.within, figures.between, figures.separation) == (1.0, 0.0, 1.0)
    assert (figures.auroc, figures.top_1, figures.top_3) == (1.0, 1.0, 1.0)
    assert figures.milliseconds_per_text >= 0


@pytest.mark.asyncio
async def test_groups_that_say_nothing_of_the_texts() -> None:
    texts = [Text("a", "1 0"), Text("b", "1 0"), Text("a", "0 1"), Text("b", "0 1")]
    figures = await measure(Directions(), texts)
    # Related pairs all stand at right angles; of the four unrelated ones two are equal texts.
    assert (figures.within, figures.between, figures.separation) == (0.0, 0.5, -0.5)
    assert figures.auroc == pytest.approx(0.25)
    assert (figures.top_1, figures.top_3) == (0.0, 1.0)


@pytest.mark.asyncio
async def test_recall_looks_at_three_and_never_at_the_text_itself() -> None:
    texts = [Text("a", "1 0"), *(Text("b", f"10 {n}") for n in (1, 2, 3)), Text("a", "0 1")]
    figures = await measure(Directions(), texts)
    assert figures.top_1 == pytest.approx(3 / 5)
    assert figures.top_3 == pytest.approx(3 / 5)


# --- the data set


def test_the_data_set_that_comes_along() -> None:
    texts = load_texts()
    sizes = Counter(text.group for text in texts)
    assert len(texts) >= 60
    assert len(sizes) >= 15
    assert set(sizes.values()) == {5}
    assert len({text.text for text in texts}) == len(texts)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "holds too little to compare: no texts"),
        (b'{"group": "a", "text": "x"}\n{"group": "a", "text": "y"}', "too little to compare: 2 texts in one group"),
        (b'{"group": "a", "text": "x"}\n{"group": "b", "text": "y"}', "too little to compare: one text in group 'a'"),
        (b"{bad", "line 1: no JSON"),
        (b"[" * 10_000, "line 1: no JSON"),
        (b'\n[]', "line 2: no object with 'group' and 'text'"),
        (b'{"group": "a"}', "line 1: 'text' is missing"),
        (b'{"group": 7, "text": "x"}', "line 1: 'group' must be a text that is not blank"),
        (b'{"group": "a", "text": " "}', "line 1: 'text' must be a text that is not blank"),
        (b'{"group": "a", "text": "\\ud800"}', "line 1: 'text' must be a text"),
        (b'{"group": "a", "text": "x"}\n\n{"group": "b", "text": "x"}', "line 3: the text of line 1 again"),
        (b'{"group": "a", "text": "x"}\n\xff', "line 2: no text in UTF-8"),
    ],
)  # fmt: skip
def test_a_data_set_that_is_none_is_refused_by_its_line(tmp_path: Path, content: bytes, words: str) -> None:
    file = tmp_path / "texts.jsonl"
    file.write_bytes(content)
    with pytest.raises(InvalidRequestError, match=re.escape(words)):
        load_texts(file)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    for file, words in ((tmp_path / "absent", "No such file"), (tmp_path, "Is a directory")):
        with pytest.raises(InvalidRequestError, match=f"{file} cannot be read: {words}"):
            load_texts(file)


def test_marks_and_ends_of_lines_of_other_systems(tmp_path: Path) -> None:
    file = tmp_path / "texts.jsonl"
    rows = [{"group": group, "text": f"{group} {n}\u2028\x85"} for group in "ab" for n in range(2)]
    file.write_text("\ufeff" + "\r\n".join(json.dumps(row, ensure_ascii=False) for row in rows), newline="")
    assert [text.text for text in load_texts(file)] == [row["text"] for row in rows]


def test_a_data_set_that_is_too_large_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "texts.jsonl"
    file.write_text("\n".join(json.dumps({"group": "ab"[at % 2], "text": f"x{at}"}) for at in range(5_001)))
    with pytest.raises(InvalidRequestError, match="at most 5,000"):
        load_texts(file)
    with file.open("wb") as opened:
        opened.truncate(20_000_001)
    with pytest.raises(InvalidRequestError, match="more than 20,000,000 bytes"):
        load_texts(file)


# --- the command


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("minilm", {"kind": "minilm"}),
        ("fastembed:BAAI/bge-small-en-v1.5", {"kind": "fastembed", "model": "BAAI/bge-small-en-v1.5"}),
        ("ollama:nomic-embed-text:v1.5", {"kind": "ollama", "model": "nomic-embed-text:v1.5"}),
        ("openai@http://localhost:8080/v1", {"kind": "openai", "url": "http://localhost:8080/v1"}),
        ("openai:a@q8_0@https://x", {"kind": "openai", "model": "a@q8_0", "url": "https://x"}),
    ],
)
def test_an_embedder_in_one_word(text: str, expected: dict[str, str]) -> None:
    chosen = parse(text)
    assert {name: value for name in ("kind", "model", "url") if (value := getattr(chosen, name))} == expected


@pytest.mark.parametrize("text", ["", "word2vec", "openai@ftp://x", "openai@http://user:key@x", "MINILM"])
def test_a_word_that_names_none(text: str) -> None:
    with pytest.raises(InvalidRequestError, match="names no embedder"):
        parse(text)


@pytest.mark.parametrize("text", ["minilm@http://localhost:1", "minilm:small", "fastembed:a/b@http://localhost:1"])
def test_what_a_kind_does_not_take_is_not_passed_over(text: str) -> None:
    with pytest.raises(InvalidRequestError, match=r"takes no (model|url)"):
        parse(text)


def test_rows_of_one_model_are_told_apart() -> None:
    figures = Figures("nomic", 2, 4, 2, 1.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0)
    rows = [Row("ollama nomic", figures), Row("openai at http://x", figures)]
    assert [line.split("  ")[0] for line in table(rows).splitlines()[1:]] == ["ollama nomic", "openai at http://x"]
    assert table(rows[:1]).splitlines()[1].startswith("nomic")


def test_each_embedder_is_measured_once(tmp_path: Path) -> None:
    def labels(**embedder: Any) -> list[str]:
        return [label_of(one) for one in candidates_of(environment(tmp_path, **embedder), [parse("minilm")])]

    ollama = ["ollama nomic-embed-text", "ollama embeddinggemma"]
    assert labels() == ["minilm", *ollama]
    assert labels(kind="ollama") == ["minilm", *ollama]
    assert labels(kind="openai", url="http://x:1") == ["minilm", "openai at http://x:1", *ollama]
    assert labels(kind="ollama", url="http://x:1")[1:] == [f"{label} at http://x:1" for label in ollama]


@pytest.fixture
def fakes(monkeypatch: pytest.MonkeyPatch) -> list[Environment]:
    """Of the embedders, the embedded one is a fake, and Ollama is away."""
    made: list[Environment] = []

    async def embedded(given: Environment) -> FakeEmbedder:
        made.append(given)
        return Directions()

    async def away(_: Environment) -> FakeEmbedder:
        raise EmbedderUnavailableError("Ollama is\naway.", hint="Start it.")

    monkeypatch.setitem(EMBEDDERS, "minilm", embedded)
    monkeypatch.setitem(EMBEDDERS, "ollama", away)
    return made


@pytest.fixture
def data(tmp_path: Path) -> Path:
    file = tmp_path / "texts.jsonl"
    rows = [{"group": group, "text": text} for group, text in (("x", "1 0"), ("x", "2 0"), ("y", "0 1"), ("y", "0 2"))]
    file.write_text("\n".join(map(json.dumps, rows)))
    return file


def test_a_table_and_what_could_not_be_measured(
    tmp_path: Path, data: Path, fakes: list[Environment], capsys: pytest.CaptureFixture[str]
) -> None:
    assert asyncio.run(run_embed_bench(environment(tmp_path), data, as_json=False)) == 0
    printed = capsys.readouterr()
    head, row, *rest = printed.out.splitlines()
    assert head.split() == [title for title, _, _ in cli_embed_bench._COLUMNS]
    assert row.split()[:8] == ["directions", "2", "1.000", "0.000", "1.000", "1.000", "100.0%", "100.0%"]
    assert len(head) == len(row)
    assert rest == [
        "not measured: ollama nomic-embed-text: Ollama is away. Start it.",
        "not measured: ollama embeddinggemma: Ollama is away. Start it.",
    ]
    assert "Measuring minilm" in printed.err
    # What is remembered of the configured embedder lies elsewhere.
    assert [one.state.name for one in fakes] == ["embed-bench"]


def test_the_same_as_json_by_the_command(
    tmp_path: Path, data: Path, fakes: list[Environment], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["-C", str(tmp_path), "embed-bench", "--data", str(data), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["texts"] == 4
    assert [one.get("separation", one.get("problem")) for one in found["embedders"]] == [
        1.0, "Ollama is away. Start it.", "Ollama is away. Start it.",
    ]  # fmt: skip
    assert run(["-C", str(tmp_path), "embed-bench", "--data", data.name, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["texts"] == 4
    for wrong in (["--with", "word2vec"], ["--data", "absent"], ["--data", "."]):
        assert run(["-C", str(tmp_path), "embed-bench", *wrong]) == 2
        assert capsys.readouterr().out == ""


def test_none_at_all_and_one_that_hangs(
    tmp_path: Path, data: Path, fakes: list[Environment], monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    async def hanging(_: Environment) -> FakeEmbedder:
        await asyncio.Event().wait()
        raise AssertionError

    monkeypatch.setitem(EMBEDDERS, "minilm", hanging)
    monkeypatch.setattr(cli_embed_bench, "SECONDS", 0.05)
    assert asyncio.run(run_embed_bench(environment(tmp_path), data, as_json=False)) == 1
    assert "not measured: minilm: it took longer than 0.05 s." in capsys.readouterr().out
    assert "not measured" not in table([])


@pytest.mark.asyncio
async def test_the_embedded_model_tells_software_apart(tmp_path: Path) -> None:
    embedder = await embedder_of(environment(tmp_path))
    try:
        figures = await measure(embedder, load_texts())
    finally:
        await embedder.aclose()
    assert (figures.dimensions, figures.texts, figures.groups) == (384, 80, 16)
    assert figures.separation > 0.2
    assert figures.auroc > 0.9
    assert figures.top_3 > 0.85
