"""Header vectors, then body vectors, for every chunk that lacks them: newest files first, and resumable at any point.

What the store lacks is asked of the store, page by page, so nothing has to be remembered between runs.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field

import numpy as np

from ragpilot.errors import EmbedderError
from ragpilot.ingest.documents import body_text, header_text
from ragpilot.ingest.embed import TextEmbedder, missing
from ragpilot.ingest.embedding_cache import EmbeddingCache
from ragpilot.ingest.progress import Progress, Stage
from ragpilot.ingest.reasons import Reason
from ragpilot.ports import ChunkStore
from ragpilot.types import Chunk, IngestScope, LeftOut, Vector, VectorName

_PAGE = 1024
_FEWEST, _MOST = 8, 256
_FAST, _SLOW = 0.25, 1.0
"""Seconds a call of the embedder should take, so that progress is smooth and a stop soon heeded."""
_SAMPLED = 8
_SAME = 0.99
"""Cosine of two vectors of one text by one model: some sum up in another order, or round, from batch to batch."""

_TEXTS: dict[VectorName, Callable[[Chunk], str]] = {"header": header_text, "body": body_text}
_STAGES: dict[VectorName, Stage] = {"header": "headers", "body": "bodies"}


@dataclass(slots=True)
class Failures:
    """What could not be embedded, by document."""

    by_path: dict[str, list[str]] = field(default_factory=dict)
    stopped: str = ""
    """Why embedding was given up altogether; empty: it was not."""

    def add(self, chunk: Chunk, name: VectorName, reason: str) -> None:
        """A text of ``chunk`` was refused."""
        lines = f"{chunk.start_line}-{chunk.end_line}"
        self.by_path.setdefault(chunk.path, []).append(f"{name} of lines {lines}: {reason}")

    @property
    def texts(self) -> int:
        """How many texts were refused."""
        return sum(map(len, self.by_path.values()))

    def listed(self) -> list[LeftOut]:
        """One entry a document, with its first reason."""
        return [
            LeftOut(path, Reason.EMBEDDING_FAILED, first + (f" (and {len(more)} more)" if more else ""))
            for path, (first, *more) in sorted(self.by_path.items())
        ]


class VectorFill:
    """Fills the vectors of one corpus."""

    def __init__(
        self,
        store: ChunkStore,
        embedder: TextEmbedder,
        cache: EmbeddingCache,
        scope: IngestScope,
        progress: Progress,
        stop: asyncio.Event,
        on_stored: Callable[[], Awaitable[None]],
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._cache = cache
        self._scope = scope
        self._progress = progress
        self._stop = stop
        self._on_stored = on_stored
        self._batch = 4 * _FEWEST
        self.failures = Failures()
        self.doubt_cache = False
        """Whether what the cache holds counts only once the embedder has given some of it again."""
        self.disagreed = False
        """Whether it gave something else: the cache was not used then, and holds what is given now."""
        self.counts: Callable[[Chunk], bool] = lambda _: True
        """Which chunks count: in progress, in ``expected`` and in ``stored``. All are filled."""
        self.stored = 0
        """Vectors of chunks that count which were put into the store."""

    async def fill(self, name: VectorName, expected: int) -> None:
        """Fill one of the two vectors; ``expected``: how many are missing, as far as known. Raises StoreError.

        A text that the embedder refuses is noted in ``failures``; when it fails altogether, that is noted, and no
        further text is sent to it.
        """
        self._progress.begin(_STAGES[name], expected)
        done = 0
        try:
            async with aclosing(self._batches(name, expected)) as batches:
                async for chunks, known in batches:
                    vectors = await self._vectors(name, chunks, known)
                    if vectors:
                        await self._store.set_vectors(self._scope, name, vectors)
                        await self._on_stored()
                    counted = [chunk for chunk in chunks if self.counts(chunk)]
                    self.stored += sum(chunk.id in vectors for chunk in counted)
                    done += len(counted)
                    self._progress.advance(done)
        except EmbedderError as error:
            self.failures.stopped = str(error)

    async def _batches(
        self, name: VectorName, expected: int
    ) -> AsyncGenerator[tuple[list[Chunk], dict[str, Vector]], None]:
        """Chunks that lack the vector, each once, and what the cache knows of their texts."""
        handled: set[str] = set()
        counted = 0
        while not self._stop.is_set():
            limit = _PAGE + self.failures.texts  # those come again with every page
            page = await self._store.without_vector(self._scope, name, limit=limit)
            fresh = [chunk for chunk in page if chunk.id not in handled]
            if not fresh:
                return
            reached = counted + sum(map(self.counts, fresh))
            self._progress.advance(counted, reached if len(page) < limit else max(expected, reached))
            counted = reached
            known = await self._known([_TEXTS[name](chunk) for chunk in fresh])
            at = 0
            while at < len(fresh) and not self._stop.is_set():
                batch = fresh[at : at + self._batch]
                yield batch, known
                at += len(batch)
                handled.update(chunk.id for chunk in batch)

    async def _known(self, texts: list[str]) -> dict[str, Vector]:
        known = {} if self.disagreed else await asyncio.to_thread(self._cache.get, texts)
        if known and self.doubt_cache:
            self.doubt_cache = False
            self.disagreed = not await self._given_again(known)
        return {} if self.disagreed else known

    async def _given_again(self, known: Mapping[str, Vector]) -> bool:
        """Whether the embedder gives these vectors, by some of them.

        Not every service tells by its identity that another model has taken a model's place.
        """
        embedded = await self._embedder.embed(list(known)[:_SAMPLED])
        return all(_cosine(vector, known[text]) >= _SAME for text, vector in embedded.vectors.items())

    async def _vectors(self, name: VectorName, chunks: list[Chunk], known: dict[str, Vector]) -> dict[str, Vector]:
        """Chunk id -> vector, of the chunks whose text has one."""
        text_of = _TEXTS[name]
        wanted = missing([text_of(chunk) for chunk in chunks], known)
        if wanted:
            started = time.monotonic()
            embedded = await self._embedder.embed(wanted)
            self._adapt(time.monotonic() - started)
            await asyncio.to_thread(self._cache.put, embedded.vectors)
            known = known | embedded.vectors
            for chunk in chunks:
                if text_of(chunk) in embedded.refused:
                    self.failures.add(chunk, name, embedded.refused[text_of(chunk)])
        return {chunk.id: known[text_of(chunk)] for chunk in chunks if text_of(chunk) in known}

    def _adapt(self, seconds: float) -> None:
        if seconds < _FAST:
            self._batch = min(_MOST, self._batch * 2)
        elif seconds > _SLOW:
            self._batch = max(_FEWEST, self._batch // 2)


def _cosine(one: Vector, other: Vector) -> float:
    return float(np.dot(one, other) / (np.linalg.norm(one) * np.linalg.norm(other)))
