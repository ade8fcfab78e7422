"""An embedder or a store that fails: the rest is stored, the one is named, nothing is tried without end."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ragpilot.errors import (
    EmbedderError,
    EmbedderUnavailableError,
    StoreError,
    StoreUnavailableError,
    TextsNotEmbeddedError,
)
from ragpilot.ingest.embed import GIVE_UP
from ragpilot.types import Vector
from tests.fakes import FakeEmbedder, MemoryStore
from tests.ingestion import PoisonedEmbedder, Project

pytestmark = pytest.mark.asyncio

FILES = {f"m{number:02}.py": f"def function_{number}():\n    return {number}\n" for number in range(40)}
POISON = {"bad.txt": "a word of poison in it\n"}


class RefusingEmbedder(FakeEmbedder):
    """Raises for a call that holds the poisoned text, or for that text alone."""

    def __init__(self, *, whole: bool) -> None:
        super().__init__()
        self.whole = whole
        self.calls = 0

    async def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        self.calls += 1
        bad = ["poison" in text for text in texts]
        if not any(bad):
            return await super().embed_documents(texts)
        if self.whole:
            raise EmbedderError("input length exceeds the context length (400)")
        vectors = await super().embed_documents(texts)
        held = [None if is_bad else vector for is_bad, vector in zip(bad, vectors, strict=True)]
        raise TextsNotEmbeddedError("1 text was not embedded: too strange", vectors=held)


@pytest.mark.parametrize(
    ("embedder", "words"),
    [
        (PoisonedEmbedder("nan"), "not finite"),
        (PoisonedEmbedder("zero"), "zero"),
        (PoisonedEmbedder("dimension"), r"shape \(63,\)"),
        (PoisonedEmbedder("few"), "0 vectors for 1 text"),
        (PoisonedEmbedder("none"), "0 vectors for 1 text"),
        (PoisonedEmbedder("crash"), "RuntimeError"),
        (RefusingEmbedder(whole=True), "context length"),
        (RefusingEmbedder(whole=False), "too strange"),
    ],
    ids=["nan", "zero", "dimension", "few", "none", "crash", "400", "refused"],
)
async def test_one_text_that_cannot_be_embedded(embedder: Any, words: str, tmp_path: Path) -> None:
    project = Project(tmp_path, files=FILES | POISON, embedder=embedder)
    report = await project.run()
    assert report.outcome == "partial"
    assert [(item.path, item.reason) for item in report.failed] == [("bad.txt", "embedding failed")]
    assert re.search(words, report.failed[0].detail)
    assert "lines 1-1" in report.failed[0].detail
    bad = {chunk.id for chunk in project.chunks if chunk.path == "bad.txt"}
    ids = {chunk.id for chunk in project.chunks}
    assert project.having("body") == ids - bad
    assert ids - bad <= project.having("header")
    assert embedder.calls < 60
    # It is found by its words, and the next run tries it once more, no more.
    calls = embedder.calls
    again = await project.run()
    assert (again.outcome, again.unchanged) == ("partial", len(FILES) + 1)
    assert embedder.calls - calls <= 2


async def test_an_embedder_that_refuses_everything_is_given_up(tmp_path: Path) -> None:
    embedder = FakeEmbedder(failure=EmbedderError("the model has lost its mind"))
    calls = 0

    class Counting(FakeEmbedder):
        async def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
            nonlocal calls
            calls += 1
            return await embedder.embed_documents(texts)

    project = Project(tmp_path, files=FILES, embedder=Counting())
    report = await project.run()
    assert report.outcome == "partial"
    assert any("the model has lost its mind" in warning for warning in report.warnings)
    assert calls < 4 * GIVE_UP
    assert len(project.chunks) == report.chunks >= len(FILES)
    assert project.store.vectors == {}
    project.embedder = FakeEmbedder()
    project.restart()
    assert (await project.run()).outcome == "complete"
    assert project.complete


async def test_an_embedder_that_cannot_be_reached_is_asked_once(tmp_path: Path) -> None:
    embedder = FakeEmbedder(failure=EmbedderUnavailableError("Nothing listens at http://127.0.0.1:11434."))
    project = Project(tmp_path, files=FILES, embedder=embedder)
    report = await project.run()
    assert (report.outcome, report.added, report.failed) == ("partial", len(FILES), ())
    assert "Nothing listens" in report.warnings[-1]
    assert (await project.fill()).outcome == "partial"


async def test_an_embedder_that_hangs_is_left(tmp_path: Path) -> None:
    class Hanging(FakeEmbedder):
        calls = 0

        async def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
            self.calls += 1
            await asyncio.Event().wait()
            raise AssertionError("never")

    embedder = Hanging()
    project = Project(tmp_path, files=FILES, embedder=embedder, embed_seconds=0.3)
    report = await project.run()
    assert report.outcome == "partial"
    assert "no answer for" in report.warnings[-1]
    assert embedder.calls == 1


async def test_what_was_embedded_before_a_failure_stays(tmp_path: Path) -> None:
    class Failing(FakeEmbedder):
        async def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
            if self.documents_embedded:
                raise EmbedderUnavailableError("gone")
            return await super().embed_documents(texts)

    project = Project(tmp_path, files=FILES, embedder=Failing())
    report = await project.run()
    assert report.outcome == "partial"
    assert 0 < report.embedded == len(project.having("header")) < report.chunks


class RefusingStore(MemoryStore):
    """Refuses documents whose path is listed, or everything."""

    def __init__(self, error: StoreError, *, paths: frozenset[str] | None = None) -> None:
        super().__init__()
        self.error = error
        self.paths = paths

    async def upsert(self, scope: Any, document_id: str, chunks: Any) -> None:
        if self.paths is None or chunks[0].chunk.path in self.paths:
            raise self.error
        await super().upsert(scope, document_id, chunks)


async def test_one_document_that_the_store_refuses(tmp_path: Path) -> None:
    store = RefusingStore(StoreError("The document is too strange."), paths=frozenset({"m07.py"}))
    project = Project(tmp_path, files=FILES, store=store)
    report = await project.run()
    assert (report.outcome, len(project.paths)) == ("partial", len(FILES) - 1)
    assert [(item.path, item.reason) for item in report.failed] == [("m07.py", "storing failed")]
    store.paths = frozenset()
    report = await project.run()
    assert (report.outcome, report.added, report.unchanged) == ("complete", 1, len(FILES) - 1)


@pytest.mark.parametrize("error", [StoreUnavailableError("The store died."), StoreError("The disk is full.")])
async def test_a_store_that_fails_ends_the_run_with_its_words(error: StoreError, tmp_path: Path) -> None:
    project = Project(tmp_path, files=FILES, store=RefusingStore(error))
    with pytest.raises(type(error), match=error.message):
        await project.run()
    project.store = MemoryStore()
    project.restart()
    assert (await project.run()).added == len(FILES)
