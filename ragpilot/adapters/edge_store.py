"""The embedded chunk store: Qdrant's own engine on disk, one shard a corpus, in an owner process of its own.

Search is exact: no graph is built, and scores are raw. The engine's files never stand in the calling process
(``edge_owner`` says why); this module is the port's side, ``edge_reads`` and ``edge_writes`` are the other.

The space of removed chunks is used again only in part; dropping the collection and building it anew frees all of it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from ragpilot.adapters import edge_reads, edge_writes
from ragpilot.adapters.chunk_rows import check_chunks, check_question, is_point_id, stack_vectors, to_chunk, to_row
from ragpilot.adapters.document_tally import Tally
from ragpilot.adapters.edge_collections import Collections
from ragpilot.adapters.edge_process import Limits
from ragpilot.adapters.edge_queue import CallQueue
from ragpilot.adapters.edge_room import shortage
from ragpilot.errors import StoreError
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

_P = ParamSpec("_P")
_T = TypeVar("_T")

_DOCUMENTS_AT_ONCE = 500
"""Documents of one deletion or change of readers: some 100 ms, so that reads are not kept waiting."""
_PAGE = 5_000
"""Chunks of one page of ``documents()``: some 50 ms."""
_CHECK_SECONDS = 2.0


class EdgeStore:
    """ChunkStore over ``qdrant_edge``, in the folder ``path``: ``path/<corpus>/`` is a collection.

    Nothing is started or put on disk before the first call that needs it. One store at a time may have the folder
    open, in whatever process. Calls are served in their order; concurrent writes share a flush, so a caller with
    many documents should have some of them under way at once. A call whose owner process dies is made once more in
    a new one, then it raises StoreUnavailableError; every call is bounded by ``limits``.
    """

    def __init__(self, path: Path, *, limits: Limits | None = None) -> None:
        self.path = path.absolute()
        self._calls = CallQueue(self.path, limits or Limits())

    @property
    def owner_pid(self) -> int | None:
        """The owner process, for diagnosis; None while none runs."""
        return self._calls.owner_pid

    # reads

    async def search(self, actor: Actor, query: StoreQuery) -> list[Candidate]:
        """See the port. Raises IndexMismatchError for a question's vector of another dimension."""
        check_question(query.vector, query.lexical)
        found = await self._read(edge_reads.search, actor, query)
        return [Candidate(to_chunk(query.corpus, row), header, body, lexical) for row, header, body, lexical in found]

    async def count(self, actor: Actor, corpus: str, *, having: VectorName | None = None) -> int:
        """See the port."""
        return await self._read(edge_reads.count, actor, corpus, having)

    async def get(self, actor: Actor, corpus: str, chunk_id: str) -> Chunk | None:
        """See the port."""
        if not is_point_id(chunk_id):
            return None
        row = await self._read(edge_reads.get, actor, corpus, chunk_id)
        return None if row is None else to_chunk(corpus, row)

    async def facets(self, actor: Actor, corpus: str, field: FacetField) -> dict[str, int]:
        """See the port."""
        return await self._read(edge_reads.facets, actor, corpus, field)

    async def term_statistics(self, actor: Actor, corpus: str, terms: Sequence[int]) -> TermStatistics:
        """See the port."""
        total, frequencies = await self._read(edge_reads.term_statistics, actor, corpus, tuple(terms))
        return TermStatistics(total=total, frequencies=frequencies)

    async def last_indexed(self, actor: Actor, corpus: str) -> datetime | None:
        """See the port."""
        seconds = await self._read(edge_reads.last_indexed, actor, corpus)
        return None if seconds is None else datetime.fromtimestamp(seconds, UTC)

    # about collections

    async def describe(self, corpus: str) -> CollectionInfo | None:
        """See the port. Raises StoreDamagedError or IndexMismatchError for a collection that cannot be used."""
        return await self._read(edge_writes.describe, corpus)

    async def check(self) -> Health:
        """See the port. Not ok as well while a collection cannot be opened, as far as one was asked for.

        Well on a full disk: questions are answered. The detail says that nothing can be written.
        """
        started = time.perf_counter()
        try:
            async with asyncio.timeout(_CHECK_SECONDS):
                failures = await self._read(edge_writes.failures)
        except StoreError as error:
            return Health(ok=False, detail=str(error), latency_ms=_milliseconds_since(started))
        except TimeoutError:
            busy = f"The embedded store gave no answer within {_CHECK_SECONDS:g} s: it is busy, or it hangs."
            return Health(ok=False, detail=busy, latency_ms=_milliseconds_since(started))
        detail = " ".join(failures) or f"Embedded store in {self.path}."
        if problem := await asyncio.to_thread(shortage, self.path):
            detail = f"{detail} {problem.message}"
        return Health(ok=not failures, detail=detail, latency_ms=_milliseconds_since(started))

    async def aclose(self) -> None:
        """See the port. Calls under way are finished first; later ones raise StoreUnavailableError."""
        await asyncio.to_thread(self._calls.close)

    # writes

    async def ensure(self, scope: IngestScope, identity: IndexIdentity) -> CollectionInfo:
        """See the port. An empty collection of another identity is refused as well."""
        return await self._write(edge_writes.ensure, scope.corpus, identity)

    async def adopt_chunker(self, scope: IngestScope, chunker: str) -> CollectionInfo:
        """See the port. It is on disk once this returns."""
        return await self._write(edge_writes.adopt_chunker, scope.corpus, chunker)

    async def drop(self, scope: IngestScope) -> None:
        """See the port. A damaged collection goes, too."""
        await self._write(edge_writes.drop, scope.corpus)

    async def upsert(self, scope: IngestScope, document_id: str, chunks: Sequence[IndexedChunk]) -> None:
        """See the port. Raises StoreError before anything is written for a chunk that cannot be stored as it is."""
        check_chunks(scope.corpus, document_id, chunks)
        rows = [to_row(entry.chunk) for entry in chunks]
        lexical = [(list(entry.lexical.indices), list(entry.lexical.values)) for entry in chunks]
        await self._write(edge_writes.upsert, scope.corpus, document_id, rows, lexical)

    async def set_vectors(self, scope: IngestScope, name: VectorName, vectors: Mapping[str, Vector]) -> None:
        """See the port."""
        ids, matrix = stack_vectors({i: vector for i, vector in vectors.items() if is_point_id(i)})
        await self._write(edge_writes.set_vectors, scope.corpus, name, ids, matrix)

    async def without_vector(self, scope: IngestScope, name: VectorName, *, limit: int) -> list[Chunk]:
        """See the port. Among chunks of the same time the engine chooses; the same ones while nothing is written."""
        rows = await self._read(edge_writes.without_vector, scope.corpus, name, limit)
        chunks = [to_chunk(scope.corpus, row) for row in rows]
        return sorted(chunks, key=lambda chunk: (-chunk.mtime_ns, chunk.id))

    async def delete_documents(self, scope: IngestScope, document_ids: Sequence[str]) -> None:
        """See the port."""
        for start in range(0, max(1, len(document_ids)), _DOCUMENTS_AT_ONCE):
            some = list(document_ids[start : start + _DOCUMENTS_AT_ONCE])
            await self._write(edge_writes.delete_documents, scope.corpus, some)

    async def set_readers(self, scope: IngestScope, readers: Mapping[str, frozenset[str]]) -> None:
        """See the port."""
        changes = list(readers.items())
        for start in range(0, max(1, len(changes)), _DOCUMENTS_AT_ONCE):
            together: dict[frozenset[str], list[str]] = {}
            for document_id, granted in changes[start : start + _DOCUMENTS_AT_ONCE]:
                together.setdefault(granted, []).append(document_id)
            await self._write(edge_writes.set_readers, scope.corpus, together)

    async def documents(self, scope: IngestScope) -> list[DocumentState]:
        """See the port; ordered by document id.

        A document that was written in half (the machine or the process went down meanwhile) has an empty content
        hash, so that it counts as changed.
        """
        tally = Tally()
        offset: str | None = None
        while True:
            rows, offset = await self._read(edge_writes.document_rows, scope.corpus, offset, _PAGE)
            tally.add(rows)
            if offset is None:
                return tally.states()

    async def record_ingestion(self, scope: IngestScope, finished_at: datetime) -> CollectionInfo:
        """See the port."""
        return await self._write(edge_writes.record_ingestion, scope.corpus, finished_at)

    async def _read(self, work: Callable[Concatenate[Collections, _P], _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        return await asyncio.wrap_future(self._calls.read(work, *args, **kwargs))

    async def _write(self, work: Callable[Concatenate[Collections, _P], _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        return await asyncio.wrap_future(self._calls.write(work, *args, **kwargs))


def _milliseconds_since(started: float) -> float:
    return (time.perf_counter() - started) * 1000
