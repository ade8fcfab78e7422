"""What the core asks of the outside: small Protocols that name no vendor.

Each has a fake of the same shape in ``tests/fakes.py`` and one contract suite in ``tests/contract/``.
Adapters translate their vendor's exceptions into ``ragpilot.errors`` at this edge.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import datetime
from typing import Protocol

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
    RagRequest,
    RagResult,
    StoreQuery,
    TermStatistics,
    Vector,
    VectorName,
)

EVERYONE = frozenset({"team:everyone"})
"""Whom a further source that knows no actors is for; held, like any principal, only by those who list it."""


class TokenCounter(Protocol):
    """Counts and cuts by one tokenizer. Never raises on special tokens: in a document they are plain text."""

    def count(self, text: str) -> int:
        """Tokens of ``text``; 0 for the empty string."""
        ...

    def truncate(self, text: str, tokens: int) -> str:
        """The longest prefix of ``text`` found that counts at most ``tokens``, at a whole character."""
        ...


class Embedder(Protocol):
    """Texts to unit-length vectors, all of ``identity.dimensions`` numbers."""

    @property
    def identity(self) -> EmbedderIdentity:
        """What is stored with a collection and must match at every later use."""
        ...

    @property
    def default_floor(self) -> float:
        """The lowest cosine that means anything for this model."""
        ...

    @property
    def gate(self) -> GateCalibration | None:
        """The gate that was calibrated for this model; None where there is none: floor alone refuses then."""
        ...

    @property
    def counter(self) -> TokenCounter:
        """Counts by the embedder's own tokenizer."""
        ...

    async def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        """One vector a text, in order. Over-long texts are cut at the model's limit, without an error.

        Raises EmbedderError for a wrong count, a wrong dimension, a NaN or a zero vector.
        """
        ...

    async def embed_question(self, text: str) -> Vector:
        """The vector of a question, with the model's question prefix."""
        ...

    async def check(self) -> Health:
        """Whether an embedding could be had now. Never raises."""
        ...

    async def aclose(self) -> None:
        """Free what the embedder holds. Idempotent."""
        ...


class ChatModel(Protocol):
    """Streams an answer to a prompt."""

    @property
    def identity(self) -> ModelIdentity:
        """Name, provider, and whether answers are extracts."""
        ...

    @property
    def context_window(self) -> int:
        """Tokens that prompt and answer may take together."""
        ...

    def stream(
        self,
        prompt: Prompt,
        *,
        temperature: float,
        max_tokens: int,
        report: Callable[[ModelUsage], None] | None = None,
    ) -> AsyncIterator[str]:
        """The answer's pieces as they come; joined, they are the answer.

        An async generator: closing it closes the upstream request at once. ``report`` is called at the answer's end,
        at most once, by models that count and know what the asker should know. Raises ChatModelError.
        """
        ...

    async def check(self) -> Health:
        """Whether an answer could be had now. Never raises."""
        ...

    async def aclose(self) -> None:
        """Free what the model holds. Idempotent."""
        ...


class ChunkStore(Protocol):
    """Chunks and their vectors, one collection a corpus.

    **Every read takes an Actor**, and the readers filter is part of the query, in every branch of it. Reads of a
    corpus that has no collection behave as reads of an empty one. Writes take an IngestScope, and are on disk
    when they return. Raises StoreError and below.
    """

    # reads

    async def search(self, actor: Actor, query: StoreQuery) -> list[Candidate]:
        """The union of the best headers, bodies and lexical matches, each with the raw score of every branch.

        Ordered by id, so that nothing downstream can lean on the store's order.
        """
        ...

    async def count(self, actor: Actor, corpus: str, *, having: VectorName | None = None) -> int:
        """Readable chunks; with ``having``, those that have this vector."""
        ...

    async def get(self, actor: Actor, corpus: str, chunk_id: str) -> Chunk | None:
        """A readable chunk; None for one that does not exist or may not be read, and for an id that is no UUID."""
        ...

    async def facets(self, actor: Actor, corpus: str, field: FacetField) -> dict[str, int]:
        """Readable chunks by the value of ``field``, exact and complete."""
        ...

    async def term_statistics(self, actor: Actor, corpus: str, terms: Sequence[int]) -> TermStatistics:
        """In how many readable chunks each lexical term stands, exactly."""
        ...

    async def last_indexed(self, actor: Actor, corpus: str) -> datetime | None:
        """When the most recently written readable chunk was written (UTC); None where there is none."""
        ...

    # about collections, no chunk read

    async def describe(self, corpus: str) -> CollectionInfo | None:
        """Identity and revision of the collection; None where there is none."""
        ...

    async def check(self) -> Health:
        """Whether the store answers now. Never raises."""
        ...

    async def aclose(self) -> None:
        """Flush and let go. Idempotent."""
        ...

    # writes

    async def ensure(self, scope: IngestScope, identity: IndexIdentity) -> CollectionInfo:
        """Open the collection, or create it. Raises IndexMismatchError when it was built with another identity."""
        ...

    async def adopt_chunker(self, scope: IngestScope, chunker: str) -> CollectionInfo:
        """Have the collection be one of ``chunker`` from here on; what it holds, and its embedder, stay.

        For a writer that then cuts every document anew. Raises StoreError where there is no collection.
        """
        ...

    async def drop(self, scope: IngestScope) -> None:
        """Remove the collection whole; nothing happens where there is none."""
        ...

    async def upsert(self, scope: IngestScope, document_id: str, chunks: Sequence[IndexedChunk]) -> None:
        """Make ``chunks`` exactly what the store holds of this document.

        Chunks whose id is there already keep their dense vectors; new ones come without; others of the document
        go, after the new ones are in. A kill at any moment leaves the old or the new chunks findable.
        """
        ...

    async def set_vectors(self, scope: IngestScope, name: VectorName, vectors: Mapping[str, Vector]) -> None:
        """Fill in a dense vector of chunks by id. Ids that are gone meanwhile are passed over.

        Raises StoreError before anything is written for a wrong dimension, or a number that is not finite.
        """
        ...

    async def without_vector(self, scope: IngestScope, name: VectorName, *, limit: int) -> list[Chunk]:
        """Chunks that lack this vector, most recently changed file first (by ``mtime_ns``), at most ``limit``.

        The one read of a writer: it must embed what it does not own. Its result never reaches an answer.
        """
        ...

    async def delete_documents(self, scope: IngestScope, document_ids: Sequence[str]) -> None:
        """Remove all chunks of these documents."""
        ...

    async def set_readers(self, scope: IngestScope, readers: Mapping[str, frozenset[str]]) -> None:
        """Replace the readers of documents, by document id, without touching a vector."""
        ...

    async def documents(self, scope: IngestScope) -> list[DocumentState]:
        """What is indexed, a row a document: the truth that the manifest caches."""
        ...

    async def record_ingestion(self, scope: IngestScope, finished_at: datetime) -> CollectionInfo:
        """Note the end of a run (UTC) with the collection."""
        ...


class RagSource:
    """A further source of passages, beside the indexed corpora; subclassed by plug-ins that ``[[sources]]`` names.

    A subclass overrides ``search``, or ``search_text`` where the query and a number are all it needs. One that
    overrides neither is refused when it is registered, since each would call the other for ever.
    """

    default_min_score: float | None = None
    """Its own floor on ``RagResult.score``; None: the embedder's."""

    async def search(self, request: RagRequest) -> list[RagResult]:
        """Passages for a request, best first, only such as ``request.actor`` may read."""
        if not request.actor.principals & EVERYONE:
            return []
        return await self.search_text(request.query, request.max_results)

    async def search_text(self, query: str, max_results: int) -> list[RagResult]:
        """Passages for a query, of a source whose every passage ``team:everyone`` may read."""
        return await self.search(RagRequest(query, Actor("everyone", EVERYONE), max_results))
