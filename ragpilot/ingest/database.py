"""SQLite files of the state folder that hold nothing which could not be had again."""

from __future__ import annotations

import contextlib
import logging
import os
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from ragpilot.disk import free_bytes
from ragpilot.errors import StateError, StateFullError
from ragpilot.files import full, make_folder

logger = logging.getLogger(__name__)

_NEEDED = 1_000_000
"""With less free, no file is opened or written: its memory is shared through a mapped one, whose growth on a disk
without room is no error but a signal that ends the process."""


class Database:
    """One file, opened or made anew where it is damaged or of another version. Usable from any thread, one at a time.

    Errors of the file are StateError; StateFullError where its disk has no room, which even reading needs some of.
    """

    def __init__(self, path: Path, schema: str, version: int, *, copy_when_full: bool = False) -> None:
        """Open the file.

        Args:
            path: The file.
            schema: Statements that make its tables.
            version: Of the schema; a file of another one is made anew.
            copy_when_full: On a full disk, work on a copy in memory that is gone afterwards: of the file where it was
                closed well, else without anything in it.
        """
        make_folder(path.parent)
        self._path = path
        self._lock = threading.Lock()
        self._copied = False
        try:
            self._require_room()
            self._connection = self._open(schema, version)
        except StateFullError as error:
            if not copy_when_full:
                raise
            logger.info("what is noted in %s is not kept: %s", path.name, error.message)
            self._connection = _copy(path, schema, version)
            self._copied = True

    @contextlib.contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """The connection, for statements that happen together or not at all."""
        with self._lock:
            if not self._copied:
                self._require_room()
            try:
                with self._connection:
                    yield self._connection
            except sqlite3.Error as error:
                raise self._failed(error) from None

    def close(self) -> None:
        """Close the file, when no statement runs any more. Idempotent."""
        with self._lock:
            self._connection.close()

    def _open(self, schema: str, version: int) -> sqlite3.Connection:
        for attempt in (1, 2):
            connection = None
            try:
                connection = sqlite3.connect(self._path, timeout=10, check_same_thread=False)
                if _prepare(connection, schema, version):
                    return connection
            except sqlite3.OperationalError as error:
                if connection is not None:
                    connection.close()
                raise self._failed(error) from None
            except sqlite3.DatabaseError as error:
                if attempt == 2:
                    raise self._unusable(error) from None
            if connection is not None:
                connection.close()
            self._remove()
        raise self._unusable("it cannot be made")

    def _remove(self) -> None:
        try:
            for suffix in ("", "-wal", "-shm"):
                self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)
        except OSError as error:
            raise self._unusable(error) from None

    def _require_room(self) -> None:
        left = free_bytes(self._path.parent)
        if left is not None and left < _NEEDED:
            raise self._full()

    def _failed(self, error: sqlite3.Error) -> StateError:
        is_full = getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL
        return self._full() if is_full else self._unusable(error)

    def _full(self) -> StateFullError:
        return full(f"{self._path} cannot be written", self._path.parent)

    def _unusable(self, error: object) -> StateError:
        writable = os.access(self._path.parent, os.W_OK | os.X_OK)
        hint = "Remove it; it is made anew." if writable else f"Make {self._path.parent} writable for this user."
        return StateError(f"{self._path} cannot be used: {error}.", hint=hint)


def _copy(path: Path, schema: str, version: int) -> sqlite3.Connection:
    """The file's content in memory; empty tables where it cannot be had without writing beside it."""
    log = path.with_name(path.name + "-wal")
    if path.exists() and not (log.exists() and log.stat().st_size):
        copied = sqlite3.connect(":memory:", check_same_thread=False)
        with contextlib.suppress(sqlite3.Error):
            # Immutable: no log and no shared memory are made beside the file, and nothing else writes it now.
            source = sqlite3.connect(f"file:{quote(str(path))}?mode=ro&immutable=1", uri=True)
            with contextlib.closing(source):
                source.backup(copied)
            if _prepare(copied, schema, version):
                return copied
        copied.close()
    empty = sqlite3.connect(":memory:", check_same_thread=False)
    _prepare(empty, schema, version)
    return empty


def _prepare(connection: sqlite3.Connection, schema: str, version: int) -> bool:
    """Bring an opened file into use; False where it holds other tables, or damaged ones."""
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    found = connection.execute("PRAGMA user_version").fetchone()[0]
    if found == 0 and connection.execute("SELECT 1 FROM sqlite_master").fetchone() is None:
        connection.executescript(f"BEGIN; {schema}; PRAGMA user_version = {version}; COMMIT;")
        return True
    return bool(found == version and connection.execute("PRAGMA quick_check(1)").fetchone() == ("ok",))
