"""An index that an earlier chunker has cut: the next run cuts it anew, whatever it was asked for, and keeps vectors."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ragpilot.errors import IndexMismatchError, RootError
from ragpilot.identity_words import CUT_ANEW, REBUILD
from ragpilot.ingest import pipeline
from ragpilot.ingest.chunkers import Span, chunk_text_with_notes
from ragpilot.ingest.manifest import FILE_NAME
from ragpilot.types import IngestProgress, IngestReport
from tests.fakes import OPERATOR, FakeEmbedder, MemoryStore
from tests.ingestion import Project, no_chunking, steady

pytestmark = pytest.mark.asyncio

OLDER, NEWER = "6", "7"
TOLD = (
    "This index was cut by an earlier version of RagPilot: it is cut anew; "
    "vectors of texts that did not change are kept."
)
TOLD_OF_ALL = TOLD.replace("it is cut anew", "the whole corpus is cut anew")
TREE = {f"{part}/m{n}.py": f"def f{n}():\n    return {n}\n" for part in ("a", "b") for n in range(3)} | {
    "a/guide.md": "# Guide\n\nHow to order.\n\n## Returns\n\nSend it back.\n"
}


def by_lines(path: str, text: str, source_type: str, *, max_chars: int) -> tuple[list[Span], list[str]]:
    """Markdown cut at every line with a word; everything else as it always was."""
    if not path.endswith(".md"):
        return chunk_text_with_notes(path, text, source_type, max_chars=max_chars)
    lines = [(number, line) for number, line in enumerate(text.splitlines(), start=1) if line]
    return [Span(number, number, line, None, "", path) for number, line in lines], []


def updated(project: Project, monkeypatch: pytest.MonkeyPatch, **parts: Any) -> Project:
    """The project, after an update to a chunker that cuts Markdown otherwise."""
    monkeypatch.setattr(pipeline, "CHUNKER_VERSION", NEWER)
    project.restart(**({"chunk_text": by_lines} | parts))
    return project


async def older(folder: Path, monkeypatch: pytest.MonkeyPatch, store: MemoryStore | None = None) -> Project:
    """An index that is complete, of the chunker before the update."""
    monkeypatch.setattr(pipeline, "CHUNKER_VERSION", OLDER)
    project = Project(folder, files=TREE, store=store)
    assert (await project.run()).notes == ()
    return project


async def assert_as_a_clean_run(project: Project, folder: Path) -> None:
    """The index is, chunk by chunk, what a first run with this chunker makes."""
    clean = Project(folder, files={}, corpus=project.corpus, chunk_text=by_lines)
    await clean.run()
    assert steady(project.chunks) == steady(clean.chunks)
    assert project.store.vectors.keys() == clean.store.vectors.keys()
    assert all((project.store.vectors[key] == vector).all() for key, vector in clean.store.vectors.items())
    project.restart(chunk_text=no_chunking)
    again = await project.run()
    assert (again.unchanged, again.embedded, again.notes) == (len(TREE), 0, ())


async def chunker_of(project: Project) -> str:
    info = await project.store.describe("default")
    assert info is not None
    return info.identity.chunker.partition(";")[0]


async def test_a_run_cuts_anew_and_embeds_only_what_is_cut_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = await older(tmp_path, monkeypatch)
    updated(project, monkeypatch)
    *steps, report = await project.events()
    assert isinstance(report, IngestReport)
    assert (report.outcome, report.added, report.changed, report.unchanged) == ("complete", 0, 0, len(TREE))
    assert (report.notes, report.warnings) == ((TOLD,), ())
    # Four lines of Markdown, and the one header that all of them have; the rest has its vectors still.
    assert report.embedded == 5
    assert {step.note for step in steps if isinstance(step, IngestProgress) and step.stage != "scan"} == {TOLD}
    assert await chunker_of(project) == NEWER
    await assert_as_a_clean_run(project, tmp_path / "clean")


async def test_without_a_manifest_everything_is_cut_anew_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = await older(tmp_path, monkeypatch)
    for file in project.state.glob(FILE_NAME + "*"):
        file.unlink()
    assert (await updated(project, monkeypatch).run()).embedded == 5
    await assert_as_a_clean_run(project, tmp_path / "clean")


@pytest.mark.parametrize("place", ["b", "b/m1.py"])
async def test_a_run_over_a_part_cuts_the_whole_corpus_anew(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = await older(tmp_path, monkeypatch)
    report = await updated(project, monkeypatch).run(path=project.root / place)
    assert (report.unchanged, report.notes) == (len(TREE), (TOLD_OF_ALL,))
    await assert_as_a_clean_run(project, tmp_path / "clean")


async def test_a_part_that_is_not_there_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = await older(tmp_path, monkeypatch)
    before = project.chunks
    with pytest.raises(RootError):
        await updated(project, monkeypatch).run(path=project.root / "nowhere")
    assert (await chunker_of(project), project.chunks) == (OLDER, before)


@pytest.mark.parametrize("place", [None, "b"])
async def test_what_a_stopped_run_has_left_can_be_asked_and_is_cut_by_the_next(
    place: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = await older(tmp_path, monkeypatch)
    before = project.chunks
    leave = asyncio.Event()
    leave.set()
    report = await updated(project, monkeypatch).run(leave=leave)
    assert (report.outcome, report.notes) == ("partial", (TOLD,))
    assert (await chunker_of(project), project.chunks) == (NEWER, before)
    assert project.complete
    project.restart()
    report = await project.run(path=project.root / place if place else None)
    assert (report.outcome, report.unchanged) == ("complete", len(TREE))
    assert report.notes == ((TOLD_OF_ALL,) if place else ())
    await assert_as_a_clean_run(project, tmp_path / "clean")


class Killed(BaseException):
    """What a kill looks like from inside."""


class DyingStore(MemoryStore):
    """Dies at one of its writes, before or after it is done."""

    def __init__(self) -> None:
        super().__init__()
        self.left: int | None = None
        self.after = False

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name not in ("adopt_chunker", "upsert", "set_vectors", "delete_documents", "record_ingestion"):
            return found

        async def write(*arguments: Any) -> Any:
            if self.left is None:
                return await found(*arguments)
            self.left -= 1
            if self.left < 0 and not self.after:
                raise Killed
            result = await found(*arguments)
            if self.left < 0:
                raise Killed
            return result

        return write


@pytest.mark.parametrize("seed", range(10))
async def test_after_kills_at_any_write_the_index_is_that_of_a_clean_run(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dice = random.Random(seed)  # noqa: S311 - no secret depends on it
    store = DyingStore()
    project = await older(tmp_path, monkeypatch, store)
    updated(project, monkeypatch)
    for _ in range(3):
        store.left, store.after = dice.randint(0, 4), dice.random() < 0.5
        place = dice.choice([None, project.root / "a"])
        with pytest.raises(Killed):
            await project.run(path=place)
        assert {chunk.path for chunk in project.chunks} == set(TREE)
        project.restart()
    store.left = None
    assert (await project.run(path=project.root / "b")).outcome == "complete"
    await assert_as_a_clean_run(project, tmp_path / "clean")


async def test_another_embedder_is_refused_whatever_the_chunker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = await older(tmp_path, monkeypatch)
    before = project.chunks
    project.embedder = FakeEmbedder(name="another")
    with pytest.raises(IndexMismatchError) as caught:
        await updated(project, monkeypatch).run()
    assert caught.value.hint != CUT_ANEW
    assert (await chunker_of(project), project.chunks) == (OLDER, before)
    plan = await project.service.plan(OPERATOR, project.corpus)
    assert (plan.notes, len(plan.warnings)) == ((), 1)
    assert plan.warnings[0].endswith(f"configured is another (64 dimensions). {REBUILD}")


async def test_filling_vectors_alone_waits_for_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = await older(tmp_path, monkeypatch)
    with pytest.raises(IndexMismatchError):
        await updated(project, monkeypatch).fill()


async def test_a_plan_tells_what_the_next_run_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = await older(tmp_path, monkeypatch)
    assert (await project.service.plan(OPERATOR, project.corpus)).notes == ()
    updated(project, monkeypatch)
    plan = await project.service.plan(OPERATOR, project.corpus)
    assert plan.notes == (TOLD.replace("it is cut anew", "the next run cuts it anew"),)
    assert await chunker_of(project) == OLDER


async def test_a_plan_needs_no_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = Project(tmp_path, files=TREE)
    monkeypatch.setattr(pipeline, "PLAN_SECONDS", 0.01)

    async def never(_: str) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(project.store, "describe", never)
    plan = await project.service.plan(OPERATOR, project.corpus)
    assert (plan.documents, plan.notes, plan.warnings) == (len(TREE), (), ())


async def test_a_change_of_ingest_is_told_as_one(tmp_path: Path) -> None:
    project = Project(tmp_path, files=TREE)
    await project.run()
    project.settings = project.settings.model_copy(update={"max_chunk_chars": 200})
    project.restart()
    told = TOLD.replace(
        "This index was cut by an earlier version of RagPilot", "[ingest] was changed since this index was cut"
    )
    assert (await project.run()).notes == (told,)


async def test_readers_are_kept_while_everything_is_cut_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = await older(tmp_path, monkeypatch)
    grants = [{"paths": ["a/"], "readers": ["team:a"]}]
    project.corpus = project.corpus.model_validate({**project.corpus.model_dump(), "grants": grants})
    updated(project, monkeypatch)
    await project.run()
    assert {chunk.path.split("/")[0] for chunk in project.chunks if chunk.readers == {"team:a"}} == {"a"}
    assert len({replace(chunk, indexed_at=0).readers for chunk in project.chunks}) == 2
