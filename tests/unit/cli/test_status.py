"""`ragpilot status` in this process."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ragpilot import cli
from ragpilot.errors import (
    EmbedderUnavailableError,
    IndexMismatchError,
    RagPilotError,
    StoreInUseError,
    StoreUnavailableError,
)
from ragpilot.types import CorpusInfo, Health, IndexStats
from tests.unit.cli.sessions import STATS, FakeSession, install


def test_status(work: Path, monkeypatch: pytest.MonkeyPatch, capture: Any) -> None:
    install(monkeypatch, FakeSession(address="http://127.0.0.1:5200"))
    assert cli.run(["status"]) == 0
    stdout, _ = capture()
    assert "Server: http://127.0.0.1:5200" in stdout
    assert "Model: NOT WELL; away[31m" in stdout
    assert "3 documents, 12 chunks, last indexed 2026-01-02T00:00:00Z" in stdout
    assert "10 code-python, 2 docs-markdown" in stdout
    assert "floor 0.35 (embedder), gate off (settings)" in stdout
    assert "left out: 1,200 ignored, 3 binary" in stdout
    assert cli.run(["status", "--json"]) == 0
    body = json.loads(capture()[0])
    assert body["corpora"][0]["pointCount"] == 12
    assert body["corpora"][0]["roots"] == [str(work)]
    assert body["health"]["store"]["ok"] is True
    assert body["directory"] == str(work)


def test_status_tells_of_a_root_and_a_file_that_come_to_nothing(
    work: Path, monkeypatch: pytest.MonkeyPatch, capture: Any, tmp_path: Path
) -> None:
    (work / "config.toml").write_text("[retrieval]\ntop_k = 3\n")
    assert cli.run(["status"]) == 0
    told = f'{work}/config.toml is not read: it does not say schema = "ragpilot/1".'
    assert f"Configuration: none; defaults\n  {told}\n" in capture()[0]
    assert cli.run(["status", "--json"]) == 0
    assert json.loads(capture()[0])["passedOver"] == told
    (work / "config.toml").write_text('schema = "ragpilot/1"\n[[corpora]]\nroots = ["gone"]\n')
    assert cli.run(["status"]) == 0
    assert f"Corpus default: {work}/gone\n  {work}/gone is not on this machine\n" in capture()[0]


def test_status_tells_of_an_index_that_does_not_fit(work: Path, monkeypatch: pytest.MonkeyPatch, capture: Any) -> None:
    class Misfit(FakeSession):
        async def stats(self, corpus: str | None) -> IndexStats:
            return replace(STATS, misfit="the index was built with a, configured is b: `ragpilot index --rebuild`")

    install(monkeypatch, Misfit())
    assert cli.run(["status"]) == 0
    assert "  NOT WELL; the index was built with a, configured is b: `ragpilot index --rebuild`" in capture()[0]


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (StoreUnavailableError("Qdrant is away.", hint="Start it."), "Store: NOT WELL; Qdrant is away. Start it."),
        (EmbedderUnavailableError("Ollama is away."), "Embedder: NOT WELL; Ollama is away."),
        (IndexMismatchError("Other embedder."), "Index: NOT WELL; Other embedder."),
    ],
)
def test_status_prints_its_lines_whatever_is_away(
    work: Path, monkeypatch: pytest.MonkeyPatch, capture: Any, error: RagPilotError, line: str
) -> None:
    class Away(FakeSession):
        async def corpora(self) -> list[CorpusInfo]:
            raise error

    install(monkeypatch, Away())
    assert cli.run(["status"]) == 0
    stdout, stderr = capture()
    assert line in stdout.splitlines()
    assert f"Corpus default: {work}" in stdout
    assert stderr == ""


def test_status_while_a_command_holds_the_index(work: Path, monkeypatch: pytest.MonkeyPatch, capture: Any) -> None:
    class Held(FakeSession):
        async def health(self) -> dict[str, Health]:
            raise StoreInUseError("held")

    install(monkeypatch, Held())
    assert cli.run(["status"]) == 0
    assert "Corpus default" in capture()[0]
