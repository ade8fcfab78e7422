"""Indexes that are damaged, or that name what no work tree holds: nothing in them is taken on trust."""

from __future__ import annotations

import hashlib
import struct
from pathlib import Path

import pytest

from ragpilot.ingest.gitindex import DamagedIndexError, tracked_paths
from ragpilot.ingest.gitpaths import is_sound
from ragpilot.ingest.repository import Repository, repository_at
from ragpilot.ingest.roots import Root
from ragpilot.ingest.walk import walk
from tests.trees import both_ways, git, needs_git, paths, write

ODD = [
    *("../outside.py", "/etc/passwd", ".git/config", ".GIT/config", "src/.git/config", "src/../../outside.py"),
    *("./src/a.py", "src//a.py", "src/a.py/", "src/.", ".", "..", "git~1/config", ".git ./config", ".g\u200cit/config"),
]


def entry(name: str, mode: int = 0o100644, length: int | None = None) -> bytes:
    raw = name.encode()
    content = struct.pack(">10I20sH", *[0] * 6, mode, 0, 0, 3, b"\1" * 20, len(raw) if length is None else length) + raw
    return content + b"\0" * (8 - len(content) % 8)


def index(*entries: bytes, extensions: bytes = b"", version: int = 2, checksum: bytes | None = None) -> bytes:
    content = b"DIRC" + struct.pack(">II", version, len(entries)) + b"".join(entries) + extensions
    return content + (hashlib.sha1(content, usedforsecurity=False).digest() if checksum is None else checksum)


def made(tmp_path: Path, content: bytes) -> Path:
    """A repository of one file, and one that is ignored, with this index."""
    folder = write(tmp_path / "repository", {"src/a.py": "x = 1\n", "out/b.py": "x = 2\n", ".gitignore": "out/\n"})
    write(tmp_path, {"outside.py": "x = 3\n"})
    write(folder / ".git", {"HEAD": "ref: refs/heads/main\n", "config": "[core]\n\tbare = false\n"})
    (folder / ".git/objects").mkdir()
    (folder / ".git/refs").mkdir()
    (folder / ".git/index").write_bytes(content)
    return folder


def repository(folder: Path) -> Repository:
    found = repository_at(bytes(folder))
    assert found is not None
    return found


@pytest.mark.parametrize("path", ODD)
@both_ways
def test_what_cannot_lie_in_an_index_is_passed_over_and_told(path: str, use_git: bool, tmp_path: Path) -> None:
    folder = made(tmp_path, index(entry(path), entry("out/b.py")))
    listing = walk(Root(folder), use_git=use_git)
    assert paths(listing) == [".gitignore", "out/b.py", "src/a.py"]
    assert [item.path for item in listing.left_out if "out/" not in item.path] == []
    if not (use_git and path == "src/a.py/"):  # as git shows a repository in another
        assert len(listing.notes) == 1
        assert "passed over (1)" in listing.notes[0]


@pytest.mark.parametrize("length", [0, 4, 52, 58, 60, 61, 62, 63, 66, 100, -1, -20])
def test_an_index_that_is_cut_short_gives_nothing(length: int, tmp_path: Path) -> None:
    content = index(entry("out/b.py"), entry("src/a.py"))
    folder = made(tmp_path, content[:length])
    with pytest.raises(DamagedIndexError):
        tracked_paths(repository(folder))
    listing = walk(Root(folder), use_git=False)
    assert paths(listing) == [".gitignore", "src/a.py"]
    assert len(listing.notes) == 1
    assert "listed by the ignore rules alone" in listing.notes[0]


@needs_git
@pytest.mark.parametrize("length", [0, 52, 60, 66, 100])
def test_whatever_git_makes_of_it(length: int, tmp_path: Path) -> None:
    folder = made(tmp_path, index(entry("src/a.py"))[:length])
    listing = walk(Root(folder))
    assert paths(listing) == [".gitignore", "src/a.py"]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        pytest.param(index(entry("src/a.py"), checksum=b"\1" * 20), "checksum", id="checksum"),
        pytest.param(index(entry("src/a.py"), version=5), "version 5", id="version"),
        pytest.param(index(entry("src/a.py", mode=0)), "entries that are none", id="mode"),
        pytest.param(index(entry("src/a.py", length=3)), "wrong length", id="length"),
        pytest.param(index(entry("")), "without a name", id="no name"),
        pytest.param(index(entry("a"), extensions=b"TREE" + struct.pack(">I", 9)), "cut short", id="extension"),
        pytest.param(index(entry("a"), extensions=b"newx" + struct.pack(">I", 0)), "not known here", id="newer"),
        pytest.param(index(entry("a"), extensions=b"link" + struct.pack(">I", 20) + b"\1" * 20), "opened", id="shared"),
        pytest.param(b"JUNK" + bytes(100), "none of git's", id="junk"),
    ],
)
def test_an_index_that_does_not_hold_together_says_why(content: bytes, why: str, tmp_path: Path) -> None:
    with pytest.raises(DamagedIndexError, match=why):
        tracked_paths(repository(made(tmp_path, content)))


def test_a_shared_index_is_bounded_by_its_entries(tmp_path: Path) -> None:
    """A bitmap may say that more entries are deleted than memory could hold."""
    shared = index(entry("src/a.py"), entry("src/b.py"))
    everything = struct.pack(">IIQQI", 0xFFFFFFFF, 2, 0xFFFFFFFF << 1 | 1, 0xFFFFFFFF << 1 | 1, 0)
    content = shared[-20:] + everything
    folder = made(tmp_path, index(extensions=b"link" + struct.pack(">I", len(content)) + content))
    (folder / ".git" / f"sharedindex.{shared[-20:].hex()}").write_bytes(shared)
    assert tracked_paths(repository(folder)) == frozenset()


def test_names_that_grow_without_end_are_refused(tmp_path: Path) -> None:
    grows = struct.pack(">10I20sH", *[0] * 6, 0o100644, 0, 0, 3, b"\1" * 20, 5) + b"\0" + b"abcde\0"
    with pytest.raises(DamagedIndexError, match="wrong length"):
        tracked_paths(repository(made(tmp_path, index(*[grows] * 2000, version=4))))


def test_an_index_without_a_checksum_is_read(tmp_path: Path) -> None:
    folder = made(tmp_path, index(entry("out/b.py"), checksum=bytes(20)))
    assert tracked_paths(repository(folder)) == {b"out/b.py"}


@needs_git
def test_what_git_itself_writes_without_a_checksum_is_read(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    write(tmp_path, {"a.py": "x\n"})
    git(tmp_path, "-c", "index.skipHash=true", "add", ".")
    assert tracked_paths(repository(tmp_path)) == {b"a.py"}


def test_sound_paths() -> None:
    for path in (b"a.py", b"a/.gitignore", b".github/x.yml", b"a/...", b"a\nb", b".gitmodules", b"git/x", b"\xff"):
        assert is_sound(path), path
    for odd in (*map(str.encode, ODD), b"", b"a\0b", b"a/" * 3000 + b"b"):
        assert not is_sound(odd), odd
