"""Rows of chunks -> the state of each document, and whether it was written whole."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ragpilot.adapters.chunk_rows import DocumentRow
from ragpilot.types import DocumentState


@dataclass
class _Seen:
    first: DocumentRow
    chunks: int = 0
    alike: bool = True


class Tally:
    """Adds up pages of rows of ``DOCUMENT_FIELDS``."""

    def __init__(self) -> None:
        self._seen: dict[str, _Seen] = {}

    def add(self, rows: Iterable[DocumentRow]) -> None:
        """Count a page of rows, each of another chunk."""
        for row in rows:
            document = self._seen.setdefault(row[0], _Seen(row))
            document.chunks += 1
            document.alike &= row == document.first

    def states(self) -> list[DocumentState]:
        """A state a document, by id.

        Its content hash is empty when its chunks are not those of one single write: some are left over from the
        last one, or some of this one never came.
        """
        states = []
        for document_id, seen in sorted(self._seen.items()):
            _, path, content_hash, mtime_ns, size, readers, written = seen.first
            whole = seen.alike and seen.chunks == written
            states.append(
                DocumentState(
                    document_id, path, content_hash if whole else "", mtime_ns, size, seen.chunks, frozenset(readers)
                )
            )
        return states
