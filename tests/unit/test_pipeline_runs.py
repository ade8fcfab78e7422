"""Runs as such: who may start them, how far they are, how they end, what they would do."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from ragpilot.errors import IngestRunningError, PermissionDeniedError
from ragpilot.types import IngestProgress
from tests.fakes import ANN, OPERATOR, FakeEmbedder
from tests.ingestion import FILES, Project

pytestmark = pytest.mark.asyncio


async def test_who_may_not_index(tmp_path: Path) -> None:
    project = Project(tmp_path)
    with pytest.raises(PermissionDeniedError):
        await project.run(actor=ANN)
    with pytest.raises(PermissionDeniedError):
        await project.service.plan(ANN, project.corpus)
    with pytest.raises(PermissionDeniedError):
        await project.service.apply_grants(ANN, project.corpus)
    assert await project.store.describe("default") is None


async def test_one_run_at_a_time(tmp_path: Path) -> None:
    project = Project(tmp_path)
    async with asyncio.timeout(30), aclosing(project.service.run(OPERATOR, project.corpus)) as first:
        await anext(first)
        with pytest.raises(IngestRunningError):
            await project.run()
        with pytest.raises(IngestRunningError):
            await project.fill()
    assert (await project.run()).outcome == "complete"


async def test_stages_come_in_order_and_count_up(tmp_path: Path) -> None:
    project = Project(tmp_path)
    events = [event for event in await project.events() if isinstance(event, IngestProgress)]
    stages = list(dict.fromkeys(event.stage for event in events))
    assert stages == ["scan", "chunks", "headers", "bodies"]
    assert all(0 <= event.done <= event.total for event in events)
    assert events[-1].files == 4
    assert events[-1].chunks == len(project.chunks)


class SlowEmbedder(FakeEmbedder):
    """Does not answer until it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = asyncio.Event()
        self.held = asyncio.Event()

    async def embed_documents(self, texts: Any) -> Any:
        self.asked.set()
        await self.held.wait()
        return await super().embed_documents(texts)


async def test_progress_comes_while_one_step_takes_long(tmp_path: Path) -> None:
    embedder = SlowEmbedder()
    project = Project(tmp_path, embedder=embedder)
    meanwhile = 0
    async with asyncio.timeout(30), aclosing(project.service.run(OPERATOR, project.corpus)) as run:
        async for event in run:
            meanwhile += isinstance(event, IngestProgress) and embedder.asked.is_set() and not embedder.held.is_set()
            if meanwhile == 3:
                embedder.held.set()
    assert meanwhile == 3
    assert project.complete


async def test_a_closed_run_stops_and_the_next_one_goes_on(tmp_path: Path) -> None:
    embedder = SlowEmbedder()
    project = Project(tmp_path, embedder=embedder)
    async with asyncio.timeout(30):
        run = project.service.run(OPERATOR, project.corpus)
        async for event in run:
            if isinstance(event, IngestProgress) and embedder.asked.is_set():
                break
        embedder.held.set()
        await run.aclose()
    assert project.paths == sorted(FILES)
    assert not project.complete
    embedder.held.set()
    report = await project.run()
    assert (report.outcome, report.unchanged) == ("complete", 4)
    assert project.complete


async def test_a_cancelled_run_stops_too(tmp_path: Path) -> None:
    embedder = SlowEmbedder()
    project = Project(tmp_path, embedder=embedder)
    work = asyncio.create_task(project.run())
    async with asyncio.timeout(30):
        await embedder.asked.wait()
        work.cancel()
        embedder.held.set()
        with pytest.raises(asyncio.CancelledError):
            await work
        assert (await project.run()).outcome == "complete"
    assert project.complete


async def test_a_plan_says_what_a_run_would_do_and_does_nothing(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write({".env": "X=1", "src/c.py": 't = "ghp_' + "aB3dE6gH9" * 4 + '"\n', "b.bin": "\0\0\0\0\0\0\0\0"})
    plan = await project.service.plan(OPERATOR, project.corpus)
    assert await project.store.describe("default") is None
    assert not project.state.exists()
    report = await project.run(bodies=False)
    assert (plan.documents, plan.chunks) == (report.added, report.chunks)
    assert plan.documents_by_type == {"code-python": 3, "docs-markdown": 1, "config": 1}
    assert sum(plan.chunks_by_type.values()) == plan.chunks
    assert {item.path: item.reason for item in plan.left_out} == {".env": "secret file", "b.bin": "binary"}
    assert [(item.path, item.reason) for item in plan.redacted] == [("src/c.py", "github-token")]
    assert 0 < plan.seconds_to_searchable < plan.seconds
    assert plan.disk_bytes > plan.bytes > 0
    part = await project.service.plan(OPERATOR, project.corpus, path=project.root / "docs")
    assert part.documents == 1
