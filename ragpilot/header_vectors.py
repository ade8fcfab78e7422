"""Vectors of headers that the store does not have yet, made when a question needs them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from ragpilot.ports import Embedder
from ragpilot.types import Actor, Vector

HEADERS_KEPT = 20_000


class HeaderVectors:
    """Vectors of headers that were embedded at a question, kept while the process lives.

    Asked for only of chunks that the store has let the actor read, and kept for those who hold the same principals:
    a header that somebody else was shown would otherwise be there a moment sooner.
    """

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._kept: OrderedDict[tuple[frozenset[str], str], Vector] = OrderedDict()

    async def of(self, actor: Actor, headers: Sequence[str]) -> list[Vector]:
        """One vector a header, in order; each text is embedded once. Raises EmbedderError."""
        keys = [(actor.principals, header) for header in headers]
        missing = list(dict.fromkeys(key for key in keys if key not in self._kept))
        if missing:
            vectors = await self._embedder.embed_documents([header for _, header in missing])
            self._kept.update(zip(missing, vectors, strict=True))
        result = [self._kept[key] for key in keys]
        for key in keys:
            self._kept.move_to_end(key)
        while len(self._kept) > HEADERS_KEPT:
            self._kept.popitem(last=False)
        return result
