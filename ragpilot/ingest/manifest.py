"""What is indexed from which file: a cache, never the truth.

Rows are written after the store has acknowledged what they say, and the store's revision beside them. When the
revisions differ at the start of a run (a kill in between, a deleted or damaged file, another writer), the rows are
made anew from the store; a row whose document the store holds unchanged keeps what the store does not know.

All calls block: run them in a thread.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from ragpilot.ingest.database import Database
from ragpilot.types import DocumentState, LeftOut

FILE_NAME = "manifest.sqlite3"
INDEXED = ""
"""The outcome of a document that is in the store; any other is the reason why it is not."""

_VERSION = 2
_SCHEMA = """
CREATE TABLE documents (
    corpus TEXT NOT NULL, path TEXT NOT NULL, document_id TEXT NOT NULL, mtime_ns INTEGER NOT NULL,
    size INTEGER NOT NULL, checked_ns INTEGER NOT NULL, content_hash TEXT NOT NULL, chunks INTEGER NOT NULL,
    readers TEXT NOT NULL, commit_hash TEXT, outcome TEXT NOT NULL, detail TEXT NOT NULL, redacted TEXT NOT NULL,
    source_type TEXT NOT NULL, rules TEXT NOT NULL, PRIMARY KEY (corpus, path)
) WITHOUT ROWID;
CREATE TABLE collections (corpus TEXT PRIMARY KEY, revision INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE left_out (corpus TEXT NOT NULL, path TEXT NOT NULL, reason TEXT NOT NULL, detail TEXT NOT NULL)
"""
_INSERT = "INSERT OR REPLACE INTO documents VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_FORGET_LEFT_OUT = """
DELETE FROM left_out
WHERE corpus = :corpus AND (:scope IN ('', path) OR substr(path, 1, length(:inside)) = :inside)
"""
_INDEXED_UNDER = f"""
SELECT path FROM documents WHERE corpus = :corpus AND outcome = '{INDEXED}'
AND (path = :path OR substr(path, 1, length(:inside)) = :inside)
"""  # noqa: S608 - of constants
_COUNT_LEFT_OUT = (
    "SELECT reason, count(*) FROM left_out WHERE corpus = ? GROUP BY reason ORDER BY count(*) DESC, reason"
)
_COARSE_NS, _FINE_NS = 2_000_000_000, 50_000_000


@dataclass(frozen=True, slots=True)
class Row:
    """One file of a corpus as it was when it was last read."""

    path: str
    document_id: str
    mtime_ns: int
    size: int
    checked_ns: int
    """When it was read (epoch); 0: not known."""
    content_hash: str = ""
    chunks: int = 0
    readers: frozenset[str] = frozenset()
    commit: str | None = None
    outcome: str = INDEXED
    detail: str = ""
    redacted: tuple[str, ...] = ()
    """Kinds of secrets that were replaced in it."""
    source_type: str = ""
    rules: str = ""
    """The rules it was read by; empty: not known."""

    @property
    def indexed(self) -> bool:
        """Whether the store holds the document."""
        return self.outcome == INDEXED

    def left_out(self) -> LeftOut:
        """What a report says of it where it is not indexed."""
        return LeftOut(self.path, self.outcome, self.detail)

    def held_secrets(self) -> LeftOut:
        """What a report says of it where secrets were replaced in it: the reason names their kinds."""
        return LeftOut(self.path, ", ".join(self.redacted))

    def unchanged(self, mtime_ns: int, size: int, ctime_ns: int = 0) -> bool:
        """Whether a stat alone shows that the file is what it was.

        A file that was read within its own timestamp's grain could have been written again behind the reader's back.
        Whole seconds come from file systems that count in seconds, or in twos of them. One whose ``ctime_ns`` is later
        than its reading may have been written and had its modification time set back.
        """
        grain = _COARSE_NS if mtime_ns % 1_000_000_000 == 0 else _FINE_NS
        return (self.mtime_ns, self.size) == (mtime_ns, size) and max(mtime_ns + grain, ctime_ns) < self.checked_ns


class Manifest:
    """The manifest of a state folder. Use as a context manager. Raises StateError.

    On a full disk it is one in memory, so that who asks is answered all the same; being a cache, it may be lost.
    """

    def __init__(self, state: Path) -> None:
        self._database = Database(state / FILE_NAME, _SCHEMA, _VERSION, copy_when_full=True)

    def rows(self, corpus: str) -> dict[str, Row]:
        """All rows of a corpus by path."""
        with self._database.transaction() as connection:
            found = connection.execute("SELECT * FROM documents WHERE corpus = ?", (corpus,))
            return {row.path: row for row in map(_row, found)}

    def revision(self, corpus: str) -> int | None:
        """The store's revision that the rows agree with; None where there are none."""
        with self._database.transaction() as connection:
            found = connection.execute("SELECT revision FROM collections WHERE corpus = ?", (corpus,)).fetchone()
        return None if found is None else int(found[0])

    def record(self, corpus: str, revision: int, *, rows: Iterable[Row] = (), gone: Iterable[str] = ()) -> None:
        """Write rows and forget paths, together with the store's revision that they agree with."""
        with self._database.transaction() as connection:
            connection.executemany(_INSERT, (_values(corpus, row) for row in rows))
            connection.executemany(
                "DELETE FROM documents WHERE corpus = ? AND path = ?", ((corpus, path) for path in gone)
            )
            connection.execute("INSERT OR REPLACE INTO collections VALUES (?, ?)", (corpus, revision))

    def rebuild(self, corpus: str, states: Iterable[DocumentState], revision: int) -> dict[str, Row]:
        """Make the rows anew from what the store holds, and return them.

        A row that agrees with the store is kept whole; another document is taken as never read, so that the next look
        at its file decides.
        """
        old = self.rows(corpus)
        rows = {path: row for path, row in old.items() if not row.indexed}
        for state in states:
            known = old.get(state.path)
            kept = known is not None and _agree(known, state)
            rows[state.path] = replace(known, readers=state.readers) if known and kept else _unread(state)
        with self._database.transaction() as connection:
            connection.execute("DELETE FROM documents WHERE corpus = ?", (corpus,))
        self.record(corpus, revision, rows=rows.values())
        return rows

    def forget(self, corpus: str) -> None:
        """Remove all that is known of a corpus."""
        with self._database.transaction() as connection:
            connection.execute("DELETE FROM documents WHERE corpus = ?", (corpus,))
            connection.execute("DELETE FROM collections WHERE corpus = ?", (corpus,))

    def record_left_out(self, corpus: str, items: Iterable[LeftOut], *, scopes: Iterable[str]) -> None:
        """Write what a run over ``scopes`` has left out, instead of what was known of them; an empty one is all."""
        with self._database.transaction() as connection:
            for scope in scopes:
                connection.execute(_FORGET_LEFT_OUT, {"corpus": corpus, "scope": scope, "inside": scope + "/"})
            rows = ((corpus, item.path, item.reason, item.detail) for item in items)
            connection.executemany("INSERT INTO left_out VALUES (?, ?, ?, ?)", rows)

    def left_out(self, corpus: str, counts: Callable[[str], bool] | None = None) -> dict[str, int]:
        """How many files and folders of a corpus are not indexed, by reason: each as of the last run over it.

        ``counts`` is asked of each path; None: all of them count. The most frequent reason stands first.
        """
        with self._database.transaction() as connection:
            if counts is None:
                return dict(connection.execute(_COUNT_LEFT_OUT, (corpus,)).fetchall())
            rows = connection.execute("SELECT reason, path FROM left_out WHERE corpus = ?", (corpus,)).fetchall()
        found = Counter(reason for reason, path in rows if counts(path))
        return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))

    def indexed_under(self, corpus: str, shown: str) -> list[str]:
        """The indexed paths at ``shown``, a file, or below it, a folder; empty: all of them."""
        inside = shown + "/" if shown else ""
        with self._database.transaction() as connection:
            found = connection.execute(_INDEXED_UNDER, {"corpus": corpus, "path": shown, "inside": inside})
            return [path for (path,) in found]

    def close(self) -> None:
        """Close the file. Idempotent."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def left_out(state: Path, corpus: str, counts: Callable[[str], bool] | None = None) -> dict[str, int]:
    """``Manifest.left_out`` of a state folder, which is not made where it is missing. Raises StateError."""
    if not (state / FILE_NAME).exists():
        return {}
    with Manifest(state) as manifest:
        return manifest.left_out(corpus, counts)


def indexed_under(state: Path, corpus: str, shown: str) -> list[str]:
    """``Manifest.indexed_under`` of a state folder, which is not made where it is missing. Raises StateError."""
    if not (state / FILE_NAME).exists():
        return []
    with Manifest(state) as manifest:
        return manifest.indexed_under(corpus, shown)


def _agree(row: Row, state: DocumentState) -> bool:
    held = (state.document_id, state.content_hash, state.chunk_count)
    return row.indexed and (row.document_id, row.content_hash, row.chunks) == held


def _unread(state: DocumentState) -> Row:
    return Row(
        path=state.path,
        document_id=state.document_id,
        mtime_ns=state.mtime_ns,
        size=state.size,
        checked_ns=0,
        content_hash=state.content_hash,
        chunks=state.chunk_count,
        readers=state.readers,
    )


def _values(corpus: str, row: Row) -> tuple[str | int | None, ...]:
    return (
        *(corpus, row.path, row.document_id, row.mtime_ns, row.size, row.checked_ns, row.content_hash, row.chunks),
        *(json.dumps(sorted(row.readers)), row.commit, row.outcome, row.detail, json.dumps(row.redacted)),
        *(row.source_type, row.rules),
    )


def _row(values: tuple[Any, ...]) -> Row:
    _, path, identity, mtime_ns, size, checked_ns, content_hash, chunks, readers, commit, *rest = values
    outcome, detail, redacted, source_type, rules = rest
    return Row(
        *(path, identity, mtime_ns, size, checked_ns, content_hash, chunks, frozenset(json.loads(readers)), commit),
        *(outcome, detail, tuple(json.loads(redacted)), source_type, rules),
    )
