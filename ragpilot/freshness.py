"""Whether a source's file still is what was indexed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path

from ragpilot.types import Chunk

Locate = Callable[[str, str], Path | None]
"""(corpus, path) -> the file on this machine; None where its root is not here."""


class Freshness:
    """Compares chunks with the files they came from, by a stat each: size and modification time."""

    def __init__(self, locate: Locate) -> None:
        self._locate = locate

    async def stale(self, chunks: Iterable[Chunk]) -> frozenset[str]:
        """Ids of the chunks whose file has changed or gone since it was indexed."""
        return await asyncio.to_thread(self._stale, list(chunks))

    def _stale(self, chunks: list[Chunk]) -> frozenset[str]:
        changed: dict[tuple[str, str], bool] = {}
        for chunk in chunks:
            key = (chunk.corpus, chunk.path)
            if key not in changed:
                changed[key] = self._changed(chunk)
        return frozenset(chunk.id for chunk in chunks if changed[chunk.corpus, chunk.path])

    def _changed(self, chunk: Chunk) -> bool:
        file = self._locate(chunk.corpus, chunk.path)
        if file is None:
            return False
        try:
            found = file.stat()
        except OSError:
            return True
        return found.st_mtime_ns != chunk.mtime_ns or found.st_size != chunk.size
