"""Vectors of headers that the store does not have yet, made when a question needs them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from ragpilot.ports import Embedder
from ragpilot.types import Vector

HEADERS_KEPT = 20_000


class HeaderVectors:
    """Vectors of headers that were embedded at a question, kept while the process lives.

    Keyed by the text alone and asked for only of chunks that the store has let the actor read.
    """

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._kept: OrderedDict[str, Vector] = OrderedDict()

    async def of(self, headers: Sequence[str]) -> list[Vector]:
        """One vector a header, in order; each text is embedded once. Raises EmbedderError."""
        missing = list(dict.fromkeys(header for header in headers if header not in self._kept))
        if missing:
            vectors = await self._embedder.embed_documents(missing)
            self._kept.update(zip(missing, vectors, strict=True))
        result = [self._kept[header] for header in headers]
        for header in headers:
            self._kept.move_to_end(header)
        while len(self._kept) > HEADERS_KEPT:
            self._kept.popitem(last=False)
        return result
