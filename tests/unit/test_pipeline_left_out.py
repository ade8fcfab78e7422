"""What runs leave out, and say of it."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from ragpilot.config import CorpusSettings
from ragpilot.errors import RootError
from ragpilot.ingest import scan
from ragpilot.ingest.chunkers import Span, chunk_text_with_notes
from ragpilot.ingest.walk import Listing, walk
from ragpilot.types import LeftOut
from tests.fakes import ANN, OPERATOR
from tests.ingestion import FILES, Project
from tests.trees import git, needs_git

pytestmark = pytest.mark.asyncio


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


@needs_git
async def test_small_logs_that_git_tracks_are_indexed(tmp_path: Path) -> None:
    large = "2024-05-01 order shipped\n" * 4000
    project = Project(tmp_path, files={"sample.log": "order 7 shipped\n", "other.log": "order 8\n", "large.log": large})
    git(project.root, "init", "-q")
    git(project.root, "add", "large.log")
    await project.run()
    assert not project.chunks
    git(project.root, "add", "sample.log")
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


@needs_git
async def test_a_log_that_git_does_not_track_any_more_is_left_out_again(tmp_path: Path) -> None:
    project = Project(tmp_path, files={"sample.log": "order 7 shipped\n"})
    git(project.root, "init", "-q")
    git(project.root, "add", "sample.log")
    await project.run()
    assert project.paths == ["sample.log"]
    git(project.root, "rm", "-q", "--cached", "sample.log")
    await project.run()
    assert project.paths == []
