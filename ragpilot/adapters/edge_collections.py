"""The collections of one store folder, opened when they are first asked for. In the owner process."""

from __future__ import annotations

import os
import shutil
from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TypeVar, cast

from filelock import FileLock, Timeout
from qdrant_edge import EdgeShard, UpdateOperation

from ragpilot.adapters import edge_record
from ragpilot.adapters.edge_record import CollectionRecord
from ragpilot.adapters.edge_room import Room
from ragpilot.adapters.edge_seal import Seal
from ragpilot.adapters.edge_shard import create_shard, open_shard
from ragpilot.adapters.index_identity import REBUILD, is_corpus_name, require_corpus_name
from ragpilot.disk import is_full
from ragpilot.errors import RagPilotError, StoreDamagedError, StoreError, StoreFullError, StoreInUseError
from ragpilot.types import IndexIdentity

_T = TypeVar("_T")

_REMEMBERED = 128
"""Counts, facets and statistics of terms kept in memory, of a collection."""
LOCK_PATIENCE = 3.0
"""Seconds to wait for the last owner, which may still be flushing after its parent was killed."""


class Collection:
    """An open shard and its record."""

    def __init__(self, folder: Path, shard: EdgeShard, record: CollectionRecord, room: Room) -> None:
        self.shard = shard
        self.record = record
        self.content_version = 0
        """Grows whenever chunks or their readers change; filling in a vector changes neither."""
        self.unflushed = False
        self._folder = folder
        self._room = room
        self._memory: OrderedDict[Hashable, object] = OrderedDict()

    @property
    def dimensions(self) -> int:
        """Numbers of each dense vector."""
        return self.record.identity.embedder.dimensions

    def changing(self, *, content: bool) -> None:
        """Announce a write, before the engine's first update; ``content``: of chunks or readers.

        Raises StoreFullError, before anything is changed, where there is no room for it.
        """
        self._room.require()
        self.record.advance()
        self.unflushed = True
        self.content_version += content

    def update(self, operation: UpdateOperation) -> None:
        """Have the engine write. Raises StoreFullError, before it does, where there is no room for it."""
        self._room.require()
        self.shard.update(operation)

    def flush(self) -> None:
        """Put what was written on disk."""
        if self.unflushed:
            self.shard.flush()
            self.unflushed = False

    def settle(self) -> None:
        """Flush, and put on disk what the collection is now: its exact revision, its chunks, its files."""
        self.shard.flush()
        self.unflushed = False
        self.record.settle(self.record.seal or Seal.take(self.shard, self._folder))

    def close(self) -> None:
        """Settle, unless nothing was written, and let go of the files."""
        try:
            if self.record.seal is None:
                self.settle()
        except Exception as error:
            # On a full disk it stays as after a kill: all that was acknowledged is there.
            if not is_full(error):
                raise
        finally:
            self.shard.close()

    def remembered(self, key: Hashable, compute: Callable[[], _T]) -> _T:
        """``compute()``, or what it gave for the same key before.

        The key names everything that the value depends on: the principals who ask, and a version or revision.
        """
        if key in self._memory:
            self._memory.move_to_end(key)
            return cast("_T", self._memory[key])
        value = self._memory[key] = compute()
        if len(self._memory) > _REMEMBERED:
            self._memory.popitem(last=False)
        return value


class Collections:
    """Every collection under ``root``. One process at a time: a lock is held from the first one that is opened."""

    def __init__(self, root: Path, room: Room | None = None) -> None:
        self.root = root
        self._room = room or Room(root)
        self.failures: dict[str, str] = {}
        """Corpus -> why its collection could not be opened when it was last tried."""
        self._open: dict[str, Collection] = {}
        self._lock = FileLock(root / ".owner.lock", thread_local=False)

    def record(self, corpus: str) -> CollectionRecord | None:
        """What is known of a collection without opening it; None where there is none."""
        if corpus in self._open:
            return self._open[corpus].record
        if not is_corpus_name(corpus):
            return None
        return CollectionRecord.load(self._folder(corpus) / edge_record.FILE_NAME, corpus)

    def find(self, corpus: str) -> Collection | None:
        """The collection, opened if need be; None where there is none, and then nothing is put on disk."""
        if corpus in self._open:
            return self._open[corpus]
        try:
            record = self.record(corpus)
            if record is None:
                return None
            self._take_lock()
            collection = self._opened(corpus, record)
        except RagPilotError as error:
            self.failures[corpus] = error.message
            raise
        self.failures.pop(corpus, None)
        self._open[corpus] = collection
        return collection

    def _opened(self, corpus: str, record: CollectionRecord) -> Collection:
        """The collection's shard, opened; on a disk without room, in that of the reserve."""
        folder = self._shard_folder(corpus)
        short = self._room.shortage() is not None and self._room.give_up()
        try:
            shard = _whole(folder, record.seal)
        except StoreFullError:
            if not self._room.give_up():
                raise
            short = True
            shard = _whole(folder, record.seal)
        collection = Collection(folder, shard, record, self._room)
        if short:
            if record.seal is None:
                # What the log held is done now: the next one to open this needs no room for it.
                collection.settle()
            self._room.settle()
        return collection

    def require(self, corpus: str) -> Collection:
        """The collection, for a writer. Raises StoreError where there is none."""
        collection = self.find(corpus)
        if collection is None:
            raise StoreError(f"There is no collection {corpus!r} to write to.")
        return collection

    def create(self, corpus: str, identity: IndexIdentity) -> Collection:
        """A new collection, in place of whatever an interrupted creation or removal left behind."""
        require_corpus_name(corpus)
        self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._take_lock()
        self._room.require()
        shutil.rmtree(self._folder(corpus), ignore_errors=True)
        self._folder(corpus).mkdir()
        shard_folder = self._shard_folder(corpus)
        shard = create_shard(shard_folder, identity.embedder.dimensions)
        record = CollectionRecord.create(self._folder(corpus) / edge_record.FILE_NAME, corpus, identity)
        edge_record.sync_folder(self.root)
        collection = self._open[corpus] = Collection(shard_folder, shard, record, self._room)
        return collection

    def drop(self, corpus: str) -> None:
        """Remove a collection with its folder, also a damaged one, to build it anew.

        Raises StoreFullError where there would be no room for that even without it: it is all that there is.
        """
        folder = self._folder(corpus)
        if not is_corpus_name(corpus) or not folder.is_dir():
            return
        self._take_lock()
        if problem := self._room.shortage(_size_of(folder)):
            raise problem
        collection = self._open.pop(corpus, None)
        if collection is not None:
            collection.shard.close()
        # The record first: without it the rest is nothing but waste, whatever interrupts the removal.
        (folder / edge_record.FILE_NAME).unlink(missing_ok=True)
        edge_record.sync_folder(folder)
        shutil.rmtree(folder)
        self.failures.pop(corpus, None)

    def flush(self) -> None:
        """Put every write so far on disk."""
        for collection in self._open.values():
            collection.flush()

    def settle(self, corpus: str) -> None:
        """Settle a collection, and hold no more of the disk than need be."""
        self.require(corpus).settle()
        self._settle_room()

    def close(self) -> None:
        """Flush and let go of everything, the lock last."""
        with ExitStack() as closing:  # each step is done, even where another fails
            closing.callback(self._lock.release)
            closing.callback(self._open.clear)
            closing.callback(self._settle_room)
            for collection in self._open.values():
                closing.callback(collection.close)

    def _settle_room(self) -> None:
        # A reserve for the log of one collection is one for all of them.
        if self._open and all(collection.record.seal for collection in self._open.values()):
            self._room.settle()

    def _folder(self, corpus: str) -> Path:
        return self.root / corpus

    def _shard_folder(self, corpus: str) -> Path:
        return self._folder(corpus) / "shard"

    def _take_lock(self) -> None:
        holder = self.root / ".owner.pid"
        if self._lock.is_locked:
            return
        try:
            self._lock.acquire(timeout=LOCK_PATIENCE)
        except Timeout as error:
            raise StoreInUseError(
                f"The store in {self.root} is in use by process {_text_of(holder)}.",
                hint="Stop that process, or ask through it.",
            ) from error
        with suppress(OSError):  # the lock is what counts
            # The one to stop is the program that started this process, not this process.
            holder.write_text(str(os.getppid()), encoding="ascii")


def _whole(folder: Path, seal: Seal | None) -> EdgeShard:
    """The shard in ``folder``, opened. Raises StoreDamagedError where it is not what it was when it was last whole."""
    broken = seal and folder.is_dir() and seal.broken_file(folder)
    if broken:
        raise StoreDamagedError(f"The store in {folder} is damaged: {broken}.", hint=REBUILD)
    shard = open_shard(folder)
    if seal is not None and (missing := seal.missing_chunks(shard)):
        shard.close()
        raise StoreDamagedError(
            f"The store in {folder} is damaged: {missing:,} of its {seal.chunks:,} chunks are missing.", hint=REBUILD
        )
    return shard


def _size_of(folder: Path) -> int:
    """How many bytes of the disk would be free without ``folder``."""
    sizes = 0
    for file in folder.rglob("*"):
        found = file.stat()
        # Files have holes: what counts is what is on the disk, where the system tells it.
        sizes += found.st_blocks * 512 if hasattr(found, "st_blocks") else found.st_size
    return sizes


def _text_of(file: Path) -> str:
    try:
        return file.read_text(encoding="ascii") or "unknown"
    except (OSError, ValueError):
        return "unknown"
