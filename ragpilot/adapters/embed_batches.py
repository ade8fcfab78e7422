"""Embedding through a service that fails as a whole: batches, bisection, shortening, and vectors that are checked."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import numpy as np

from ragpilot.adapters.token_prefix import encodable
from ragpilot.errors import EmbedderError, EmbedderUnavailableError, TextsNotEmbeddedError
from ragpilot.types import Vector

logger = logging.getLogger(__name__)

BATCH_TEXTS = 32
BATCH_CHARS = 48_000
CHARS_A_TOKEN = 16
"""More than any text has on average: what lies behind ``window`` times this cannot be read."""
SHORTEST_CHARS = 32
"""A text this short is not too long; if the service still says so, it is refused."""
GIVE_UP = 3
"""Texts refused, each alone, without one embedded between them: the service fails, not the texts."""
RETRIES = 2

Send = Callable[[Sequence[str]], Awaitable[list[Any]]]
"""One request: as many rows as texts, as the service gave them. Raises Refused, EmbedderError."""


class Refused(Exception):  # noqa: N818 -- not an error that leaves this package
    """The service refused a request, perhaps for what one of its texts holds."""

    def __init__(self, error: EmbedderError, *, too_long: bool) -> None:
        super().__init__(str(error))
        self.error = error
        self.too_long = too_long


class BatchEmbedder:
    """Turns texts into unit vectors by requests to one service. Holds nothing between calls."""

    def __init__(self, send: Send, *, dimensions: int, window: int, pause: float) -> None:
        """Sends nothing yet.

        Args:
            send: Makes one request.
            dimensions: What every vector must have.
            window: Tokens of a text that the model reads.
            pause: Seconds before a failed connection is tried again; twice as many before the second time.
        """
        self._send = send
        self._dimensions = dimensions
        self._window = window
        self._pause = pause

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """One vector a text, in order; texts as ``sendable`` makes them, prefixes included.

        Raises:
            TextsNotEmbeddedError: Some texts were refused, each alone; it holds the vectors of the others.
            EmbedderError: The service failed.
        """
        run = _Run(self, [text[: self._window * CHARS_A_TOKEN] for text in texts])
        for batch in _batches(run.texts):
            await run.embed(batch)
        if run.refused:
            position, words = next(iter(run.refused.items()))
            raise TextsNotEmbeddedError(
                f"{len(run.refused)} of {len(texts)} texts were not embedded; text {position}: {words}",
                vectors=run.vectors,
            )
        return [vector for vector in run.vectors if vector is not None]

    async def request(self, texts: Sequence[str]) -> list[Vector | None]:
        """One request, repeated while the connection fails; None for a row that is no vector."""
        rows = await self._patiently(texts)
        if len(rows) != len(texts):
            raise EmbedderError(f"The embedder gave {len(rows)} vectors for {len(texts)} texts.")
        return [self._vector(row) for row in rows]

    async def _patiently(self, texts: Sequence[str]) -> list[Any]:
        for attempt in range(RETRIES):
            try:
                return await self._send(texts)
            except EmbedderUnavailableError as error:
                if isinstance(error.__cause__, TimeoutError):
                    raise  # a limit that was passed once would be passed again
                # A service's own words may repeat the text that it was sent.
                logger.info("embedding is tried again: %s", error.code)
                logger.debug("%s", error)
                await asyncio.sleep(self._pause * 2**attempt)
        return await self._send(texts)

    def _vector(self, row: Any) -> Vector | None:
        """A row as a unit vector; None where a number is missing or not finite, or all are zero."""
        try:
            vector = np.asarray([np.nan] * self._dimensions if row is None else row, dtype=np.float64)
        except (TypeError, ValueError):
            return None
        if vector.shape != (self._dimensions,):
            raise EmbedderError(
                f"The embedder gave a vector of shape {vector.shape}; this model has {self._dimensions} dimensions.",
                hint="Was the model replaced? Restart RagPilot and rebuild: ragpilot index --rebuild",
            )
        with np.errstate(over="ignore"):
            norm = float(np.linalg.norm(vector))
        return (vector / norm).astype(np.float32) if np.isfinite(norm) and norm > 1e-12 else None


class _Run:
    """One call: its texts, and what has become of each."""

    def __init__(self, embedder: BatchEmbedder, texts: list[str]) -> None:
        self._embedder = embedder
        self.texts = texts
        self.vectors: list[Vector | None] = [None] * len(texts)
        self.refused: dict[int, str] = {}

    async def embed(self, positions: list[int]) -> None:
        try:
            vectors = await self._embedder.request([self.texts[position] for position in positions])
        except Refused as refused:
            await self._divide(positions, refused)
            return
        for position, vector in zip(positions, vectors, strict=True):
            self.vectors[position] = vector
            if vector is None:
                self._refuse(position, EmbedderError("The embedder gave a vector that is zero or not finite."))

    async def _divide(self, positions: list[int], refused: Refused) -> None:
        if len(positions) > 1:
            middle = len(positions) // 2
            await self.embed(positions[:middle])
            await self.embed(positions[middle:])
            return
        [position] = positions
        text = self.texts[position]
        if refused.too_long and len(text) > SHORTEST_CHARS:
            self.texts[position] = text[: len(text) * 2 // 3]
            await self.embed(positions)
        else:
            self._refuse(position, refused.error)

    def _refuse(self, position: int, error: EmbedderError) -> None:
        self.refused[position] = str(error)
        if len(self.texts) == 1 or (len(self.refused) >= GIVE_UP and all(vector is None for vector in self.vectors)):
            raise error


def sendable(text: str) -> str:
    """``text`` as JSON and C libraries carry it whole: valid UTF-8, no NUL, and never blank."""
    clean = encodable(text).replace("\0", " ")
    return clean if clean.strip() else "."


def _batches(texts: Sequence[str]) -> list[list[int]]:
    """Positions in batches of bounded number and size; like lengths together, since the longest sets the pace."""
    batches: list[list[int]] = []
    size = 0
    for position in sorted(range(len(texts)), key=lambda index: len(texts[index])):
        size += len(texts[position])
        if not batches or len(batches[-1]) >= BATCH_TEXTS or size > BATCH_CHARS:
            batches.append([])
            size = len(texts[position])
        batches[-1].append(position)
    return batches
