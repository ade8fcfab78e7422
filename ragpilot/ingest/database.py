"""SQLite files of the state folder that hold nothing which could not be had again."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

from ragpilot.errors import StateError
from ragpilot.files import make_folder


class Database:
    """One file, opened or made anew where it is damaged or of another version. Usable from any thread, one at a time.

    Errors of the file are StateError.
    """

    def __init__(self, path: Path, schema: str, version: int) -> None:
        make_folder(path.parent)
        self._path = path
        self._lock = threading.Lock()
        self._connection = self._open(schema, version)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """The connection, for statements that happen together or not at all."""
        with self._lock:
            try:
                with self._connection:
                    yield self._connection
            except sqlite3.Error as error:
                raise self._unusable(error) from None

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
                raise self._unusable(error) from None
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

    def _unusable(self, error: object) -> StateError:
        return StateError(f"{self._path} cannot be used: {error}.", hint="Remove it; it is made anew.")


def _prepare(connection: sqlite3.Connection, schema: str, version: int) -> bool:
    """Bring an opened file into use; False where it holds other tables, or damaged ones."""
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    found = connection.execute("PRAGMA user_version").fetchone()[0]
    if found == 0 and connection.execute("SELECT 1 FROM sqlite_master").fetchone() is None:
        connection.executescript(f"BEGIN; {schema}; PRAGMA user_version = {version}; COMMIT;")
        return True
    return bool(found == version and connection.execute("PRAGMA quick_check(1)").fetchone() == ("ok",))
