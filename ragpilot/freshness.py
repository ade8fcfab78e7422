"""Whether a source's file still is what was indexed."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Callable, Iterable
from pathlib import Path

from ragpilot.ingest.read import content_hash
from ragpilot.types import Chunk

Locate = Callable[[str, str], Path | None]
"""(corpus, path) -> the file on this machine; None where its root is not here."""

_READ_MOST = 16_000_000
"""Bytes that are read in a call to tell whether files have changed."""


class Freshness:
    """Compares chunks with the files they came from.

    A stat each, as a rule: a file of another size has changed, one of the same size and modification time has not.
    One that has only another time is read, and its content decides; of a checkout that gave every file a new time, no
    more than ``_READ_MOST`` bytes in a call, and what is left over counts as changed.
    """

    def __init__(self, locate: Locate) -> None:
        self._locate = locate

    async def stale(self, chunks: Iterable[Chunk]) -> frozenset[str]:
        """Ids of the chunks whose file has changed or gone since it was indexed."""
        return await asyncio.to_thread(self._stale, list(chunks))

    def _stale(self, chunks: list[Chunk]) -> frozenset[str]:
        changed: dict[tuple[str, str], bool] = {}
        budget = _READ_MOST
        for chunk in chunks:
            key = (chunk.corpus, chunk.path)
            if key not in changed:
                changed[key], taken = self._changed(chunk, budget)
                budget -= taken
        return frozenset(chunk.id for chunk in chunks if changed[chunk.corpus, chunk.path])

    def _changed(self, chunk: Chunk, budget: int) -> tuple[bool, int]:
        """Whether the chunk's file has changed, and how many bytes were read to tell."""
        file = self._locate(chunk.corpus, chunk.path)
        if file is None:
            return False, 0
        try:
            found = file.stat()
            if found.st_size != chunk.size or not stat.S_ISREG(found.st_mode):
                return True, 0
            if found.st_mtime_ns == chunk.mtime_ns:
                return False, 0
            if chunk.size > budget:
                return True, 0
            return _hash_of(file, chunk.size) != chunk.content_hash, chunk.size
        except OSError:
            return True, 0


def _hash_of(file: Path, size: int) -> str:
    """Of ``size`` bytes and one more, where the file has grown meanwhile: then it is that of something else."""
    # Not to be waited for, should a pipe have taken the file's place.
    handle = os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(handle, "rb") as opened:
        return content_hash(opened.read(size + 1))
