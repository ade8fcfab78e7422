"""Grants that change while a run is under way: they count at once, for what is there and for what is still to come."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from ragpilot.config import CorpusSettings, GrantSettings
from ragpilot.errors import RootError
from ragpilot.types import IngestReport, IngestScope
from tests.fakes import OPERATOR, MemoryStore
from tests.ingestion import SECONDS, Project

FILES = {f"src/file{number}.py": f"def work{number}():\n    return {number}\n" for number in range(200)}
EVERYONE, HR = frozenset({"team:everyone"}), frozenset({"team:hr"})


class Gated(MemoryStore):
    """Stores documents once ``open`` is set, but for the first few."""

    def __init__(self, first: int = 20) -> None:
        super().__init__()
        self.first = first
        self.open = asyncio.Event()
        self.waiting = asyncio.Event()

    async def upsert(self, scope: IngestScope, document_id: str, chunks: Any) -> None:
        self.first -= 1
        if self.first < 0:
            self.waiting.set()
            await self.open.wait()
        await super().upsert(scope, document_id, chunks)


def closed(project: Project) -> CorpusSettings:
    """The corpus, its source closed to all but a few."""
    return project.corpus.model_copy(update={"grants": [GrantSettings(paths=["src/**"], readers=["team:hr"])]})


def readers(project: Project) -> set[frozenset[str]]:
    return {chunk.readers for chunk in project.chunks}


@asynccontextmanager
async def running(project: Project, **options: Any) -> AsyncIterator[asyncio.Task[IngestReport]]:
    """A run that goes on behind the block."""

    async def work() -> IngestReport:
        async with aclosing(project.service.run(OPERATOR, project.corpus, **options)) as events:
            last = [event async for event in events][-1]
        assert isinstance(last, IngestReport)
        return last

    async with asyncio.timeout(SECONDS):
        task = asyncio.create_task(work())
        try:
            yield task
        finally:
            task.cancel()
            await asyncio.wait({task})


@pytest.mark.asyncio
async def test_what_a_run_writes_after_a_change_is_granted_by_it(tmp_path: Path) -> None:
    store = Gated()
    project = Project(tmp_path, files=FILES, store=store)
    async with running(project) as run:
        await store.waiting.wait()
        applying = asyncio.create_task(project.service.apply_grants(OPERATOR, closed(project)))
        await asyncio.sleep(0)
        store.open.set()
        changed = await applying
        # Exactly what was stored by the old ones had to be changed; nothing can be read any more that was closed.
        assert 0 < changed <= len(FILES)
        assert readers(project) == {HR}
        report = await run
    assert (report.added, report.outcome) == (len(FILES), "complete")
    assert readers(project) == {HR}
    # The manifest says what the store holds: nothing is left to be done, here or by the next process.
    assert await project.restart().apply_grants(OPERATOR, closed(project)) == 0
    assert await project.service.apply_grants(OPERATOR, project.corpus) == len(FILES)
    assert readers(project) == {EVERYONE}


@pytest.mark.asyncio
@pytest.mark.parametrize("rebuild", [False, True])
async def test_what_was_there_before_the_run_is_changed_too(tmp_path: Path, *, rebuild: bool) -> None:
    store = Gated(first=1000)
    project = Project(tmp_path, files=FILES, store=store)
    await project.run()
    project.write({"src/new.py": "def fresh():\n    return 1\n"})
    store.first = 0
    async with running(project, rebuild=rebuild) as run:
        applying = asyncio.create_task(project.service.apply_grants(OPERATOR, closed(project)))
        await store.waiting.wait()
        store.open.set()
        await applying
        assert readers(project) <= {HR}
        await run
    assert readers(project) == {HR}
    assert len(project.paths) == len(FILES) + 1


@pytest.mark.asyncio
async def test_a_filling_goes_on(tmp_path: Path) -> None:
    project = Project(tmp_path, files=FILES)
    await project.run(bodies=False)
    async with asyncio.timeout(SECONDS), aclosing(project.service.fill(OPERATOR, "default")) as events:
        await anext(events)
        assert await project.service.apply_grants(OPERATOR, closed(project)) == len(FILES)
        assert [event async for event in events]
    assert project.complete
    assert readers(project) == {HR}


@pytest.mark.asyncio
async def test_a_run_that_never_began_keeps_nobody_waiting(tmp_path: Path) -> None:
    project = Project(tmp_path)
    await project.run()
    missing = project.corpus.model_copy(update={"roots": [str(tmp_path / "gone")]})

    async def fail() -> None:
        with pytest.raises(RootError):
            await project.run(corpus=missing)

    async with asyncio.timeout(SECONDS):
        running = asyncio.create_task(fail())
        await asyncio.sleep(0)
        changed = project.corpus.model_copy(update={"readers": ["team:hr"]})
        assert await project.service.apply_grants(OPERATOR, changed) == 4
        await running
    assert readers(project) == {HR}
