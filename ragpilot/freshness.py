"""Whether a source's file still is what was indexed."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from ragpilot.ingest.read import content_hash
from ragpilot.types import Chunk

Locate = Callable[[str, str], Path | None]
"""(corpus, path) -> the file on this machine; None where its root is not here."""

_READ_MOST = 16_000_000
"""Bytes that are read in a call to tell whether files have changed."""
_GRAIN_NS = 2_000_000_000
"""Of the coarsest file system's times."""

_Document = tuple[str, str, str]
"""Corpus, path and content hash."""


class Freshness:
    """Compares chunks with the files they came from.

    The content decides, since times can be set back, and clocks are coarse. A file of another size has changed without
    a look at it. Of the rest no more than ``_READ_MOST`` bytes are read in a call, first of the files whose times speak
    of a change; what is left over is judged by its times alone.
    """

    def __init__(self, locate: Locate) -> None:
        self._locate = locate

    async def stale(self, chunks: Iterable[Chunk]) -> frozenset[str]:
        """Ids of the chunks whose file has changed or gone since it was indexed."""
        return await asyncio.to_thread(self._stale, list(chunks))

    def _stale(self, chunks: list[Chunk]) -> frozenset[str]:
        documents: dict[_Document, Chunk] = {}
        for chunk in chunks:
            documents.setdefault(_document(chunk), chunk)
        changed = frozenset(self._changed(documents.values()))
        return frozenset(chunk.id for chunk in chunks if _document(chunk) in changed)

    def _changed(self, chunks: Iterable[Chunk]) -> Iterator[_Document]:
        """The documents that have changed, of a chunk of each."""
        suspected: list[tuple[Chunk, Path]] = []
        quiet: list[tuple[Chunk, Path]] = []
        for chunk in chunks:
            file = self._locate(chunk.corpus, chunk.path)
            if file is None:
                continue
            try:
                found = file.lstat()
            except OSError:
                yield _document(chunk)
                continue
            if found.st_size != chunk.size or not stat.S_ISREG(found.st_mode):
                yield _document(chunk)
            else:
                (quiet if _is_quiet(found, chunk) else suspected).append((chunk, file))
        budget = _READ_MOST
        for files, without_reading in ((suspected, True), (quiet, False)):
            for chunk, file in files:
                read = chunk.size <= budget
                budget -= chunk.size if read else 0
                if _hash_of(file, chunk.size) != chunk.content_hash if read else without_reading:
                    yield _document(chunk)


def _document(chunk: Chunk) -> _Document:
    return chunk.corpus, chunk.path, chunk.content_hash


def _is_quiet(found: os.stat_result, chunk: Chunk) -> bool:
    """Whether the times of a file say that nobody has written it since it was indexed."""
    return found.st_mtime_ns == chunk.mtime_ns and found.st_ctime_ns < chunk.indexed_at * 1_000_000_000 - _GRAIN_NS


def _hash_of(file: Path, size: int) -> str | None:
    """Of ``size`` bytes and one more, where the file has grown meanwhile: then it is that of something else.

    None where it cannot be read.
    """
    # Not to be waited for, should a pipe have taken the file's place, and not to be followed, should a link.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
    try:
        with os.fdopen(os.open(file, flags), "rb") as opened:
            return content_hash(opened.read(size + 1))
    except OSError:
        return None
