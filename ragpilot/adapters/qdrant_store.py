"""The chunk store on a Qdrant server or cluster, over REST or gRPC.

The same collection, predicate and scores as the embedded store's. A collection of up to ``Layout.exact_limit`` points
is searched exactly; larger ones by graphs, which were built with links among the chunks of each reader.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TypeVar

from qdrant_client import AsyncQdrantClient

from ragpilot.adapters import qdrant_reads, qdrant_terms, qdrant_writes
from ragpilot.adapters.chunk_rows import check_chunks, check_question, is_point_id, stack_vectors, to_chunk, to_row
from ragpilot.adapters.document_tally import Tally
from ragpilot.adapters.qdrant_collections import QdrantCollections
from ragpilot.adapters.qdrant_connection import MissingError, QdrantConnection
from ragpilot.adapters.qdrant_layout import Layout
from ragpilot.errors import StoreError, StoreUnavailableError
from ragpilot.types import (
    Actor,
    Candidate,
    Chunk,
    CollectionInfo,
    DocumentState,
    FacetField,
    Health,
    IndexedChunk,
    IndexIdentity,
    IngestScope,
    StoreQuery,
    TermStatistics,
    Vector,
    VectorName,
)

_T = TypeVar("_T")

_DOCUMENTS_AT_ONCE = 500


class QdrantStore:
    """ChunkStore on a server of version 1.19 or newer. Nothing is asked of it before the first call that needs it.

    Several processes, on several machines, may use one server at once; one of them at a time should write a corpus.
    """

    def __init__(
        self,
        url: str,
        *,
        api_key: str | None = None,
        layout: Layout | None = None,
        grpc_port: int | None = None,
        seconds: float = 60.0,
        pause: float = 0.5,
        client: AsyncQdrantClient | None = None,
    ) -> None:
        """Connects to nothing yet.

        Args:
            url: The server's REST address.
            api_key: Sent with every request.
            layout: How new collections are made, and how large ones are searched.
            grpc_port: Use gRPC at this port for reads and writes; None: REST.
            seconds: The longest wait for one call.
            pause: Seconds before a transient failure is tried again; doubled before each further try.
            client: An open client to use instead, such as one in local mode.
        """
        self.url = url
        self._connection = QdrantConnection(
            url, api_key=api_key, grpc_port=grpc_port, seconds=seconds, pause=pause, client=client
        )
        self._collections = QdrantCollections(self._connection, layout or Layout())

    # reads

    async def search(self, actor: Actor, query: StoreQuery) -> list[Candidate]:
        """See the port. Raises IndexMismatchError for a question's vector of another dimension."""
        check_question(query.vector, query.lexical)
        found = await self._read(query.corpus, qdrant_reads.search(self._collections, actor, query), [])
        return [Candidate(to_chunk(query.corpus, row), header, body, lexical) for row, header, body, lexical in found]

    async def count(self, actor: Actor, corpus: str, *, having: VectorName | None = None) -> int:
        """See the port."""
        return await self._read(corpus, qdrant_reads.count(self._collections, actor, corpus, having), 0)

    async def get(self, actor: Actor, corpus: str, chunk_id: str) -> Chunk | None:
        """See the port."""
        if not is_point_id(chunk_id):
            return None
        row = await self._read(corpus, qdrant_reads.get(self._collections, actor, corpus, chunk_id), None)
        return None if row is None else to_chunk(corpus, row)

    async def facets(self, actor: Actor, corpus: str, field: FacetField) -> dict[str, int]:
        """See the port."""
        return await self._read(corpus, qdrant_reads.facets(self._collections, actor, corpus, field), {})

    async def term_statistics(self, actor: Actor, corpus: str, terms: Sequence[int]) -> TermStatistics:
        """See the port."""
        nothing = (0, dict.fromkeys(terms, 0))
        asked = qdrant_terms.term_statistics(self._collections, actor, corpus, terms)
        total, frequencies = await self._read(corpus, asked, nothing)
        return TermStatistics(total=total, frequencies=frequencies)

    async def last_indexed(self, actor: Actor, corpus: str) -> datetime | None:
        """See the port."""
        seconds = await self._read(corpus, qdrant_reads.last_indexed(self._collections, actor, corpus), None)
        return None if seconds is None else datetime.fromtimestamp(seconds, UTC)

    # about collections

    async def describe(self, corpus: str) -> CollectionInfo | None:
        """See the port. Raises StoreError or IndexMismatchError for a collection that cannot be used."""
        return await self._read(corpus, self._collections.info(corpus), None)

    async def check(self) -> Health:
        """See the port."""
        started = time.perf_counter()
        try:
            version = await self._connection.version()
        except StoreError as error:
            return Health(ok=False, detail=str(error))
        detail = f"Qdrant {version} at {self.url}."
        return Health(ok=True, detail=detail, latency_ms=(time.perf_counter() - started) * 1000)

    async def aclose(self) -> None:
        """See the port."""
        await self._connection.aclose()

    # writes

    async def ensure(self, scope: IngestScope, identity: IndexIdentity) -> CollectionInfo:
        """See the port. An empty collection of another identity is refused as well."""
        return await self._collections.ensure(scope.corpus, identity)

    async def adopt_chunker(self, scope: IngestScope, chunker: str) -> CollectionInfo:
        """See the port."""
        await self._write(scope.corpus, qdrant_writes.adopt_chunker(self._collections, scope.corpus, chunker))
        return await self._described(scope.corpus)

    async def drop(self, scope: IngestScope) -> None:
        """See the port. A collection that RagPilot did not make is refused."""
        await self._collections.drop(scope.corpus)

    async def upsert(self, scope: IngestScope, document_id: str, chunks: Sequence[IndexedChunk]) -> None:
        """See the port. Raises StoreError before anything is written for a chunk that cannot be stored as it is."""
        check_chunks(scope.corpus, document_id, chunks)
        rows = [to_row(entry.chunk) for entry in chunks]
        await self._write(
            scope.corpus, qdrant_writes.upsert(self._collections, scope.corpus, document_id, rows, chunks)
        )

    async def set_vectors(self, scope: IngestScope, name: VectorName, vectors: Mapping[str, Vector]) -> None:
        """See the port."""
        ids, matrix = stack_vectors({i: vector for i, vector in vectors.items() if is_point_id(i)})
        await self._write(scope.corpus, qdrant_writes.set_vectors(self._collections, scope.corpus, name, ids, matrix))

    async def without_vector(self, scope: IngestScope, name: VectorName, *, limit: int) -> list[Chunk]:
        """See the port. Among chunks of the same time the server chooses."""
        asked = qdrant_writes.without_vector(self._collections, scope.corpus, name, limit)
        chunks = [to_chunk(scope.corpus, row) for row in await self._read(scope.corpus, asked, [])]
        return sorted(chunks, key=lambda chunk: (-chunk.mtime_ns, chunk.id))

    async def delete_documents(self, scope: IngestScope, document_ids: Sequence[str]) -> None:
        """See the port."""
        for start in range(0, max(1, len(document_ids)), _DOCUMENTS_AT_ONCE):
            some = list(document_ids[start : start + _DOCUMENTS_AT_ONCE])
            await self._write(scope.corpus, qdrant_writes.delete_documents(self._collections, scope.corpus, some))

    async def set_readers(self, scope: IngestScope, readers: Mapping[str, frozenset[str]]) -> None:
        """See the port."""
        changes = list(readers.items())
        for start in range(0, max(1, len(changes)), _DOCUMENTS_AT_ONCE):
            together: dict[frozenset[str], list[str]] = {}
            for document_id, granted in changes[start : start + _DOCUMENTS_AT_ONCE]:
                together.setdefault(granted, []).append(document_id)
            await self._write(scope.corpus, qdrant_writes.set_readers(self._collections, scope.corpus, together))

    async def documents(self, scope: IngestScope) -> list[DocumentState]:
        """See the port; ordered by document id.

        A document that was written in half has an empty content hash, so that it counts as changed.
        """
        tally = Tally()
        await self._read(scope.corpus, self._add_up(scope.corpus, tally), None)
        return tally.states()

    async def record_ingestion(self, scope: IngestScope, finished_at: datetime) -> CollectionInfo:
        """See the port."""
        await self._write(scope.corpus, qdrant_writes.record_ingestion(self._collections, scope.corpus, finished_at))
        return await self._described(scope.corpus)

    async def _described(self, corpus: str) -> CollectionInfo:
        info = await self.describe(corpus)
        if info is None:
            raise StoreUnavailableError(f"The collection {corpus!r} was removed during a run.")
        return info

    async def _add_up(self, corpus: str, tally: Tally) -> None:
        async for rows in qdrant_writes.document_rows(self._collections, corpus):
            tally.add(rows)

    async def _read(self, corpus: str, asked: Awaitable[_T], nothing: _T) -> _T:
        """What was asked, or ``nothing`` where another process has removed the collection meanwhile."""
        try:
            return await asked
        except MissingError:
            self._collections.forget(corpus)
            return nothing

    async def _write(self, corpus: str, work: Awaitable[None]) -> None:
        try:
            await work
        except MissingError:
            self._collections.forget(corpus)
            raise StoreError(f"The collection {corpus!r} was removed while it was written to.") from None
