"""Fakes of the ports: the same shape, in memory, deterministic. They know nothing that an adapter could not know."""

from __future__ import annotations

import asyncio
import hashlib
import math
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np

from ragpilot.errors import EmbedderError, IndexMismatchError, RagPilotError, StoreError
from ragpilot.types import (
    Actor,
    Candidate,
    Chunk,
    CollectionInfo,
    DocumentState,
    EmbedderIdentity,
    FacetField,
    GateCalibration,
    Health,
    IndexedChunk,
    IndexIdentity,
    IngestScope,
    ModelIdentity,
    ModelUsage,
    Prompt,
    SparseVector,
    StoreQuery,
    TermStatistics,
    Vector,
    VectorName,
)

ANN = Actor("ann", frozenset({"user:ann", "team:everyone"}), frozenset({"ask"}))
BOB = Actor("bob", frozenset({"user:bob"}), frozenset({"ask"}))
NOBODY = Actor("nobody", frozenset(), frozenset({"ask"}))
VECTOR_NAMES: tuple[VectorName, ...] = ("header", "body")
OPERATOR = Actor("operator", frozenset({"team:everyone"}), frozenset({"ask", "ingest", "admin"}))


class FakeTokenCounter:
    """A token is four characters."""

    def count(self, text: str) -> int:
        return math.ceil(len(text) / 4)

    def truncate(self, text: str, tokens: int) -> str:
        return text[: max(tokens, 0) * 4]


class FakeEmbedder:
    """Bags of words hashed into ``dimensions`` buckets: texts that share words are near each other."""

    def __init__(self, dimensions: int = 64, *, name: str = "fake", failure: RagPilotError | None = None) -> None:
        self.identity = EmbedderIdentity(name=name, dimensions=dimensions)
        self.default_floor = 0.35
        self.gate: GateCalibration | None = None
        self.counter = FakeTokenCounter()
        self.failure = failure
        self.documents_embedded = 0
        self.questions: list[str] = []
        self.closed = False

    def vector(self, text: str) -> Vector:
        """The vector that this embedder gives to ``text``."""
        vector = np.zeros(self.identity.dimensions, dtype=np.float32)
        for word in text.lower().split():
            digest = hashlib.blake2b(word.encode(errors="replace"), digest_size=8).digest()
            vector[int.from_bytes(digest[:4], "big") % len(vector)] += 1.0 if digest[4] % 2 else -1.0
        norm = float(np.linalg.norm(vector))
        if norm == 0.0:
            vector[0], norm = 1.0, 1.0
        return vector / np.float32(norm)

    async def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        if self.failure:
            raise self.failure
        self.documents_embedded += len(texts)
        return [self.vector(text) for text in texts]

    async def embed_question(self, text: str) -> Vector:
        if self.failure:
            raise self.failure
        self.questions.append(text)
        return self.vector(text)

    async def check(self) -> Health:
        return Health(ok=self.failure is None, detail="fake embedder")

    async def aclose(self) -> None:
        self.closed = True


class ScriptedChatModel:
    """Streams the given pieces. ``gate``, when given, is awaited before each piece after the first."""

    def __init__(
        self,
        pieces: Sequence[str] = ("The answer ", "is [1]."),
        *,
        failure: RagPilotError | None = None,
        fail_after: int = 0,
        gate: asyncio.Semaphore | None = None,
        context_window: int = 16_384,
    ) -> None:
        self.identity = ModelIdentity(name="scripted", provider="fake")
        self.context_window = context_window
        self.pieces = list(pieces)
        self.failure = failure
        self.fail_after = fail_after
        self.gate = gate
        self.prompts: list[Prompt] = []
        self.opened = 0
        self.ended = 0
        """Streams whose generator was closed or exhausted."""

    async def stream(
        self,
        prompt: Prompt,
        *,
        temperature: float,
        max_tokens: int,
        report: Callable[[ModelUsage], None] | None = None,
    ) -> AsyncIterator[str]:
        self.prompts.append(prompt)
        self.opened += 1
        try:
            for index, piece in enumerate(self.pieces):
                if self.failure and index >= self.fail_after:
                    raise self.failure
                if self.gate and index:
                    await self.gate.acquire()
                yield piece
            if self.failure and self.fail_after >= len(self.pieces):
                raise self.failure
        finally:
            self.ended += 1

    async def check(self) -> Health:
        return Health(ok=self.failure is None, detail="scripted model")

    async def aclose(self) -> None:
        return None


class MemoryStore:
    """Brute force over dictionaries: the model that every store adapter is compared with."""

    def __init__(self, *, failure: RagPilotError | None = None) -> None:
        self.failure = failure
        self.infos: dict[str, CollectionInfo] = {}
        self.chunks: dict[str, dict[str, IndexedChunk]] = {}
        self.vectors: dict[tuple[str, VectorName, str], Vector] = {}
        self.closed = False

    def _readable(self, actor: Actor, corpus: str) -> list[IndexedChunk]:
        if self.failure:
            raise self.failure
        entries = self.chunks.get(corpus, {}).values()
        return [entry for entry in entries if entry.chunk.readers & actor.principals]

    def _held(self, corpus: str) -> dict[str, IndexedChunk]:
        if corpus not in self.chunks:
            raise StoreError(f"There is no collection {corpus!r} to write to.")
        return self.chunks[corpus]

    def _bump(self, corpus: str) -> None:
        self.infos[corpus] = replace(self.infos[corpus], revision=self.infos[corpus].revision + 1)

    async def search(self, actor: Actor, query: StoreQuery) -> list[Candidate]:
        entries = self._readable(actor, query.corpus)
        info = self.infos.get(query.corpus)
        if info and query.vector.shape != (info.identity.embedder.dimensions,):
            raise IndexMismatchError("The question's vector has another dimension than the collection's.")
        statistics = await self.term_statistics(actor, query.corpus, query.lexical.indices)

        def cosine(name: VectorName, entry: IndexedChunk) -> float | None:
            vector = self.vectors.get((query.corpus, name, entry.chunk.id))
            return None if vector is None else float(np.dot(vector, query.vector))

        def lexical(entry: IndexedChunk) -> float:
            weights = dict(zip(entry.lexical.indices, entry.lexical.values, strict=True))
            asked = zip(query.lexical.indices, query.lexical.values, strict=True)
            return sum(value * weights.get(term, 0.0) * idf(statistics, term) for term, value in asked)

        scored = [
            Candidate(entry.chunk, cosine("header", entry), cosine("body", entry), lexical(entry)) for entry in entries
        ]
        found: dict[str, Candidate] = {}
        for limit, branch in (
            (query.dense_limit, [(c.cosine, c) for c in scored if c.cosine is not None]),
            (query.lexical_limit, [(c.lexical_score, c) for c in scored if c.lexical_score]),
        ):
            best = sorted(branch, key=lambda pair: (-pair[0], pair[1].chunk.id))[:limit]
            found.update({candidate.chunk.id: candidate for _, candidate in best})
        return [found[chunk_id] for chunk_id in sorted(found)]

    async def count(self, actor: Actor, corpus: str, *, having: VectorName | None = None) -> int:
        entries = self._readable(actor, corpus)
        return sum(having is None or (corpus, having, entry.chunk.id) in self.vectors for entry in entries)

    async def get(self, actor: Actor, corpus: str, chunk_id: str) -> Chunk | None:
        return next((entry.chunk for entry in self._readable(actor, corpus) if entry.chunk.id == chunk_id), None)

    async def facets(self, actor: Actor, corpus: str, field: FacetField) -> dict[str, int]:
        return dict(Counter(getattr(entry.chunk, field) for entry in self._readable(actor, corpus)))

    async def term_statistics(self, actor: Actor, corpus: str, terms: Sequence[int]) -> TermStatistics:
        entries = self._readable(actor, corpus)
        held = Counter(term for entry in entries for term in entry.lexical.indices)
        return TermStatistics(total=len(entries), frequencies={term: held[term] for term in terms})

    async def last_indexed(self, actor: Actor, corpus: str) -> datetime | None:
        times = [entry.chunk.indexed_at for entry in self._readable(actor, corpus)]
        return datetime.fromtimestamp(max(times), UTC) if times else None

    async def describe(self, corpus: str) -> CollectionInfo | None:
        return self.infos.get(corpus)

    async def check(self) -> Health:
        return Health(ok=self.failure is None, detail="memory")

    async def aclose(self) -> None:
        self.closed = True

    async def ensure(self, scope: IngestScope, identity: IndexIdentity) -> CollectionInfo:
        info = self.infos.setdefault(scope.corpus, CollectionInfo(scope.corpus, identity, 0, None))
        self.chunks.setdefault(scope.corpus, {})
        if info.identity != identity:
            raise IndexMismatchError("The collection was built by another embedder.")
        return info

    async def adopt_chunker(self, scope: IngestScope, chunker: str) -> CollectionInfo:
        self._held(scope.corpus)
        self._bump(scope.corpus)
        info = self.infos[scope.corpus]
        self.infos[scope.corpus] = replace(info, identity=replace(info.identity, chunker=chunker))
        return self.infos[scope.corpus]

    async def drop(self, scope: IngestScope) -> None:
        self.infos.pop(scope.corpus, None)
        self.chunks.pop(scope.corpus, None)
        self.vectors = {key: vector for key, vector in self.vectors.items() if key[0] != scope.corpus}

    async def upsert(self, scope: IngestScope, document_id: str, chunks: Sequence[IndexedChunk]) -> None:
        held = self._held(scope.corpus)
        kept = {entry.chunk.id for entry in chunks}
        belongs = all((e.chunk.corpus, e.chunk.document_id) == (scope.corpus, document_id) for e in chunks)
        if not belongs or len(kept) < len(chunks):
            raise StoreError("A chunk belongs to another document, or its id stands twice.")
        held.update({entry.chunk.id: entry for entry in chunks})
        self._remove(scope.corpus, {i for i, e in held.items() if e.chunk.document_id == document_id and i not in kept})

    def _remove(self, corpus: str, ids: set[str]) -> None:
        self._bump(corpus)
        for chunk_id in ids:
            del self.chunks[corpus][chunk_id]
            for name in VECTOR_NAMES:
                self.vectors.pop((corpus, name, chunk_id), None)

    async def set_vectors(self, scope: IngestScope, name: VectorName, vectors: Mapping[str, Vector]) -> None:
        held = self._held(scope.corpus)
        dimensions = self.infos[scope.corpus].identity.embedder.dimensions
        for vector in vectors.values():
            if vector.shape != (dimensions,) or not np.isfinite(vector).all():
                raise StoreError("A vector has the wrong dimension or a number that is not finite.")
        self.vectors.update({(scope.corpus, name, i): vector for i, vector in vectors.items() if i in held})
        self._bump(scope.corpus)

    async def without_vector(self, scope: IngestScope, name: VectorName, *, limit: int) -> list[Chunk]:
        entries = self.chunks.get(scope.corpus, {}).values()
        missing = [e.chunk for e in entries if (scope.corpus, name, e.chunk.id) not in self.vectors]
        return sorted(missing, key=lambda chunk: (-chunk.mtime_ns, chunk.id))[:limit]

    async def delete_documents(self, scope: IngestScope, document_ids: Sequence[str]) -> None:
        held = self._held(scope.corpus)
        self._remove(scope.corpus, {i for i, e in held.items() if e.chunk.document_id in set(document_ids)})

    async def set_readers(self, scope: IngestScope, readers: Mapping[str, frozenset[str]]) -> None:
        held = self._held(scope.corpus)
        for chunk_id, entry in held.items():
            if entry.chunk.document_id in readers:
                held[chunk_id] = replace(entry, chunk=replace(entry.chunk, readers=readers[entry.chunk.document_id]))
        self._bump(scope.corpus)

    async def documents(self, scope: IngestScope) -> list[DocumentState]:
        by_document: dict[str, list[Chunk]] = {}
        for entry in self.chunks.get(scope.corpus, {}).values():
            by_document.setdefault(entry.chunk.document_id, []).append(entry.chunk)
        return [
            DocumentState(i, c[0].path, c[0].content_hash, c[0].mtime_ns, c[0].size, len(c), c[0].readers)
            for i, c in sorted(by_document.items())
        ]

    async def record_ingestion(self, scope: IngestScope, finished_at: datetime) -> CollectionInfo:
        self._held(scope.corpus)
        self._bump(scope.corpus)
        self.infos[scope.corpus] = replace(self.infos[scope.corpus], last_ingestion=finished_at)
        return self.infos[scope.corpus]


def idf(statistics: TermStatistics, term: int) -> float:
    """BM25's inverse document frequency, never negative."""
    held = statistics.frequencies[term]
    return math.log(1 + (statistics.total - held + 0.5) / (held + 0.5))


def sparse(weights: Mapping[int, float]) -> SparseVector:
    """A sparse vector of term -> weight."""
    ordered = sorted(weights.items())
    return SparseVector(tuple(term for term, _ in ordered), tuple(weight for _, weight in ordered))


def broken_embedder() -> FakeEmbedder:
    """An embedder that fails at every call."""
    return FakeEmbedder(failure=EmbedderError("The embedder failed."))
