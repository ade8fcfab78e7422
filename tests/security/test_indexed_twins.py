"""Two folders that differ only in files which an actor may not read, indexed by real runs, give him the same index.

Everything that a run keeps is in play: manifest, cache of embeddings, batches of texts, readers by grants that change.
"""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ragpilot.config import CorpusSettings, GrantSettings, RetrievalSettings
from ragpilot.retrieval import Retriever
from ragpilot.types import Actor, Chunk
from tests.fakes import FakeEmbedder
from tests.ingestion import FILES, Project
from tests.security.worlds import Index, gated_embedder

ANN = Actor("ann", frozenset({"user:ann", "team:core"}))
BOB = Actor("bob", frozenset({"team:people"}))
NOBODY = Actor("nobody", frozenset())
WRITER = Actor("writer", frozenset(), frozenset({"ingest"}))
"""May write, and read nothing."""

HIDDEN = {
    "hr/pay.md": "# Pay\n\nOrders of pay. How to order a raise.\n",
    "hr/orders.py": FILES["src/orders.py"],
    "hr/retry.py": FILES["src/retry.py"].replace("retry_calls", "retry_pay"),
    "attic/settings.toml": FILES["settings.toml"] + "# again\n",
    "attic/guide.md": FILES["docs/guide.md"] * 5,
}
GRANTS = [
    GrantSettings(paths=["hr/**"], readers=["team:people"]),
    GrantSettings(paths=["attic/**"], readers=[]),
]
QUESTIONS = ("sum of an order", "retry_calls", "how do I return an order?", "pay raise", "name shop")


@pytest.fixture(autouse=True)
def still(monkeypatch: pytest.MonkeyPatch) -> None:
    """All runs of a test happen in one second, so that times can be compared."""
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now)


class Twin(Project):
    """A project whose files have a fixed time, whatever is written beside them."""

    def __init__(self, folder: Path, files: dict[str, str], grants: list[GrantSettings]) -> None:
        embedder = gated_embedder(64)
        super().__init__(folder, files=files, embedder=embedder)
        self.grant(grants)

    def write(self, files: dict[str, str]) -> None:
        super().write(files)
        for name in files:
            os.utime(self.root / name, ns=(10**18, 10**18 + len(name) * 1_000_000))

    def grant(self, grants: list[GrantSettings]) -> None:
        self.corpus = CorpusSettings(roots=[str(self.root)], readers=["team:core"], grants=grants)
        self.restart()

    @property
    def index(self) -> Index:
        assert isinstance(self.embedder, FakeEmbedder)
        made = Index(self.store, self.embedder, self.corpus.name)
        made.identity = self.service.identity
        return made

    async def told(self, actor: Actor, every: list[Chunk]) -> list[Any]:
        """What every read gives the actor, and every question finds."""
        found: list[Any] = [await self.index.reads(actor, question, 3, every) for question in QUESTIONS]
        retriever = Retriever(self.store, self.embedder, RetrievalSettings(), identity=self.service.identity)
        for question in QUESTIONS:
            retrieval = await retriever.search(actor, question, corpus=self.corpus.name)
            found.append(replace(retrieval, timings={}))
        return found


@pytest.mark.asyncio
async def test_files_that_may_not_be_read_change_nothing_of_an_index(tmp_path: Path) -> None:
    alone = Twin(tmp_path / "alone", FILES, GRANTS)
    beside = Twin(tmp_path / "beside", {**HIDDEN, **FILES}, GRANTS)
    await alone.run()
    await beside.run()
    assert len(beside.chunks) > len(alone.chunks) + 4
    every = beside.chunks
    assert await alone.told(ANN, every) == await beside.told(ANN, every)
    assert any(retrieval.hits for retrieval in (await alone.told(ANN, every))[len(QUESTIONS) :])
    assert await alone.told(NOBODY, every) == await beside.told(NOBODY, every)
    assert await alone.told(BOB, every) != await beside.told(BOB, every)


@pytest.mark.asyncio
async def test_neither_does_what_a_cache_has_seen_of_them_or_what_they_once_were(tmp_path: Path) -> None:
    alone = Twin(tmp_path / "alone", FILES, GRANTS)
    await alone.run()
    # First only what is hidden, then all of it readable by all, then the rest, then as it is meant to be.
    beside = Twin(tmp_path / "beside", HIDDEN, [])
    await beside.run()
    beside.write(FILES)
    await beside.run()
    every = beside.chunks
    assert await alone.told(ANN, every) != await beside.told(ANN, every)
    embedded = beside.embedder.documents_embedded  # type: ignore[attr-defined]
    beside.grant(GRANTS)
    assert await beside.service.apply_grants(WRITER, beside.corpus) == len(HIDDEN)
    assert beside.embedder.documents_embedded == embedded  # type: ignore[attr-defined]
    assert await alone.told(ANN, every) == await beside.told(ANN, every)
    # Removed files, and a run that finds them gone.
    for name in HIDDEN:
        (beside.root / name).unlink()
    await beside.run()
    assert len(beside.chunks) == len(alone.chunks)
    assert await alone.told(ANN, every) == await beside.told(ANN, every)


@pytest.mark.asyncio
async def test_a_change_of_grants_counts_from_the_next_question_on(tmp_path: Path) -> None:
    project = Twin(tmp_path / "one", {**HIDDEN, **FILES}, [])
    await project.run()
    bounds = RetrievalSettings(gate="off", min_score=-1.0)
    retriever = Retriever(project.store, project.embedder, bounds, identity=project.service.identity)

    async def paths() -> set[str]:
        found = await retriever.search(ANN, "order", corpus=project.corpus.name, top_k=50)
        return {hit.chunk.path for hit in found.hits}

    assert "hr/pay.md" in await paths()
    project.grant(GRANTS)
    await project.service.apply_grants(WRITER, project.corpus)
    assert not {path for path in await paths() if path.startswith(("hr/", "attic/"))}
    project.grant([])
    await project.service.apply_grants(WRITER, project.corpus)
    assert "hr/pay.md" in await paths()
    (project.root / "hr/pay.md").unlink()
    await project.run()
    assert "hr/pay.md" not in await paths()
