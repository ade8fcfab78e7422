"""What writers do on a Qdrant server, and the few reads that they need for it. Every write may be made twice."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray
from qdrant_client import models

from ragpilot.adapters.chunk_rows import DOCUMENT_FIELDS, DocumentRow, Row, from_payload, to_payload
from ragpilot.adapters.qdrant_collections import Known, QdrantCollections
from ragpilot.adapters.qdrant_filters import chunks, having_ids, lacking, of_documents
from ragpilot.adapters.qdrant_layout import DENSE, LEXICAL, TERMS
from ragpilot.errors import StoreError, StoreUnavailableError
from ragpilot.types import IndexedChunk, VectorName

BATCH_POINTS = 256
BATCH_BYTES = 4 * 1024 * 1024
"""Of one request, about; the server takes 32 MB."""
BYTES_A_NUMBER = 12
"""A float as JSON."""
PAGE = 2_000


async def _apply(collections: QdrantCollections, known: Known, operations: Sequence[models.UpdateOperation]) -> None:
    """Carry out operations in their order; they are in force, and in the server's log, when this returns."""
    ordering = models.WriteOrdering.MEDIUM if collections.layout.replicas > 1 else None
    results = await collections.connection.call(
        lambda client: client.batch_update_points(known.name, list(operations), wait=True, ordering=ordering)
    )
    if any(result.status != models.UpdateStatus.COMPLETED for result in results):
        raise StoreUnavailableError(
            f"Qdrant at {collections.connection.url} took a write and did not carry it out in time.",
            hint="It is overloaded, or replicas are away. Run `ragpilot index` again.",
        )


async def upsert(
    collections: QdrantCollections,
    corpus: str,
    document_id: str,
    rows: Sequence[Row],
    entries: Sequence[IndexedChunk],
) -> None:
    """Make ``rows`` with their lexical vectors exactly what the collection holds of this document."""
    known = await collections.require(corpus)
    dense = await _dense_vectors(collections, known, [row[0] for row in rows])
    points = [
        models.PointStruct(
            id=row[0],
            vector={**dense.get(row[0], {}), LEXICAL: _sparse(entry)},
            payload={**to_payload(row, len(rows)), **({TERMS: list(entry.lexical.indices)} if known.counted else {})},
        )
        for row, entry in zip(rows, entries, strict=True)
    ]
    operations: list[models.UpdateOperation] = [collections.revised()]
    for batch in _batches(points):
        operations.append(models.UpsertOperation(upsert=models.PointsList(points=batch)))
        await _apply(collections, known, operations)
        operations = []
    others = of_documents([document_id], except_ids=[row[0] for row in rows])
    operations.append(models.DeleteOperation(delete=models.FilterSelector(filter=others)))
    await _apply(collections, known, operations)


def _sparse(entry: IndexedChunk) -> models.SparseVector:
    return models.SparseVector(indices=list(entry.lexical.indices), values=list(entry.lexical.values))


def _batches(points: Sequence[models.PointStruct]) -> Iterator[list[models.PointStruct]]:
    """Cut by number and by about how many bytes a request would have."""
    batch: list[models.PointStruct] = []
    held = 0
    for point in points:
        size = _bytes_of(point)
        if batch and (len(batch) >= BATCH_POINTS or held + size > BATCH_BYTES):
            yield batch
            batch, held = [], 0
        batch.append(point)
        held += size
    if batch:
        yield batch


def _bytes_of(point: models.PointStruct) -> int:
    payload = sum(len(value) for value in (point.payload or {}).values() if isinstance(value, str | list))
    vectors = point.vector if isinstance(point.vector, dict) else {}
    numbers = 0
    for vector in vectors.values():
        numbers += 2 * len(vector.indices) if isinstance(vector, models.SparseVector) else len(vector)  # type: ignore[arg-type]
    return 2 * payload + BYTES_A_NUMBER * numbers + 500


async def _dense_vectors(collections: QdrantCollections, known: Known, ids: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Id -> dense vectors by name, of those that are there: the server replaces a point whole."""
    found: dict[str, dict[str, Any]] = {}
    for start in range(0, len(ids), BATCH_POINTS):
        some = ids[start : start + BATCH_POINTS]
        for record in await _present(collections, known, some, DENSE):
            if isinstance(record.vector, dict):
                found[str(record.id)] = record.vector
    return found


async def _present(
    collections: QdrantCollections, known: Known, ids: Sequence[str], vectors: Sequence[str] = ()
) -> list[models.Record]:
    """Those of ``ids`` that are there, with the vectors named. A writer's read."""
    where = models.Filter(must=[having_ids(ids)])
    wanted: list[str] | bool = list(vectors) or False
    records, _ = await collections.connection.call(
        lambda client: client.scroll(known.name, where, limit=len(ids), with_payload=False, with_vectors=wanted)
    )
    return records


async def set_vectors(
    collections: QdrantCollections, corpus: str, name: VectorName, ids: Sequence[str], matrix: NDArray[np.float32]
) -> None:
    """Fill in a dense vector; row ``i`` of ``matrix`` belongs to ``ids[i]``. Ids that are gone are passed over."""
    known = await collections.require(corpus)
    dimensions = known.identity.embedder.dimensions
    if ids and matrix.shape != (len(ids), dimensions):
        raise StoreError(
            f"The vectors to store have {matrix.shape[1]} numbers, those of the collection {corpus!r} {dimensions}."
        )
    size = max(1, min(BATCH_POINTS, BATCH_BYTES // (BYTES_A_NUMBER * dimensions)))
    operations: list[models.UpdateOperation] = [collections.revised()]
    for start in range(0, len(ids), size):
        some = list(ids[start : start + size])
        # The server refuses a vector for a point that is not there, and the rest of its batch with it.
        present = {str(record.id) for record in await _present(collections, known, some)}
        points = [
            models.PointVectors(id=chunk_id, vector={name: matrix[at].tolist()})
            for at, chunk_id in enumerate(some, start)
            if chunk_id in present
        ]
        if points:
            operations.append(models.UpdateVectorsOperation(update_vectors=models.UpdateVectors(points=points)))
            await _apply(collections, known, operations)
            operations = []
    if operations:
        await _apply(collections, known, operations)


async def delete_documents(collections: QdrantCollections, corpus: str, document_ids: Sequence[str]) -> None:
    """Remove all chunks of these documents."""
    known = await collections.require(corpus)
    selected = models.FilterSelector(filter=of_documents(document_ids))
    await _apply(collections, known, [collections.revised(), models.DeleteOperation(delete=selected)])


async def set_readers(
    collections: QdrantCollections, corpus: str, readers: Mapping[frozenset[str], Sequence[str]]
) -> None:
    """Replace the readers of documents; the ids of those that get the same readers stand together."""
    known = await collections.require(corpus)
    changes = [
        models.SetPayloadOperation(
            set_payload=models.SetPayload(payload={"readers": sorted(granted)}, filter=of_documents(document_ids))
        )
        for granted, document_ids in readers.items()
    ]
    await _apply(collections, known, [collections.revised(), *changes])


async def adopt_chunker(collections: QdrantCollections, corpus: str, chunker: str) -> None:
    """Have the collection be one of ``chunker``."""
    known = await collections.require(corpus)
    await _apply(collections, known, [collections.revised()])
    await collections.adopt_chunker(corpus, known, chunker)


async def record_ingestion(collections: QdrantCollections, corpus: str, finished_at: datetime) -> None:
    """Note the end of a run."""
    known = await collections.require(corpus)
    await _apply(collections, known, [collections.revised(last_ingestion=finished_at)])


async def without_vector(collections: QdrantCollections, corpus: str, name: VectorName, limit: int) -> list[Row]:
    """Chunks that lack this vector, of the most recently changed files. A writer's read."""
    known = await collections.find(corpus)
    if known is None or limit <= 0:
        return []
    newest = models.OrderBy(key="mtime_ns", direction=models.Direction.DESC)
    records, _ = await collections.connection.call(
        lambda client: client.scroll(
            known.name, lacking(name), limit=limit, order_by=newest, with_payload=True, with_vectors=False
        )
    )
    return [from_payload(record.id, record.payload or {}) for record in records]


async def document_rows(collections: QdrantCollections, corpus: str) -> AsyncIterator[list[DocumentRow]]:
    """Every chunk as a row of ``DOCUMENT_FIELDS``, page by page. A writer's read."""
    known = await collections.find(corpus)
    if known is None:
        return
    offset: Any = None
    while True:
        records, offset = await _page(collections, known, offset)
        yield [tuple((record.payload or {})[field] for field in DOCUMENT_FIELDS) for record in records]
        if offset is None:
            return


async def _page(collections: QdrantCollections, known: Known, offset: Any) -> tuple[list[models.Record], Any]:
    return await collections.connection.call(
        lambda client: client.scroll(
            known.name, chunks(), limit=PAGE, offset=offset, with_payload=list(DOCUMENT_FIELDS), with_vectors=False
        )
    )
