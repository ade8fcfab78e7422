"""A source is stale when its file does not say any more what was indexed, whatever its times say."""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from ragpilot.freshness import Freshness
from ragpilot.ingest.read import content_hash
from ragpilot.types import Chunk
from tests.builders import chunk

LONG_AGO = 1_500_000_000


def indexed(file: Path, *, at: int | None = None) -> Chunk:
    """A chunk of what the file holds now."""
    data, found = file.read_bytes(), file.stat()
    made = chunk(file.name, data.decode("utf-8"), mtime_ns=found.st_mtime_ns, indexed_at=at or int(time.time()))
    return replace(made, content_hash=content_hash(data), size=len(data))


def stale(folder: Path, *chunks: Chunk) -> frozenset[str]:
    return asyncio.run(Freshness(lambda _, path: folder / path).stale(chunks))


def rewrite(file: Path, text: str) -> None:
    """Write other text, and set the modification time back."""
    found = file.stat()
    file.write_text(text, encoding="utf-8")
    os.utime(file, ns=(found.st_atime_ns, found.st_mtime_ns))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "a.py"
    made.write_text("a = 1\n", encoding="utf-8")
    return made


@pytest.mark.parametrize("mtime", [None, LONG_AGO], ids=["new", "old"])
@pytest.mark.parametrize("ahead", [0, 3600, -3600], ids=["now", "clock ahead", "clock behind"])
def test_an_edit_of_the_same_size_and_time_is_seen(file: Path, mtime: int | None, ahead: int) -> None:
    """As ``touch -r``, ``rsync -t`` or a second edit within one tick leave it, also where the clocks differ."""
    if mtime is not None:
        os.utime(file, (mtime, mtime))
    held = indexed(file, at=int(time.time()) + ahead)
    assert stale(file.parent, held) == frozenset()
    rewrite(file, "a = 2\n")
    assert stale(file.parent, held) == {held.id}
    rewrite(file, "a = 1\n")
    assert stale(file.parent, held) == frozenset()


def test_another_time_alone_is_no_change(file: Path) -> None:
    held = indexed(file)
    os.utime(file, (LONG_AGO, LONG_AGO))
    file.chmod(0o600)
    assert stale(file.parent, held) == frozenset()


def test_what_has_taken_the_place_of_a_file(file: Path) -> None:
    held = indexed(file)
    kept = file.rename(file.with_name("kept"))
    assert stale(file.parent, held) == {held.id}
    file.symlink_to(kept)
    assert stale(file.parent, held) == {held.id}
    file.unlink()
    file.mkdir()
    assert stale(file.parent, held) == {held.id}
    file.rmdir()
    os.mkfifo(file)
    assert stale(file.parent, replace(held, size=0)) == {held.id}


def test_each_chunk_is_held_against_what_it_was_made_of(file: Path) -> None:
    """An answer may have met a document before and after it was replaced in the index."""
    before = indexed(file)
    file.write_text("a = 2\n", encoding="utf-8")
    after = indexed(file)
    assert stale(file.parent, before, after) == {before.id}


def test_where_there_is_too_much_to_read_times_decide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [tmp_path / name for name in ("quiet.py", "touched.py", "edited.py")]
    for number, made in enumerate(files):
        made.write_text(f"a = {number}\n", encoding="utf-8")
    held = [indexed(made, at=int(time.time()) + 60) for made in files]
    quiet, touched, edited = held
    for made in files[1:]:
        os.utime(made, (LONG_AGO, LONG_AGO))
    files[2].write_text("b = 2\n", encoding="utf-8")
    size = quiet.size
    for files_read, expected in ((3, {edited.id}), (2, {edited.id}), (1, {edited.id}), (0, {touched.id, edited.id})):
        monkeypatch.setattr("ragpilot.freshness._READ_MOST", files_read * size)
        assert stale(tmp_path, *held) == expected
    # What is read first are the files whose times speak of a change, wherever they rank.
    monkeypatch.setattr("ragpilot.freshness._READ_MOST", size)
    assert stale(tmp_path, edited, quiet, touched) == {edited.id, touched.id}
    # A time that was set back is told from the time of the change, which is not.
    rewrite(files[0], "c = 0\n")
    monkeypatch.setattr("ragpilot.freshness._READ_MOST", 0)
    assert stale(tmp_path, replace(quiet, indexed_at=int(time.time()))) == {quiet.id}
