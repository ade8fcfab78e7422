"""The small file beside a shard: what the collection was built with, its revision, its last ingestion.

A collection exists exactly while this file does: it is written after its shard is whole, and removed before its
shard is taken apart, so a kill in between leaves nothing but a folder that the next ``ensure`` clears away.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict, replace
from datetime import datetime
from pathlib import Path

from ragpilot.adapters.edge_seal import Seal
from ragpilot.adapters.index_identity import REBUILD, require_identity
from ragpilot.errors import IndexMismatchError, StoreDamagedError, StoreError
from ragpilot.types import CollectionInfo, EmbedderIdentity, IndexIdentity

FILE_NAME = "collection.json"
SCHEMA = 1
"""Of this file and of the shard's layout: vectors, indexes and payload fields."""

RESERVED = 1_000
"""Revisions that one write of the file pays for."""


class CollectionRecord:
    """The file's content, in the owner process.

    The revision in memory is exact. The one on disk is ahead of every revision that was handed out, except after
    ``settle()``, when both are equal. So a process that was killed comes back with a revision nobody has seen, and
    a manifest that is ahead of the store, or behind it, never agrees with it by chance; and a write of a chunk
    costs no write of this file.
    """

    def __init__(
        self, file: Path, corpus: str, identity: IndexIdentity, revision: int, last_ingestion: datetime | None = None
    ) -> None:
        self.corpus = corpus
        self.identity = identity
        self._file = file
        self._revision = revision
        self._last_ingestion = last_ingestion
        self._reserved = revision
        self.seal: Seal | None = None
        """What the shard was at the last ``settle``; None once something was written after it."""

    @classmethod
    def create(cls, file: Path, corpus: str, identity: IndexIdentity) -> CollectionRecord:
        """Write the file of a new collection.

        Its revisions begin at the clock's milliseconds, so that a collection dropped and built anew never repeats
        a revision of the old one.
        """
        record = cls(file, corpus, identity, time.time_ns() // 1_000_000)
        record.settle()
        return record

    @classmethod
    def load(cls, file: Path, corpus: str) -> CollectionRecord | None:
        """Read the file; None where there is none.

        Raises StoreDamagedError when it cannot be understood, IndexMismatchError when another version wrote it.
        """
        try:
            data = json.loads(file.read_bytes())
            if data["schema"] != SCHEMA:
                raise IndexMismatchError(
                    f"The collection {corpus!r} in {file.parent} was written by another version of RagPilot "
                    f"(layout {data['schema']!r}, this version has {SCHEMA}).",
                    hint=REBUILD,
                )
            identity = IndexIdentity(EmbedderIdentity(**data["embedder"]), data["chunker"])
            ended = data["last_ingestion"]
            record = cls(file, data["corpus"], identity, int(data["revision"]), ended and datetime.fromisoformat(ended))
            record.seal = Seal.from_data(data.get("seal"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise StoreDamagedError(f"The collection's file {file} cannot be read: {error}.", hint=REBUILD) from error
        if record.corpus != corpus:
            # On a file system that ignores case two corpora would share a folder, and with it each other's chunks.
            raise StoreError(
                f"The folder {file.parent} holds the corpus {record.corpus!r}, not {corpus!r}.",
                hint="Give one of the two corpora a name that differs in more than upper and lower case.",
            )
        return record

    def info(self) -> CollectionInfo:
        """The record as the port shows it."""
        return CollectionInfo(self.corpus, self.identity, self._revision, self._last_ingestion)

    def require(self, identity: IndexIdentity) -> None:
        """Raise IndexMismatchError unless the collection was built with ``identity``."""
        require_identity(self.corpus, self.identity, identity)

    def advance(self) -> None:
        """Take the next revision. Called before the engine is written to."""
        self._revision += 1
        self.seal = None
        if self._revision >= self._reserved:
            reserved = self._revision + RESERVED
            self._write(reserved)
            self._reserved = reserved

    def adopt_chunker(self, chunker: str) -> None:
        """Be a record of ``chunker``, on disk as well. Called after ``advance()``."""
        before, self.identity = self.identity, replace(self.identity, chunker=chunker)
        try:
            self._write(self._reserved)
        except OSError:
            self.identity = before
            raise

    def ingested(self, finished_at: datetime) -> None:
        """Note the end of a run. Call ``settle()`` once the engine is flushed."""
        self._last_ingestion = finished_at

    def settle(self, seal: Seal | None = None) -> None:
        """Put the exact revision on disk, and what the shard is; a clean end, after the engine's flush."""
        self.seal = seal
        try:
            self._write(self._revision)
        except OSError:
            self.seal = None
            raise
        self._reserved = self._revision

    def _write(self, revision: int) -> None:
        data = {
            "schema": SCHEMA,
            "corpus": self.corpus,
            "embedder": asdict(self.identity.embedder),
            "chunker": self.identity.chunker,
            "revision": revision,
            "last_ingestion": self._last_ingestion and self._last_ingestion.isoformat(),
            "seal": self.seal and self.seal.to_data(),
        }
        temporary = self._file.with_suffix(".tmp")
        try:
            with temporary.open("wb") as target:
                target.write(json.dumps(data, indent=1).encode())
                target.flush()
                os.fsync(target.fileno())
            temporary.replace(self._file)
        except OSError:
            # The file before it still stands, and half of this one takes room that may be what was missing.
            temporary.unlink(missing_ok=True)
            raise
        sync_folder(self._file.parent)


def sync_folder(folder: Path) -> None:
    """Put a folder's entries on disk, where the system can (Windows cannot, and need not)."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
