"""Runs of ingestion: what they index, what they leave alone, and what they say."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ragpilot.config import CorpusSettings, GrantSettings, IngestSettings
from ragpilot.errors import (
    IndexMismatchError,
    IngestError,
    IngestRunningError,
    PermissionDeniedError,
    RootError,
    StoreDamagedError,
)
from ragpilot.freshness import Freshness
from ragpilot.ingest import scan
from ragpilot.ingest.chunkers import Span, chunk_text_with_notes
from ragpilot.ingest.manifest import FILE_NAME, Manifest
from ragpilot.ingest.walk import Listing, walk
from ragpilot.types import Actor, Chunk, IngestProgress, LeftOut, Vector
from tests.fakes import ANN, OPERATOR, FakeEmbedder, MemoryStore
from tests.ingestion import FILES, Project

pytestmark = pytest.mark.asyncio


def steady(chunks: list[Chunk]) -> list[Chunk]:
    """Chunks without the time at which they were indexed."""
    return [replace(chunk, indexed_at=0) for chunk in chunks]


def no_chunking(*_: Any, **__: Any) -> tuple[list[Span], list[str]]:
    raise AssertionError("nothing had to be chunked")


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


async def test_everything_left_out_is_counted(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write({".gitignore": "*.tmp\n", "a.tmp": "1", ".env": "A=1", "e.py": "", "big.txt": "word " * 500_000})
    project.write({"yarn.lock": "x", "drop/x.py": "1", ".ragpilotignore": "drop/\n", "p_pb2.py": "x"})
    (project.root / "b.py").write_bytes(b"\x89PNG\r\n")
    (project.root / "link.py").symlink_to("src/orders.py")
    expected = {
        ".env": "secret file",
        ".gitignore": "ignore file",
        ".ragpilotignore": "ignore file",
        "a.tmp": "ignored",
        "b.py": "binary",
        "big.txt": "too large",
        "drop/": "ignored",
        "e.py": "empty",
        "link.py": "symlink",
        "p_pb2.py": "generated",
        "yarn.lock": "lock file",
    }
    first = await project.run()
    assert {item.path: item.reason for item in first.left_out} == expected
    second = await project.run()
    assert {item.path: item.reason for item in second.left_out} == expected
    assert project.paths == sorted(FILES)
    counted = dict(Counter(expected.values()))
    assert await project.service.left_out(OPERATOR, project.corpus) == counted
    assert next(iter(await project.service.left_out(OPERATOR, project.corpus))) == "ignore file"  # two of them
    assert await project.service.left_out(ANN, project.corpus) == counted  # hers to read, were it indexed

    shutil.rmtree(project.root / "drop")
    (project.root / "src/void.py").touch()
    await project.run(path=project.root / "src")  # what lies elsewhere stays as it was counted
    assert await project.restart().left_out(OPERATOR, project.corpus) == counted | {"empty": 2}
    await project.run()
    assert await project.service.left_out(OPERATOR, project.corpus) == counted | {"empty": 2, "ignored": 1}
    assert await project.service.left_out(OPERATOR, CorpusSettings(name="other")) == {}


async def test_what_is_left_out_is_known_where_nothing_is_indexed(tmp_path: Path) -> None:
    project = Project(tmp_path, files={"yarn.lock": "a"})
    assert await project.service.left_out(OPERATOR, project.corpus) == {}
    assert not project.state.exists()
    assert (await project.run()).outcome == "nothing"
    assert await project.restart().left_out(OPERATOR, project.corpus) == {"lock file": 1}


async def test_what_stands_around_a_long_literal_is_indexed_with_its_lines(tmp_path: Path) -> None:
    functions = [f"def area_{at}(width):\n    return width * {at}\n" for at in range(41)]
    picture = "aZ3/" * 20_000
    project = Project(
        tmp_path, files={"icon.py": "\n".join([*functions[:20], f'ICON = "{picture}"\n', *functions[20:]])}
    )
    report = await project.run()
    assert (report.added, report.left_out) == (1, ())
    lines = {chunk.symbol: (chunk.start_line, chunk.end_line) for chunk in project.chunks}
    assert (lines["area_0"], lines["ICON"], lines["area_40"]) == ((1, 2), (61, 61), (123, 124))
    assert sum(len(chunk.text) for chunk in project.chunks) < 4_000


async def test_a_file_that_is_left_out_now_is_removed(tmp_path: Path) -> None:
    project = Project(tmp_path)
    await project.run()
    project.write({"settings.toml": "", ".gitignore": "docs/\n"})
    report = await project.run()
    assert report.removed == 2
    assert project.paths == ["src/orders.py", "src/retry.py"]
    project.write({"settings.toml": "a = 1\n"})
    assert (await project.run()).added == 1


@pytest.mark.parametrize(
    "files", [{}, {".gitignore": "*\n", "a.bin": "x"}, {"empty.py": ""}], ids=["no", "ignored", "left"]
)
async def test_nothing_to_index_is_said_and_leaves_nothing_behind(files: dict[str, str], tmp_path: Path) -> None:
    project = Project(tmp_path, files=files)
    report = await project.run()
    assert (report.outcome, report.chunks) == ("nothing", 0)
    assert "Nothing is indexed" in report.warnings[-1]
    assert str(project.root) in report.warnings[-1]
    assert await project.store.describe("default") is None


async def test_a_root_that_cannot_be_indexed_changes_nothing(tmp_path: Path) -> None:
    project = Project(tmp_path)
    await project.run()
    before = project.chunks
    for root, words in {tmp_path / "none": "does not exist", project.root / "settings.toml": "is no folder"}.items():
        with pytest.raises(RootError, match=words):
            await project.run(corpus=CorpusSettings(roots=[str(root)]), rebuild=True)
    assert project.chunks == before


async def test_an_empty_root_looks_like_a_mount_that_is_away(tmp_path: Path) -> None:
    project = Project(tmp_path)
    await project.run()
    kept = project.paths
    shutil.rmtree(project.root)
    project.root.mkdir()
    report = await project.run()
    assert project.paths == kept
    assert "as if it were not mounted" in report.warnings[0]
    report = await project.run(rebuild=True)
    assert (report.outcome, report.chunks) == ("nothing", 0)
    assert project.chunks == []


async def test_files_that_vanish_while_they_are_read(tmp_path: Path) -> None:
    files = {f"m{number:02}.py": f"x = {number}\n" for number in range(50)}
    project = Project(tmp_path, files=files)
    await project.run()
    project.write({name: content + "y = 1\n" for name, content in files.items()})
    left = [f"m{number:02}.py" for number in range(0, 50, 10)]

    def deleting(*arguments: Any, **options: Any) -> tuple[list[Span], list[str]]:
        for name in left:
            (project.root / name).unlink(missing_ok=True)
        return chunk_text_with_notes(*arguments, **options)

    for number, name in enumerate(files):  # the deleted ones are read last
        stamp = 1_000_000_001 if name in left else 2_000_000_001 + number
        os.utime(project.root / name, ns=(stamp, stamp))
    project.restart(chunk_text=deleting)
    report = await project.run()
    assert (report.outcome, report.changed, report.removed) == ("complete", 45, 5)
    assert sorted(item.path for item in report.left_out if item.reason == "vanished") == left
    assert len(project.paths) == 45
    assert (await project.run()).unchanged == 45


async def test_a_link_that_takes_a_folders_place_after_the_walk_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = Project(tmp_path, files={"a/swap/secret.md": "# Pelicans\n\nInside.\n", "top.md": "# Top\n\nHere.\n"})
    place, outside = project.root / "a/swap", tmp_path / "outside"
    os.utime(place / "secret.md", ns=(1_000_000_001, 1_000_000_001))
    outside.mkdir()
    (outside / "secret.md").write_text("# Zebras\n\nOutside.\n", encoding="utf-8")

    def swapping(*arguments: Any, **options: Any) -> Listing:
        listing = walk(*arguments, **options)
        place.rename(tmp_path / "away")
        place.symlink_to(outside)
        return listing

    monkeypatch.setattr(scan, "walk", swapping)
    report = await project.run()
    assert (report.outcome, report.added, project.paths) == ("complete", 1, ["top.md"])
    assert report.left_out == (LeftOut("a/swap/secret.md", "symlink", "a folder above it is a link"),)
    assert not any("Zebras" in chunk.text for chunk in project.chunks)
    assert project.service.read_text("default", "a/swap/secret.md") is None

    # Back in its place, with the times that it had: it is looked at again.
    monkeypatch.undo()
    place.unlink()
    (tmp_path / "away").rename(place)
    assert (await project.run()).added == 1
    assert project.paths == ["a/swap/secret.md", "top.md"]


async def test_a_file_that_breaks_a_chunker_ends_nothing(tmp_path: Path) -> None:
    project = Project(tmp_path)
    await project.run()
    old = [chunk for chunk in project.chunks if chunk.path == "src/orders.py"]

    def breaking(path: str, *arguments: Any, **options: Any) -> tuple[list[Span], list[str]]:
        if path == "src/orders.py":
            raise RecursionError
        return chunk_text_with_notes(path, *arguments, **options)

    project.write({"src/orders.py": "broken()\n", "src/retry.py": "changed()\n", "src/new.py": "new()\n"})
    project.restart(chunk_text=breaking)
    report = await project.run()
    assert (report.outcome, report.added, report.changed) == ("partial", 1, 1)
    assert [(item.path, item.reason, item.detail) for item in report.failed] == [
        ("src/orders.py", "chunking failed", "RecursionError")
    ]
    assert [chunk for chunk in project.chunks if chunk.path == "src/orders.py"] == old
    project.restart(chunk_text=chunk_text_with_notes)
    report = await project.run()
    assert (report.outcome, report.changed, report.unchanged) == ("complete", 1, 4)


async def test_what_chunkers_say_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def noting(path: str, *arguments: Any, **options: Any) -> tuple[list[Span], list[str]]:
        return chunk_text_with_notes(path, *arguments, **options)[0], ["strange"] if path.endswith(".toml") else []

    monkeypatch.setattr("ragpilot.ingest.run.self_test", lambda: {"cobol": "its grammar is missing"})
    project = Project(tmp_path, chunk_text=noting)
    report = await project.run()
    assert report.outcome == "complete"
    assert "cobol is cut by the look of its lines: its grammar is missing" in report.warnings
    assert "Cut less well than their kind allows, 1 file: settings.toml: strange." in report.warnings


# --- readers


async def test_changed_grants_change_readers_alone(tmp_path: Path) -> None:
    project = Project(tmp_path)
    await project.run()
    vectors = dict(project.store.vectors)
    grants = [GrantSettings(paths=["docs/"], readers=["team:docs"]), GrantSettings(paths=["*.toml"], readers=[])]
    restricted = CorpusSettings(roots=project.corpus.roots, grants=grants)
    project.restart(chunk_text=no_chunking)
    # A run over another part closes what is closed now, too.
    report = await project.run(corpus=restricted, path=project.root / "src")
    assert (report.unchanged, report.embedded) == (2, 0)
    readers = {chunk.path: chunk.readers for chunk in project.chunks}
    assert readers["docs/guide.md"] == {"team:docs"}
    assert readers["settings.toml"] == frozenset()
    assert readers["src/orders.py"] == {"team:everyone"}
    assert project.store.vectors == vectors
    assert await project.service.apply_grants(OPERATOR, project.corpus) == 2
    assert {chunk.readers for chunk in project.chunks} == {frozenset({"team:everyone"})}
    assert await project.service.apply_grants(OPERATOR, project.corpus) == 0


async def test_a_grant_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    corpus = CorpusSettings(roots=[str(tmp_path / "project")], grants=[GrantSettings(paths=["[a"], readers=["team:a"])])
    project = Project(tmp_path, corpus=corpus)
    report = await project.run()
    assert "'[a' cannot be read" in report.warnings[0]
    assert {chunk.readers for chunk in project.chunks} == {frozenset()}
    assert project.complete


async def test_secrets_never_reach_the_store(tmp_path: Path) -> None:
    token = "ghp_" + "aB3dE6gH9" * 4
    project = Project(tmp_path)
    project.write({".env": f"T={token}", "id_rsa": token, "src/c.py": f'x = 1\nt = "{token}"\ny = 2\n'})
    report = await project.run()
    assert token not in repr(project.store.chunks)
    assert report.redacted == (LeftOut("src/c.py", "github-token"),)
    assert (await project.run()).redacted == report.redacted  # also of a file that was not read again
    assert (await project.run(path=project.root / "docs")).redacted == ()
    assert token not in repr(report)
    held = next(chunk for chunk in project.chunks if chunk.path == "src/c.py")
    assert held.text.split("\n") == ["x = 1", 't = "[redacted:github-token]"', "y = 2"]
    assert (held.start_line, held.end_line) == (1, 3)
    assert project.service.read_text("default", "src/c.py") == 'x = 1\nt = "[redacted:github-token]"\ny = 2\n'
    assert project.service.read_text("default", ".env") is None
    assert project.service.read_text("other", "src/c.py") is None
    assert project.service.read_text("default", "../state/x") is None


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


async def test_small_logs_that_git_tracks_are_indexed(tmp_path: Path) -> None:
    large = "2024-05-01 order shipped\n" * 4000
    project = Project(tmp_path, files={"sample.log": "order 7 shipped\n", "other.log": "order 8\n", "large.log": large})
    _git(project, "init", "-q")
    _git(project, "add", "large.log")
    await project.run()
    assert not project.chunks
    _git(project, "add", "sample.log")
    await project.run()
    assert {chunk.path for chunk in project.chunks} == {"sample.log"}


async def test_what_an_ignore_file_asks_for_by_name_is_indexed_whatever_it_is(tmp_path: Path) -> None:
    asked = {
        "debug.log": "order 7 shipped\n" * 5000,
        "app.min.js": "function a(){return 1}\n",
        "poetry.lock": '[[package]]\nname = "a"\n',
        "model.pb.go": "// Code generated by protoc. DO NOT EDIT.\npackage model\n",
        "client.py": "# This file is generated. Do not edit.\nx = 1\n",
        "data.csv": "id,name\n" + "7,chair\n" * 3000,
        ".prettierignore": "dist/\n",
    }
    secret = {".env": "PASSWORD=hunter2hunter2\n", "id_rsa": "key\n", "server.key": "key\n"}
    stand_in = {"picture.svg": "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"}
    project = Project(tmp_path, files={**asked, **secret, **stand_in, "a.py": "x = 1\n"})
    await project.run()
    assert project.paths == ["a.py"]
    wanted = "".join(f"!{name}\n" for name in (*asked, *secret, *stand_in))
    project.write({".ragpilotignore": wanted})
    await project.run()
    assert project.paths == sorted([*asked, "a.py"])
    report = await project.run()
    assert (report.changed, report.unchanged) == (0, 8)
    project.write({".ragpilotignore": ""})  # and what is not asked for any more is left out again
    await project.run()
    assert project.paths == ["a.py"]


async def test_a_log_that_git_does_not_track_any_more_is_left_out_again(tmp_path: Path) -> None:
    project = Project(tmp_path, files={"sample.log": "order 7 shipped\n"})
    _git(project, "init", "-q")
    _git(project, "add", "sample.log")
    await project.run()
    assert project.paths == ["sample.log"]
    _git(project, "rm", "-q", "--cached", "sample.log")
    await project.run()
    assert project.paths == []


def _git(project: Project, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=project.root, check=True)  # noqa: S603, S607


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


# --- vectors


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


# --- several roots, several corpora


async def test_several_roots_have_prefixes(tmp_path: Path) -> None:
    for name in ("one/app", "two/app", "one/app/inner"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "m.py").write_text(f"place = '{name}'\n", encoding="utf-8")
    roots = [str(tmp_path / name) for name in ("one/app", "two/app", "one/app/inner")]
    project = Project(tmp_path, files={}, corpus=CorpusSettings(roots=roots))
    await project.run()
    assert project.paths == ["inner/m.py", "one-app/m.py", "two-app/m.py"]
    assert project.service.locate("default", "two-app/m.py") == tmp_path / "two/app/m.py"
    assert project.service.locate("default", "three/m.py") is None
    (tmp_path / "two/app/m.py").unlink()
    report = await project.run(path=tmp_path / "one/app/inner")
    assert (report.unchanged, report.removed) == (1, 0)
    # A root that is not configured any more takes its documents with it.
    report = await project.run(corpus=CorpusSettings(roots=roots[:1]))
    assert project.paths == ["inner/m.py", "m.py"]
    assert (report.added, report.removed) == (1, 2)


async def test_corpora_do_not_touch_each_other(tmp_path: Path) -> None:
    project = Project(tmp_path)
    other = CorpusSettings(name="other", roots=[str(project.root / "src")])
    await project.run()
    await project.run(corpus=other)
    shutil.rmtree(project.root / "src")
    (project.root / "src").mkdir()
    (project.root / "src/left.py").touch()
    assert (await project.run(corpus=other)).removed == 2
    assert project.paths == sorted(FILES)
    assert project.store.chunks["other"] == {}


async def test_the_state_folder_is_never_indexed(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.state = project.root / "state"
    project.restart()
    await project.run()
    await project.run()
    assert project.paths == sorted(FILES)


async def test_the_commit_is_kept(tmp_path: Path) -> None:
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    project = Project(tmp_path)
    commands = ["init -q", "add -A", "-c user.name=t -c user.email=t@example.org commit -qm one"]
    for command in commands:
        subprocess.run(["git", *command.split()], cwd=project.root, check=True, timeout=60)  # noqa: S603, S607, ASYNC221
    await project.run()
    commits = {chunk.commit for chunk in project.chunks}
    assert len(commits) == 1
    assert len(commits.pop() or "") == 40


# --- identity, rebuild, manifest


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


async def test_a_rebuild_embeds_anew(tmp_path: Path) -> None:
    project = Project(tmp_path)
    first = await project.run()
    again = await project.run(rebuild=True)
    assert again.embedded == first.embedded


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


async def test_other_limits_read_files_again(tmp_path: Path) -> None:
    project = Project(tmp_path, settings=IngestSettings(max_file_bytes=1024))
    project.write({"large.txt": "words " * 400})
    assert [item.path for item in (await project.run()).left_out] == ["large.txt"]
    project.settings = IngestSettings()
    project.restart()
    report = await project.run()
    assert (report.added, report.unchanged) == (1, 4)


# --- runs


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


# --- the plan


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


# --- kills


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


def _age(project: Project) -> None:
    """Let the files be older than any timestamp's grain."""
    for file in project.root.rglob("*"):
        if file.is_file():
            stamp = time.time_ns() - 3_600_000_000_001
            os.utime(file, ns=(stamp, stamp))
