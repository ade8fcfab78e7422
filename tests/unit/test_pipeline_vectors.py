"""Which vectors runs make, and which not again."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ragpilot.types import Vector
from tests.fakes import FakeEmbedder
from tests.ingestion import FILES, Project, no_chunking

pytestmark = pytest.mark.asyncio


async def test_bodies_can_wait_for_a_fill(tmp_path: Path) -> None:
    project = Project(tmp_path)
    report = await project.run(bodies=False)
    ids = {chunk.id for chunk in project.chunks}
    assert (report.outcome, project.having("header"), project.having("body")) == ("complete", ids, set())
    info = await project.store.describe("default")
    filled = await project.fill()
    assert (filled.outcome, filled.embedded, filled.chunks, filled.unchanged) == ("complete", len(ids), len(ids), 4)
    assert project.complete
    after = await project.store.describe("default")
    assert info is not None
    assert after is not None
    assert after.last_ingestion == info.last_ingestion
    assert (await project.fill()).embedded == 0
    project.restart(chunk_text=no_chunking)
    assert (await project.run()).unchanged == 4


async def test_all_vectors_can_wait_for_a_fill(tmp_path: Path) -> None:
    project = Project(tmp_path)
    report = await project.run(headers=False, bodies=False)
    assert (report.outcome, report.added, report.embedded) == ("complete", 4, 0)
    assert not project.having("header")
    assert (await project.fill()).outcome == "complete"
    assert project.complete


@pytest.mark.parametrize("stage", ["chunks", "headers"])
async def test_a_run_that_is_asked_to_leave_gives_its_report(stage: str, tmp_path: Path) -> None:
    """Complete, once everything can be found by its words; what is missing is done by the next."""
    leave = asyncio.Event()

    class Leaving(FakeEmbedder):
        async def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
            leave.set()
            return await super().embed_documents(texts)

    project = Project(tmp_path, files={f"m{n}.py": f"def f{n}():\n    return {n}\n" for n in range(80)})
    project.embedder = Leaving()
    if stage == "chunks":
        leave.set()
    project.restart()
    report = await project.run(leave=leave)
    assert report.outcome == ("partial" if stage == "chunks" else "complete")
    assert (report.added, len(project.having("header"))) == ((0, 0) if stage == "chunks" else (80, report.embedded))
    assert report.embedded < 80
    project.embedder = FakeEmbedder()
    project.restart()
    assert (await project.run()).outcome == "complete"
    assert project.complete


async def test_filling_what_is_not_there(tmp_path: Path) -> None:
    report = await Project(tmp_path).fill()
    assert (report.outcome, report.chunks, report.embedded, report.warnings) == ("complete", 0, 0, ())


async def test_vectors_are_of_header_and_of_header_and_text(tmp_path: Path) -> None:
    project = Project(tmp_path)
    await project.run()
    embedder = FakeEmbedder()
    for chunk in project.chunks:
        header = project.store.vectors["default", "header", chunk.id]
        body = project.store.vectors["default", "body", chunk.id]
        assert (header == embedder.vector(chunk.header)).all()
        assert (body == embedder.vector(f"{chunk.header}\n{chunk.text}")).all()


async def test_a_branch_switch_and_back_embeds_nothing(tmp_path: Path) -> None:
    project = Project(tmp_path)
    await project.run()
    project.write({"src/orders.py": "def other_branch():\n    pass\n"})
    (project.root / "src/retry.py").unlink()
    assert (await project.run()).embedded > 0
    project.write(FILES)
    report = await project.run()
    assert (report.added, report.changed, report.embedded) == (1, 1, 0)
    assert project.complete


async def test_a_move_that_changes_no_words_embeds_nothing(tmp_path: Path) -> None:
    project = Project(tmp_path, files={"one/web/api/shop/orders/total.py": FILES["src/orders.py"]})
    await project.run()
    (project.root / "one").rename(project.root / "two")
    report = await project.run()
    assert (report.added, report.removed, report.embedded) == (1, 1, 0)
    assert project.paths == ["two/web/api/shop/orders/total.py"]
    assert project.complete


async def test_newest_files_are_embedded_first(tmp_path: Path) -> None:
    project = Project(tmp_path, files={f"m{number}.py": f"value_{number} = {number}\n" for number in range(5)})
    for number in range(5):
        stamp = (1_000 + (number * 3) % 5) * 1_000_000_000 + 1
        os.utime(project.root / f"m{number}.py", ns=(stamp, stamp))
    seen: list[str] = []

    class Watching(FakeEmbedder):
        async def embed_documents(self, texts: Any) -> Any:
            seen.extend(texts)
            return await super().embed_documents(texts)

    project.embedder = Watching()
    project.restart()
    await project.run(bodies=False)
    newest_first = sorted(project.chunks, key=lambda chunk: -chunk.mtime_ns)
    assert seen == [chunk.header for chunk in newest_first]
