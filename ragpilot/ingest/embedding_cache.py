"""Vectors of texts that were embedded before: what a branch switch and back, a move or a rebuild would embed again.

Keyed by the embedder's identity and the text, so that a vector from it is the one the embedder would give; with a
checksum, so that one that was damaged since is not taken for it, and is embedded again. Bounded in size; what was used
longest ago goes first. Never the reason why a run fails: without it, everything is embedded. Nor the reason why a disk
is full: it leaves the last of it to the index.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ragpilot.disk import NEEDED, free_bytes
from ragpilot.errors import StateError
from ragpilot.ingest.database import Database
from ragpilot.types import EmbedderIdentity, Vector

logger = logging.getLogger(__name__)

FILE_NAME = "embeddings.sqlite3"
MOST_BYTES = 256 * 1024 * 1024

_VERSION = 2
_SCHEMA = """
CREATE TABLE vectors (key BLOB PRIMARY KEY, vector BLOB NOT NULL, checksum BLOB NOT NULL, used INTEGER NOT NULL);
CREATE INDEX vectors_used ON vectors (used)
"""
_ROW_BYTES = 100
"""What a row takes beside its vector, about."""
_AT_ONCE = 500
_LEFT_FREE = 2 * NEEDED
"""What the cache leaves free on its disk."""


class EmbeddingCache:
    """The cache of a state folder, for one embedder. All calls block: run them in a thread."""

    def __init__(self, state: Path, identity: EmbedderIdentity, *, most_bytes: int = MOST_BYTES) -> None:
        self._salt = hashlib.blake2b(repr(identity).encode(), digest_size=32).digest()
        self._dimensions = identity.dimensions
        self._most_rows = most_bytes // (identity.dimensions * 4 + _ROW_BYTES)
        self._folder = state
        self._database: Database | None = None
        try:
            self._database = Database(state / FILE_NAME, _SCHEMA, _VERSION)
        except StateError as error:
            logger.warning("embedding goes on without its cache: %s", error)

    def get(self, texts: Sequence[str]) -> dict[str, Vector]:
        """The vectors that are known, by text."""
        keys = {self._key(text): text for text in texts}
        found: dict[str, Vector] = {}
        for some in _slices(list(keys)):
            marks = ", ".join("?" * len(some))
            rows = self._execute(f"SELECT key, vector, checksum FROM vectors WHERE key IN ({marks})", some)  # noqa: S608
            for key, blob, checksum in rows:
                # What stands there may be anything, also of another type than was written.
                if isinstance(blob, bytes) and len(blob) == 4 * self._dimensions and checksum == _checksum(key, blob):
                    found[keys[key]] = np.frombuffer(blob, dtype="<f4").astype(np.float32)
            if rows and not self._short():
                now = int(time.time())
                used = ", ".join("?" * len(rows))
                self._execute(f"UPDATE vectors SET used = {now} WHERE key IN ({used})", [key for key, *_ in rows])  # noqa: S608
        return found

    def put(self, vectors: Mapping[str, Vector]) -> None:
        """Keep vectors by text."""
        if self._database is None or self._short():
            return
        now = int(time.time())
        pairs = ((self._key(text), vector.astype("<f4").tobytes()) for text, vector in vectors.items())
        rows = [(key, blob, _checksum(key, blob), now) for key, blob in pairs]
        try:
            with self._database.transaction() as connection:
                connection.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?, ?)", rows)
        except StateError as error:
            self._give_up(error)

    def trim(self) -> None:
        """Drop what was used longest ago, down to the bound."""
        counted = self._execute("SELECT count(*) FROM vectors", [])
        surplus = counted[0][0] - self._most_rows if counted else 0
        if surplus > 0:
            oldest = f"SELECT rowid FROM vectors ORDER BY used LIMIT {surplus}"  # noqa: S608 - a number
            self._execute(f"DELETE FROM vectors WHERE rowid IN ({oldest})", [])  # noqa: S608

    def close(self) -> None:
        """Close the file. Idempotent."""
        if self._database is not None:
            self._database.close()
            self._database = None

    def _short(self) -> bool:
        left = free_bytes(self._folder)
        return left is not None and left < _LEFT_FREE

    def _key(self, text: str) -> bytes:
        return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=16, key=self._salt).digest()

    def _execute(self, statement: str, values: Sequence[bytes]) -> list[tuple[Any, ...]]:
        if self._database is None:
            return []
        try:
            with self._database.transaction() as connection:
                return connection.execute(statement, values).fetchall()
        except StateError as error:
            self._give_up(error)
            return []

    def _give_up(self, error: StateError) -> None:
        logger.warning("embedding goes on without its cache: %s", error)
        self.close()


def _checksum(key: bytes, vector: bytes) -> bytes:
    """Of a vector in its place: one that stands under another text's key does not have it."""
    return hashlib.blake2b(key + vector, digest_size=8).digest()


def _slices(keys: list[bytes]) -> list[list[bytes]]:
    return [keys[at : at + _AT_ONCE] for at in range(0, len(keys), _AT_ONCE)]
