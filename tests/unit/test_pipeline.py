"""What runs make of files that come, change and go."""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import replace
from pathlib import Path

import pytest

from ragpilot.config import CorpusSettings, GrantSettings, IngestSettings
from ragpilot.errors import PermissionDeniedError, RootError
from ragpilot.freshness import Freshness
from ragpilot.types import Actor
from tests.fakes import ANN, OPERATOR
from tests.ingestion import FILES, Project, no_chunking, steady

pytestmark = pytest.mark.asyncio


async def test_a_first_run_indexes_everything(tmp_path: Path) -> None:
    project = Project(tmp_path)
    report = await project.run()
    assert (report.outcome, report.added, report.changed, report.unchanged, report.removed) == ("complete", 4, 0, 0, 0)
    assert project.paths == sorted(FILES)
    assert project.complete
    assert report.chunks == len(project.chunks) == report.embedded // 2
    assert 0 < report.seconds_to_searchable <= report.seconds
    info = await project.store.describe("default")
    assert info is not None
    assert info.last_ingestion is not None
    assert info.identity == project.service.identity

    total = next(chunk for chunk in project.chunks if chunk.symbol == "total")
    assert (total.path, total.source_type, total.readers) == (
        "src/orders.py",
        "code-python",
        frozenset({"team:everyone"}),
    )
    lines = FILES["src/orders.py"].split("\n")
    assert total.text == "\n".join(lines[total.start_line - 1 : total.end_line])
    file = project.root / "src/orders.py"
    assert (total.mtime_ns, total.size) == (file.stat().st_mtime_ns, file.stat().st_size)
    assert all(entry.lexical.indices for entry in project.store.chunks["default"].values())


async def test_ids_are_the_same_everywhere(tmp_path: Path) -> None:
    one, two = Project(tmp_path / "one"), Project(tmp_path / "two")
    await one.run()
    await two.run(bodies=False)
    assert [chunk.id for chunk in one.chunks] == [chunk.id for chunk in two.chunks]


async def test_equal_parts_of_a_file_are_told_apart(tmp_path: Path) -> None:
    paragraph = "The same words.\n\n" + "x " * 300 + "\n\n"
    project = Project(tmp_path, files={"a.txt": paragraph * 4})
    report = await project.run()
    assert report.chunks == len({chunk.id for chunk in project.chunks}) >= 4


async def test_an_unchanged_tree_costs_a_stat(tmp_path: Path) -> None:
    project = Project(tmp_path)
    await project.run()
    _age(project)
    await project.run()
    before, embedded = steady(project.chunks), project.embedder.documents_embedded  # type: ignore[attr-defined]
    project.restart(chunk_text=no_chunking)
    for file in project.root.rglob("*.py"):
        file.chmod(0)  # not even opened
    report = await project.run()
    assert (report.outcome, report.unchanged, report.added, report.changed) == ("complete", 4, 0, 0)
    assert (report.embedded, project.embedder.documents_embedded) == (0, embedded)  # type: ignore[attr-defined]
    assert steady(project.chunks) == before


async def test_the_content_decides_not_the_time(tmp_path: Path) -> None:
    project = Project(tmp_path)
    await project.run()
    os.utime(project.root / "src/orders.py", ns=(5_000_000_001, 5_000_000_001))
    report = await project.run()
    assert (report.unchanged, report.changed, report.embedded) == (4, 0, 0)
    assert {chunk.mtime_ns for chunk in project.chunks if chunk.path == "src/orders.py"} == {5_000_000_001}
    assert project.complete


async def test_only_changed_chunks_are_embedded_again(tmp_path: Path) -> None:
    functions = [f"def function_{name}(value):\n    return value + {at}\n" for at, name in enumerate("abcdef")]
    project = Project(tmp_path, files={"m.py": "\n\n".join(functions) * 1})
    settings = IngestSettings(max_chunk_chars=200)
    project.settings = settings
    project.restart()
    await project.run()
    before = {chunk.id for chunk in project.chunks}
    project.write({"m.py": "# a new first line\n\n\n" + "\n\n".join(functions).replace("value + 5", "value * 55")})
    report = await project.run()
    assert (report.changed, report.added, report.unchanged) == (1, 0, 0)
    after = {chunk.id for chunk in project.chunks}
    assert 0 < report.embedded <= 2 * len(after - before)
    assert any("value * 55" in chunk.text for chunk in project.chunks)
    assert not any("value + 5" in chunk.text for chunk in project.chunks)
    assert project.complete


async def test_a_shrunk_file_leaves_no_tail(tmp_path: Path) -> None:
    functions = [f"def function_{name}():\n    return '{name * 300}'\n" for name in "abcdef"]
    project = Project(tmp_path, files={"m.py": "\n\n".join(functions)})
    await project.run()
    project.write({"m.py": "\n\n".join(functions[:2])})
    report = await project.run()
    clean = Project(tmp_path / "clean", files={"m.py": "\n\n".join(functions[:2])})
    await clean.run()
    assert [chunk.id for chunk in project.chunks] == [chunk.id for chunk in clean.chunks]
    assert report.chunks == len(clean.chunks)
    assert project.complete


async def test_deleted_and_renamed_files_leave_nothing_behind(tmp_path: Path) -> None:
    project = Project(tmp_path)
    await project.run()
    (project.root / "src/retry.py").unlink()
    (project.root / "src/orders.py").rename(project.root / "src/bills.py")
    report = await project.run()
    assert (report.added, report.removed, report.unchanged) == (1, 2, 2)
    assert project.paths == ["docs/guide.md", "settings.toml", "src/bills.py"]
    assert len(project.store.vectors) == 2 * len(project.chunks)


async def test_a_part_alone_leaves_the_rest_alone(tmp_path: Path) -> None:
    project = Project(tmp_path)
    await project.run()
    project.write({"docs/guide.md": "# Other\n", "src/new.py": "x = 1\n", "top.py": "y = 1\n"})
    (project.root / "src/retry.py").unlink()
    (project.root / "settings.toml").unlink()
    report = await project.run(path=project.root / "src")
    assert (report.added, report.removed, report.changed, report.unchanged) == (1, 1, 0, 1)
    assert project.paths == ["docs/guide.md", "settings.toml", "src/new.py", "src/orders.py"]
    assert any("Returns" in chunk.text for chunk in project.chunks)
    assert report.chunks == len(project.chunks)


async def test_a_single_file_and_one_that_is_gone(tmp_path: Path) -> None:
    project = Project(tmp_path)
    assert (await project.run(path=project.root / "src/retry.py")).added == 1
    assert project.paths == ["src/retry.py"]
    (project.root / "src/retry.py").unlink()
    report = await project.run(path=project.root / "src/retry.py")
    assert (report.removed, report.outcome, report.warnings) == (1, "complete", ())
    with pytest.raises(RootError, match=r"retry\.py does not exist"):
        await project.run(path=project.root / "src/retry.py")
    with pytest.raises(RootError, match="outside the corpus"):
        await project.run(path=tmp_path)


@pytest.mark.parametrize("then", ["emptied", "gone", "left out"])
async def test_a_folder_that_nothing_is_left_of_is_done(then: str, tmp_path: Path) -> None:
    project = Project(tmp_path)
    await project.run()
    for file in (project.root / "src").iterdir():
        file.unlink()
    if then == "gone":
        (project.root / "src").rmdir()
    elif then == "left out":
        project.write({"src/empty.py": ""})
    report = await project.run(path=project.root / "src")
    assert (report.removed, report.outcome) == (2, "complete")
    assert project.paths == ["docs/guide.md", "settings.toml"]
    assert [warning.partition(":")[0] for warning in report.warnings] == ["Nothing is indexed"] * (then == "left out")


async def test_what_is_indexed_and_gone_is_held_for_those_who_may_read_it(tmp_path: Path) -> None:
    files = {**FILES, "src/hr/pay.md": "# Pay\n\nA lot.\n", "src/empty.py": ""}
    project = Project(tmp_path, files=files)
    project.corpus = CorpusSettings(
        roots=[str(project.root)], grants=[GrantSettings(paths=["src/hr/**"], readers=["team:hr"])]
    )
    indexer = replace(ANN, permissions=frozenset({"ingest"}))

    def held(actor: Actor, path: str) -> bool:
        return project.service.holds(actor, project.corpus, project.root / path)

    assert not held(OPERATOR, "src")
    await project.run()
    shutil.rmtree(project.root / "src")
    for path, everything, own in (
        ("src", True, True),
        (".", True, True),
        ("src/retry.py", True, True),
        ("src/hr", True, False),
        ("src/hr/pay.md", True, False),
        ("src/empty.py", False, False),
        ("src/re", False, False),
        ("sr", False, False),
        ("../outside", False, False),
    ):
        assert (held(OPERATOR, path), held(indexer, path)) == (everything, own), path
    report = await project.run(path=project.root / "src")
    assert (report.removed, project.paths) == (3, ["docs/guide.md", "settings.toml"])
    assert not held(OPERATOR, "src")
    with pytest.raises(PermissionDeniedError):
        held(ANN, "src")


async def test_a_file_of_the_same_size_and_time_is_read_again_once_it_was_written(tmp_path: Path) -> None:
    project = Project(tmp_path)
    file = project.root / "src/orders.py"
    os.utime(file, ns=(5_000_000_001, 5_000_000_001))
    await project.run()
    file.write_text(file.read_text("utf-8").replace("order", "PARCE"), "utf-8")
    os.utime(file, ns=(5_000_000_001, 5_000_000_001))
    report = await project.run()
    assert (report.changed, report.unchanged) == (1, 3)
    assert any("PARCE" in chunk.text for chunk in project.chunks)


async def test_sources_tell_whether_they_are_stale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = Project(tmp_path)
    await project.run()
    freshness = Freshness(project.service.locate)
    assert await freshness.stale(project.chunks) == frozenset()
    project.write({"src/orders.py": "def other():\n    pass\n"})
    (project.root / "src/retry.py").unlink()
    stale = await freshness.stale(project.chunks)
    assert {chunk.path for chunk in project.chunks if chunk.id in stale} == {"src/orders.py", "src/retry.py"}
    settings = project.root / "settings.toml"
    os.utime(settings, ns=(5_000_000_001, 5_000_000_001))
    await project.run()
    assert await freshness.stale(project.chunks) == frozenset()
    os.utime(settings, ns=(6_000_000_001, 6_000_000_001))  # touched, and the same
    assert await freshness.stale(project.chunks) == frozenset()
    settings.write_text(settings.read_text("utf-8").swapcase(), "utf-8")  # of the same size, and another
    assert {chunk.path for chunk in project.chunks if chunk.id in await freshness.stale(project.chunks)} == {
        "settings.toml"
    }
    monkeypatch.setattr("ragpilot.freshness._READ_MOST", 3)
    settings.write_text(settings.read_text("utf-8").swapcase(), "utf-8")
    assert await freshness.stale(project.chunks)  # too much to read: it counts as changed
    shutil.rmtree(project.root)
    assert await freshness.stale(project.chunks) == frozenset()  # nobody can tell


async def test_other_limits_read_files_again(tmp_path: Path) -> None:
    project = Project(tmp_path, settings=IngestSettings(max_file_bytes=1024))
    project.write({"large.txt": "words " * 400})
    assert [item.path for item in (await project.run()).left_out] == ["large.txt"]
    project.settings = IngestSettings()
    project.restart()
    report = await project.run()
    assert (report.added, report.unchanged) == (1, 4)


def _age(project: Project) -> None:
    """Let the files be older than any timestamp's grain."""
    for file in project.root.rglob("*"):
        if file.is_file():
            stamp = time.time_ns() - 3_600_000_000_001
            os.utime(file, ns=(stamp, stamp))
