"""Files as they are read: binary or text, bounded, followed by no link."""

from __future__ import annotations

import gzip
import os
import random
import shutil
import tracemalloc
from pathlib import Path

import pytest

from ragpilot.ingest import opening
from ragpilot.ingest.read import RawFile, Refusal, content_hash, read_file, text_of
from ragpilot.ingest.reasons import Reason

LIMIT = 1_000_000


NOISE = random.Random(1).randbytes(300_000)  # noqa: S311 - no secret depends on it


def read(folder: Path, data: bytes, name: str = "file.py", limit: int = LIMIT) -> RawFile | Refusal:
    (folder / name).write_bytes(data)
    return read_file(os.fsencode(folder / name), inside=os.fsencode(folder), max_bytes=limit)


@pytest.mark.parametrize(
    "data",
    [
        NOISE,
        gzip.compress(b"text " * 1000),
        b"\x89PNG\r\n\x1a\n" + b"looks like text",
        b"%PDF-1.7\n%text follows\n",
        b"PK\x03\x04mimetype",
        b"GIF89a all ASCII from here on",
        b"\0" * 500,
        b"\x01\x02\x03\x04\x05\x06 few letters \x0e\x0f" * 30,
        NOISE.replace(b"\0", b"\1"),
        b"#!/bin/sh\nexit 0\n" * 600 + NOISE,
        b"\0\1\2",
        b"ab\1",
    ],
    ids=[
        *(
            "noise",
            "gzip",
            "png",
            "pdf",
            "zip",
            "gif",
            "nuls",
            "controls",
            "noise without nul",
            "payload behind a head",
        ),
        *("three bytes", "a control of three"),
    ],
)
def test_binaries_are_told_by_content(data: bytes, tmp_path: Path) -> None:
    raw = read(tmp_path, data, "looks_like.py")
    refusal = raw if isinstance(raw, Refusal) else text_of(raw)
    assert refusal == Refusal(Reason.BINARY)


def test_a_large_binary_costs_its_first_bytes(tmp_path: Path) -> None:
    with (tmp_path / "search.index").open("wb") as file:
        file.write(NOISE)
        file.truncate(500_000_000)
    tracemalloc.start()
    found = read_file(os.fsencode(tmp_path / "search.index"), inside=os.fsencode(tmp_path), max_bytes=10**9)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found == Refusal(Reason.BINARY)
    assert peak < 1_000_000


def test_limits(tmp_path: Path) -> None:
    assert isinstance(read(tmp_path, b"x" * 2000, limit=2000), RawFile)
    refusal = read(tmp_path, b"x" * 2001, limit=2000)
    assert refusal == Refusal(Reason.TOO_LARGE, "2001 bytes, limit 2000")
    for blank in (b"", b"\n\n\n", b" \t\r\n"):
        assert read(tmp_path, blank) == Refusal(Reason.EMPTY)
    marked = read(tmp_path, b"\xef\xbb\xbf \n")
    assert isinstance(marked, RawFile)
    assert text_of(marked) == Refusal(Reason.EMPTY)


def test_what_took_the_place_of_a_file(tmp_path: Path) -> None:
    assert read_file(os.fsencode(tmp_path / "gone"), inside=os.fsencode(tmp_path), max_bytes=LIMIT) == Refusal(
        Reason.VANISHED
    )
    os.mkfifo(tmp_path / "pipe")
    assert read_file(os.fsencode(tmp_path / "pipe"), inside=os.fsencode(tmp_path), max_bytes=LIMIT) == Refusal(
        Reason.SPECIAL
    )
    (tmp_path / "folder").mkdir()
    assert read_file(os.fsencode(tmp_path / "folder"), inside=os.fsencode(tmp_path), max_bytes=LIMIT) == Refusal(
        Reason.SPECIAL
    )
    (tmp_path / "link").symlink_to(tmp_path / "file")
    (tmp_path / "file").write_text("x", encoding="utf-8")
    with pytest.raises(OSError, match="link"):
        read_file(os.fsencode(tmp_path / "link"), inside=os.fsencode(tmp_path), max_bytes=LIMIT)


@pytest.mark.parametrize("by_folders", [True, False])
def test_no_link_on_the_way_is_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_folders: bool) -> None:
    monkeypatch.setattr(opening, "_BY_FOLDERS", by_folders)
    root, outside = tmp_path / "root", tmp_path / "outside"
    (root / "a/b").mkdir(parents=True)
    (outside / "b").mkdir(parents=True)
    (root / "a/b/own.md").write_text("ours", encoding="utf-8")
    (outside / "b/own.md").write_text("theirs", encoding="utf-8")
    inside = os.fsencode(root)

    def read_own() -> RawFile | Refusal:
        return read_file(inside + b"/a/b/own.md", inside=inside, max_bytes=LIMIT)

    found = read_own()
    assert isinstance(found, RawFile)
    assert found.data == b"ours"
    for linked, target in (("a", outside), ("a/b", outside / "b"), ("a", root / "kept")):
        (root / linked).rename(root / "kept")
        (root / linked).symlink_to(target)
        assert read_own() == Refusal(Reason.SYMLINK, "a folder above it is a link")
        (root / linked).unlink()
        (root / "kept").rename(root / linked)
    shutil.rmtree(root / "a")
    (root / "a").write_text("a file", encoding="utf-8")
    assert read_own() == Refusal(Reason.VANISHED)
    # What is above the root is the operator's, links and all.
    (tmp_path / "by-link").symlink_to(root)
    (root / "top.md").write_text("top", encoding="utf-8")
    by_link = os.fsencode(tmp_path / "by-link")
    found = read_file(by_link + b"/top.md", inside=by_link, max_bytes=LIMIT)
    assert isinstance(found, RawFile)
    assert found.data == b"top"
    assert read_file(inside + b"/../outside/b/own.md", inside=inside, max_bytes=LIMIT) == Refusal(Reason.VANISHED)
    assert read_file(os.fsencode(outside / "b/own.md"), inside=inside, max_bytes=LIMIT) == Refusal(Reason.VANISHED)


def test_identity_is_the_content(tmp_path: Path) -> None:
    raw = read(tmp_path, b"a = 1\n")
    assert isinstance(raw, RawFile)
    assert (raw.content_hash, raw.size) == (content_hash(b"a = 1\n"), 6)
    assert raw.mtime_ns == (tmp_path / "file.py").stat().st_mtime_ns
