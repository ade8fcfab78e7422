"""Room on the disk: nothing is written without it, what is there answers, and the next write needs no help."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from ragpilot.adapters import edge_collections, edge_queue, edge_reads, edge_writes
from ragpilot.adapters.chunk_rows import to_row
from ragpilot.adapters.edge_collections import Collections
from ragpilot.adapters.edge_owner import answer
from ragpilot.adapters.edge_process import Limits, OwnerDiedError
from ragpilot.adapters.edge_queue import CallQueue
from ragpilot.adapters.edge_room import HELD, HELD_WRITING, Room, unreadable
from ragpilot.adapters.edge_shard import open_shard
from ragpilot.adapters.edge_store import EdgeStore
from ragpilot.disk import NEEDED, free_bytes, in_words, is_full
from ragpilot.errors import StoreError, StoreFullError
from ragpilot.types import EmbedderIdentity, IndexIdentity
from tests.builders import chunk
from tests.contract.folders import quick_folder
from tests.fakes import ANN

IDENTITY = IndexIdentity(EmbedderIdentity("fake", 4), "chunker")
LEXICAL = ([1], [1.0])


@dataclass
class Disk:
    """A disk that says it has so much free; what is held on it is taken off."""

    room: int | None
    folder: Path

    def free(self, _: Path) -> int | None:
        held = self.folder / ".reserve"
        return None if self.room is None else self.room - (held.stat().st_size if held.exists() else 0)


@pytest.fixture
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Disk]:
    with quick_folder(tmp_path_factory) as folder:
        yield Disk(NEEDED, folder)


def opened(disk: Disk) -> Collections:
    return Collections(disk.folder, Room(disk.folder, disk.free))


def write(collections: Collections, text: str) -> None:
    item = chunk(text=text, path=f"{text}.py")
    edge_writes.upsert(collections, "default", item.document_id, [to_row(item)], [LEXICAL])


def count(collections: Collections) -> int:
    return edge_reads.count(collections, ANN, "default", None)


def reserve(disk: Disk) -> int:
    """Bytes of the reserve that really are on the disk."""
    return (disk.folder / ".reserve").stat().st_blocks * 512


# --- the reserve


def test_a_write_needs_room_and_takes_half_of_it_in_reserve(disk: Disk) -> None:
    room = Room(disk.folder, disk.free)
    room.require()
    assert reserve(disk) >= HELD_WRITING
    assert disk.free(disk.folder) == NEEDED - HELD_WRITING
    room.require()  # what is held counts as room
    assert Room(disk.folder, disk.free).shortage() is None
    room.settle()
    assert HELD <= reserve(disk) < HELD + 10_000
    assert room.give_up()
    assert not room.give_up()
    assert list(disk.folder.iterdir()) == []


def test_a_refusal_names_folder_bytes_and_what_to_do(disk: Disk) -> None:
    disk.room = 1_230_000
    with pytest.raises(StoreFullError) as caught:
        Room(disk.folder, disk.free).require()
    assert str(disk.folder) in caught.value.message
    assert "1.2 MB are free" in caught.value.message
    assert "less than 64.0 MB" in caught.value.message
    assert "`ragpilot index` again" in caught.value.hint
    assert list(disk.folder.iterdir()) == []


def test_a_disk_that_gives_no_numbers_is_written_to(disk: Disk) -> None:
    disk.room = None
    Room(disk.folder, disk.free).require()
    assert reserve(disk) >= HELD_WRITING


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_quota_is_noticed_by_the_reserve(disk: Disk, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    def refuse(*_: int) -> None:
        raise OSError(code, os.strerror(code))

    disk.room = 10**12
    room = Room(disk.folder, disk.free)
    room.settle()
    monkeypatch.setattr(os, "posix_fallocate", refuse)
    with pytest.raises(StoreFullError):
        room.require()
    assert (disk.folder / ".reserve").stat().st_size == HELD


def test_where_nothing_can_be_allocated_the_reserve_is_written(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: int) -> None:
        raise OSError(errno.EOPNOTSUPP, "not supported")

    monkeypatch.setattr(os, "posix_fallocate", unknown)
    Room(disk.folder, disk.free).require()
    assert reserve(disk) >= HELD_WRITING


# --- collections


def test_without_room_nothing_is_created(disk: Disk) -> None:
    disk.room = NEEDED - 1
    collections = opened(disk)
    with pytest.raises(StoreFullError):
        edge_writes.ensure(collections, "default", IDENTITY)
    assert edge_writes.describe(collections, "default") is None
    disk.room = NEEDED
    edge_writes.ensure(collections, "default", IDENTITY)
    collections.close()


def test_every_write_is_refused_untouched_and_reads_go_on(disk: Disk) -> None:
    collections = opened(disk)
    edge_writes.ensure(collections, "default", IDENTITY)
    write(collections, "kept")
    disk.room = NEEDED - 1
    before = edge_writes.describe(collections, "default")
    item = chunk(text="kept", path="kept.py")
    writes: list[Callable[[], object]] = [
        lambda: write(collections, "more"),
        lambda: edge_writes.set_vectors(
            collections, "default", "header", [item.id], np.full((1, 4), 0.5, dtype=np.float32)
        ),
        lambda: edge_writes.delete_documents(collections, "default", [item.document_id]),
        lambda: edge_writes.set_readers(collections, "default", {frozenset({"user:eve"}): [item.document_id]}),
        lambda: edge_writes.record_ingestion(collections, "default", datetime.now(UTC)),
    ]
    for refused in writes:
        with pytest.raises(StoreFullError):
            refused()
    # A manifest that agreed with the store still does.
    assert edge_writes.describe(collections, "default") == before
    assert count(collections) == 1
    assert edge_reads.count(collections, ANN, "default", "header") == 0
    disk.room = NEEDED
    write(collections, "more")
    assert count(collections) == 2
    collections.close()


def test_room_that_ends_within_a_document_ends_the_document(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edge_writes, "_BATCH", 2)
    collections = opened(disk)
    edge_writes.ensure(collections, "default", IDENTITY)
    rows = [to_row(chunk(text=f"text {number}", start=number)) for number in range(6)]
    asked = iter([NEEDED] * 2)
    monkeypatch.setattr(disk, "free", lambda _: next(asked, 0) - HELD_WRITING)
    collections._room._free = disk.free
    with pytest.raises(StoreFullError):
        edge_writes.upsert(collections, "default", "document", rows, [LEXICAL] * 6)
    assert count(collections) == 2
    collections.close()


def test_a_rebuild_is_refused_before_it_drops_what_could_not_be_built_again(disk: Disk) -> None:
    collections = opened(disk)
    edge_writes.ensure(collections, "default", IDENTITY)
    write(collections, "kept")
    disk.room = NEEDED - 2**40
    with pytest.raises(StoreFullError):
        edge_writes.drop(collections, "default")
    assert count(collections) == 1
    # The space of the collection itself is room for the next one.
    disk.room = NEEDED - 1
    size = sum(file.stat().st_blocks for file in (disk.folder / "default").rglob("*")) * 512
    assert size > 1
    edge_writes.drop(collections, "default")
    assert edge_writes.describe(collections, "default") is None
    collections.close()


def test_the_reserve_is_small_once_the_log_is_empty(disk: Disk) -> None:
    collections = opened(disk)
    for corpus in ("default", "other"):
        edge_writes.ensure(collections, corpus, IDENTITY)
    write(collections, "kept")
    assert reserve(disk) >= HELD_WRITING
    # The other corpus is in mid-run.
    edge_writes.record_ingestion(collections, "other", datetime.now(UTC))
    assert reserve(disk) >= HELD_WRITING
    edge_writes.record_ingestion(collections, "default", datetime.now(UTC))
    assert reserve(disk) < HELD_WRITING
    write(collections, "more")
    assert reserve(disk) >= HELD_WRITING
    collections.close()
    assert HELD <= reserve(disk) < HELD + 10_000


def test_a_killed_owner_leaves_the_reserve_to_the_next_one(disk: Disk) -> None:
    first = opened(disk)
    edge_writes.ensure(first, "default", IDENTITY)
    write(first, "kept")
    collection = first.require("default")
    collection.flush()
    collection.shard.close()  # its record is not settled, as after a kill
    first._lock.release()
    disk.room = HELD_WRITING  # others have taken all that was free
    second = opened(disk)
    assert count(second) == 1
    # The log is done with, and settled: from now on opening needs next to nothing.
    assert second.require("default").record.seal is not None
    assert (disk.folder / ".reserve").stat().st_size == HELD
    with pytest.raises(StoreFullError):
        write(second, "more")
    second.close()


def test_a_shard_that_cannot_be_opened_for_want_of_room_is_not_called_damaged(
    disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    collections = opened(disk)
    edge_writes.ensure(collections, "default", IDENTITY)
    write(collections, "kept")
    collections.close()
    genuine = open_shard

    def refuse(folder: Path) -> object:
        if (disk.folder / ".reserve").exists():
            raise unreadable(folder, 0)
        return genuine(folder)

    monkeypatch.setattr(edge_collections, "open_shard", refuse)
    again = opened(disk)
    assert count(again) == 1
    again.close()
    (disk.folder / ".reserve").unlink()
    monkeypatch.setattr(edge_collections, "open_shard", lambda folder: (_ for _ in ()).throw(unreadable(folder, 0)))
    with pytest.raises(StoreFullError, match="0 bytes are free"):
        count(opened(disk))


def test_a_close_without_room_for_the_record_loses_nothing(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    collections = opened(disk)
    edge_writes.ensure(collections, "default", IDENTITY)
    write(collections, "kept")
    record = collections.require("default").record
    given = record.info().revision

    def no_room(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(record, "_write", no_room)
    collections.close()
    again = opened(disk)
    assert count(again) == 1
    assert again.require("default").record.info().revision > given
    again.close()


def test_a_revision_that_could_not_be_reserved_is_reserved_by_the_next_write(
    disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    collections = opened(disk)
    edge_writes.ensure(collections, "default", IDENTITY)
    record = collections.require("default").record
    genuine, calls = record._write, []

    def fails_once(revision: int) -> None:
        calls.append(revision)
        if len(calls) == 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        genuine(revision)

    monkeypatch.setattr(record, "_write", fails_once)
    with pytest.raises(OSError, match="No space"):
        write(collections, "one")
    write(collections, "two")
    assert len(calls) == 2
    collections.close()


def test_a_collection_that_was_only_read_is_not_written_when_it_is_closed(disk: Disk) -> None:
    collections = opened(disk)
    edge_writes.ensure(collections, "default", IDENTITY)
    collections.close()
    record = disk.folder / "default" / "collection.json"
    before = record.stat().st_mtime_ns
    again = opened(disk)
    assert count(again) == 0
    again.close()
    assert record.stat().st_mtime_ns == before


# --- how it is told


def test_what_the_engine_says_of_a_full_disk_is_told_as_such(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    collections = opened(disk)

    def engine(*_: object) -> None:
        raise Exception("Service runtime error: IO Error: No space left on device (os error 28)")

    monkeypatch.setattr(edge_writes, "failures", engine)
    [(succeeded, error)] = answer(collections, [(edge_writes.failures, (), {})])
    assert not succeeded
    assert isinstance(error, StoreFullError)
    # This disk has room by its numbers: then it is a quota, or its inodes.
    assert "quota" in error.message


def test_an_owner_that_a_full_disk_keeps_killing_is_told_as_such(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    def dies(*_: object) -> None:
        raise OwnerDiedError("was ended by SIGBUS")

    queue = CallQueue(disk.folder, Limits())
    monkeypatch.setattr(queue, "_ask_once", dies)
    with pytest.raises(StoreError, match="SIGBUS") as caught:
        queue.read(edge_writes.failures).result(10)
    assert not isinstance(caught.value, StoreFullError)
    monkeypatch.setattr(edge_queue, "shortage", lambda root: unreadable(root, 0))
    with pytest.raises(StoreFullError, match="too little to open"):
        queue.read(edge_writes.failures).result(10)
    queue.close()


@pytest.mark.asyncio
async def test_check_is_well_and_says_that_nothing_can_be_written(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    store = EdgeStore(disk.folder)
    assert "full" not in (await store.check()).detail
    monkeypatch.setattr("ragpilot.adapters.edge_store.shortage", lambda root: Room(root, lambda _: 5).shortage())
    health = await store.check()
    assert health.ok
    assert "5 bytes are free" in health.detail
    await store.aclose()


@pytest.mark.parametrize(
    ("size", "words"),
    [(0, "0 bytes"), (999, "999 bytes"), (1_000, "1.0 kB"), (64_000_000, "64.0 MB"), (123_456_789, "123 MB"),
     (45_600_000_000, "45.6 GB"), (7 * 10**15, "7000 TB")],
)  # fmt: skip
def test_bytes_in_words(size: int, words: str) -> None:
    assert in_words(size) == words


def test_free_bytes_are_those_of_the_nearest_folder_that_exists(tmp_path: Path) -> None:
    here = free_bytes(tmp_path)
    assert here is not None
    assert here > 0
    below = free_bytes(tmp_path / "not" / "yet")
    assert below is not None
    assert abs(below - here) < 2**33


def test_which_errors_say_that_a_disk_is_full() -> None:
    assert is_full(OSError(errno.ENOSPC, "x"))
    assert is_full(OSError(errno.EDQUOT, "x"))
    assert is_full(Exception("Disk quota exceeded (os error 122)"))
    assert not is_full(OSError(errno.EACCES, "no space left on device"))
    assert not is_full(Exception("out of memory"))
