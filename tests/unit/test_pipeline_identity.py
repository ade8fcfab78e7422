"""What an index was built with: another embedder, a rebuild, a lost manifest, a run that was killed."""

from __future__ import annotations

import asyncio
import os
import random
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ragpilot.config import CorpusSettings, GrantSettings
from ragpilot.errors import IndexMismatchError, IngestError, StoreDamagedError
from ragpilot.ingest.embedding_cache import FILE_NAME as CACHE
from ragpilot.ingest.manifest import FILE_NAME, Manifest
from ragpilot.ingest.run import OTHER_VECTORS
from ragpilot.types import Vector
from tests.fakes import FakeEmbedder, MemoryStore
from tests.ingestion import Project, steady

pytestmark = pytest.mark.asyncio


async def test_another_embedder_is_refused_until_a_rebuild(tmp_path: Path) -> None:
    project = Project(tmp_path)
    await project.run()
    before = project.chunks
    project.embedder = FakeEmbedder(name="another")
    project.restart()
    with pytest.raises(IndexMismatchError):
        await project.run()
    with pytest.raises(IndexMismatchError):
        await project.fill()
    assert project.chunks == before
    report = await project.run(rebuild=True)
    assert (report.outcome, report.added) == ("complete", 4)
    assert project.complete
    with pytest.raises(IngestError, match="whole corpus"):
        await project.run(rebuild=True, path=project.root / "src")


MANY = {f"m{n}.py": f"def f{n}():\n    return {n}\n" for n in range(30)}
SAMPLED = 8
"""Texts that are embedded again by a rebuild, to see that the embedder gives what it gave."""


async def test_a_rebuild_keeps_vectors_that_the_embedder_gives_again(tmp_path: Path) -> None:
    project = Project(tmp_path, files=MANY)
    assert (await project.run()).embedded == 2 * len(MANY)
    again = await project.run(rebuild=True)
    assert (again.added, again.embedded, again.notes) == (len(MANY), SAMPLED, ())
    assert project.complete


class Replaced(FakeEmbedder):
    """Another model under the same name, as a service may have it."""

    def vector(self, text: str) -> Vector:
        return super().vector(text)[::-1].copy()


async def test_a_rebuild_keeps_no_vectors_of_a_model_that_was_replaced(tmp_path: Path) -> None:
    project = Project(tmp_path, files=MANY)
    await project.run()
    project.embedder = Replaced()
    project.restart()
    again = await project.run(rebuild=True)
    assert (again.embedded, again.notes) == (2 * len(MANY) + SAMPLED, (OTHER_VECTORS,))
    for chunk in project.chunks:
        assert (project.store.vectors["default", "header", chunk.id] == Replaced().vector(chunk.header)).all()
    assert (await project.run(rebuild=True)).embedded == SAMPLED


@pytest.mark.parametrize("damage", ["nonsense", "cut short", "a page", "every vector"])
async def test_a_rebuild_embeds_what_is_damaged_in_the_cache(damage: str, tmp_path: Path) -> None:
    project = Project(tmp_path, files=MANY)
    await project.run()
    file = project.state / CACHE
    match damage:
        case "nonsense":
            file.write_bytes(b"nonsense" * 5_000)
        case "cut short":
            os.truncate(file, file.stat().st_size // 2)
        case "a page":
            with file.open("r+b") as opened:
                opened.seek(4096)
                opened.write(b"\xa5" * 4096)
        case "every vector":
            with closing(sqlite3.connect(file)) as cache, cache:
                cache.execute("UPDATE vectors SET vector = zeroblob(length(vector))")
    again = await project.run(rebuild=True)
    assert (again.outcome, again.embedded, again.notes) == ("complete", 2 * len(MANY), ())
    for chunk in project.chunks:
        assert (project.store.vectors["default", "header", chunk.id] == FakeEmbedder().vector(chunk.header)).all()
    assert (await project.run(rebuild=True)).embedded == SAMPLED


async def test_a_rebuild_reads_nothing_of_a_damaged_collection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = Project(tmp_path)
    await project.run()
    describe, dropped = project.store.describe, asyncio.Event()

    async def damaged(corpus: str) -> Any:
        if not dropped.is_set():
            raise StoreDamagedError("The collection's file cannot be read.")
        return await describe(corpus)

    drop = project.store.drop

    async def dropping(scope: Any) -> None:
        await drop(scope)
        dropped.set()

    monkeypatch.setattr(project.store, "describe", damaged)
    monkeypatch.setattr(project.store, "drop", dropping)
    with pytest.raises(StoreDamagedError):
        await project.run()
    assert (await project.run(rebuild=True)).added == 4


@pytest.mark.parametrize("damage", ["deleted", "damaged", "behind"])
async def test_without_its_manifest_nothing_is_lost(damage: str, tmp_path: Path) -> None:
    project = Project(tmp_path)
    await project.run()
    (project.root / "src/retry.py").unlink()
    project.write({"src/orders.py": "def changed():\n    pass\n"})
    manifest = project.state / FILE_NAME
    if damage == "behind":
        with Manifest(project.state) as opened:
            opened.record("default", 0)
    else:
        for file in project.state.glob(FILE_NAME + "*"):
            file.unlink()
        if damage == "damaged":
            manifest.write_bytes(b"nonsense" * 5000)
    report = await project.run()
    assert (report.outcome, report.changed, report.unchanged, report.removed) == ("complete", 1, 2, 1)
    assert project.paths == ["docs/guide.md", "settings.toml", "src/orders.py"]
    with Manifest(project.state) as opened:
        info = await project.store.describe("default")
        assert info is not None
        assert opened.revision("default") == info.revision
        assert {row.path for row in opened.rows("default").values() if row.indexed} == set(project.paths)


class Killed(BaseException):
    """What a kill looks like from inside."""


class DyingStore(MemoryStore):
    """Dies before or after one of its writes, and not again until it is armed anew."""

    def __init__(self) -> None:
        super().__init__()
        self.writes_left: int | None = None
        self.after = False

    async def _write(self, work: Callable[..., Awaitable[None]], *arguments: Any) -> None:
        dies = False
        if self.writes_left is not None:
            self.writes_left -= 1
            dies = self.writes_left < 0
        if self.after or not dies:
            await work(*arguments)
        if dies:
            raise Killed

    async def upsert(self, *arguments: Any) -> None:
        await self._write(super().upsert, *arguments)

    async def set_vectors(self, *arguments: Any) -> None:
        await self._write(super().set_vectors, *arguments)

    async def delete_documents(self, *arguments: Any) -> None:
        await self._write(super().delete_documents, *arguments)

    async def set_readers(self, *arguments: Any) -> None:
        await self._write(super().set_readers, *arguments)


@pytest.mark.parametrize("seed", range(12))
async def test_after_kills_at_any_write_the_index_is_that_of_a_clean_run(seed: int, tmp_path: Path) -> None:
    dice = random.Random(seed)  # noqa: S311 - no secret depends on it
    store = DyingStore()
    project = Project(tmp_path, store=store)
    for turn in range(5):
        for _ in range(dice.randint(1, 6)):
            name = f"{dice.choice('abc')}/m{dice.randint(0, 6)}.py"
            file = project.root / name
            if file.exists() and dice.random() < 0.4:
                file.unlink()
            else:
                body = "\n\n\n".join(f"def f{n}():\n    return {dice.randint(0, 3)}" for n in range(dice.randint(1, 4)))
                project.write({name: body + "\n"})
        project.corpus = CorpusSettings(
            roots=[str(project.root)], grants=[GrantSettings(paths=[f"{dice.choice('abc')}/"], readers=["team:x"])]
        )
        store.writes_left, store.after = dice.randint(0, 9), dice.random() < 0.5
        project.restart()
        before = {chunk.id for chunk in project.chunks}
        try:
            await project.run()
        except Killed:
            assert turn == 0 or before & {chunk.id for chunk in project.chunks} or not before
    store.writes_left = None
    project.restart()
    report = await project.run()
    assert report.outcome == "complete"

    clean = Project(tmp_path / "clean", files={})
    clean.corpus = project.corpus
    clean.restart()
    await clean.run()
    assert [replace(c, commit=None) for c in steady(project.chunks)] == [
        replace(c, commit=None) for c in steady(clean.chunks)
    ]
    assert project.store.vectors.keys() == clean.store.vectors.keys()
    assert all((project.store.vectors[key] == clean.store.vectors[key]).all() for key in clean.store.vectors)
