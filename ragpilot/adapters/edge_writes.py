"""What writers do, and the few reads that they need for it. In the owner process.

Nothing here flushes, apart from what the record must follow: the owner flushes once for all writes of a batch,
before it answers any of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from qdrant_edge import Direction, OrderBy, Point, PointVectors, Record, ScrollRequest, SparseVector, UpdateOperation

from ragpilot.adapters.chunk_rows import DOCUMENT_FIELDS, DocumentRow, Row, from_payload, to_payload
from ragpilot.adapters.edge_collections import Collection, Collections
from ragpilot.adapters.edge_filters import lacking, of_documents, of_ids
from ragpilot.adapters.edge_shard import DENSE, LEXICAL
from ragpilot.errors import StoreError
from ragpilot.types import CollectionInfo, IndexIdentity, VectorName

_T = TypeVar("_T")

_BATCH = 256
"""Points of one engine operation: some 2 MB of its log, whose segments hold 32."""


def ensure(collections: Collections, corpus: str, identity: IndexIdentity) -> CollectionInfo:
    """Open the collection, or create it."""
    record = collections.record(corpus)
    if record is not None:
        # Before the shard is opened: a collection of another embedder is refused, however damaged.
        record.require(identity)
    collection = collections.find(corpus) or collections.create(corpus, identity)
    return collection.record.info()


def describe(collections: Collections, corpus: str) -> CollectionInfo | None:
    """What is known of the collection; its shard stays as it is, open or not."""
    record = collections.record(corpus)
    return record.info() if record else None


def adopt_chunker(collections: Collections, corpus: str, chunker: str) -> CollectionInfo:
    """Have the collection be one of ``chunker``."""
    collection = collections.require(corpus)
    collection.changing(content=False)
    collection.record.adopt_chunker(chunker)
    return collection.record.info()


def failures(collections: Collections) -> list[str]:
    """What kept collections from being opened; by this the owner also shows that it answers."""
    return list(collections.failures.values())


def drop(collections: Collections, corpus: str) -> None:
    """Remove the collection whole."""
    collections.drop(corpus)


def record_ingestion(collections: Collections, corpus: str, finished_at: datetime) -> CollectionInfo:
    """Note the end of a run."""
    collection = collections.require(corpus)
    collection.changing(content=False)
    collection.record.ingested(finished_at)
    collections.settle(corpus)
    return collection.record.info()


def upsert(
    collections: Collections,
    corpus: str,
    document_id: str,
    rows: Sequence[Row],
    lexical: Sequence[tuple[list[int], list[float]]],
) -> None:
    """Make ``rows`` with their lexical vectors exactly what the collection holds of this document."""
    collection = collections.require(corpus)
    collection.changing(content=True)
    for batch in _batches(list(zip(rows, lexical, strict=True))):
        # The engine replaces a point whole, so the dense vectors that it has go in again with the rest.
        dense = _dense_vectors(collection, [row[0] for row, _ in batch])
        points = [
            Point(row[0], {**dense.get(row[0], {}), LEXICAL: SparseVector(*terms)}, to_payload(row, len(rows)))
            for row, terms in batch
        ]
        collection.update(UpdateOperation.upsert_points(points))
    others = of_documents([document_id], except_ids=[row[0] for row in rows])
    collection.update(UpdateOperation.delete_points_by_filter(others))


def _dense_vectors(collection: Collection, ids: list[str]) -> dict[str, dict[str, Any]]:
    """Id -> dense vectors by name, of those that are there."""
    return {str(point.id): point.vector for point in _points(collection, ids, DENSE) if isinstance(point.vector, dict)}


def set_vectors(
    collections: Collections, corpus: str, name: VectorName, ids: list[str], matrix: NDArray[np.float32]
) -> None:
    """Fill in a dense vector; row ``i`` of ``matrix`` belongs to ``ids[i]``. Ids that are gone are passed over."""
    collection = collections.require(corpus)
    if ids and matrix.shape != (len(ids), collection.dimensions):
        raise StoreError(
            f"The vectors to store have {matrix.shape[1]} numbers, "
            f"those of the collection {corpus!r} {collection.dimensions}."
        )
    collection.changing(content=False)
    for batch in _batches(list(zip(ids, matrix, strict=True))):
        # The engine refuses a vector for a point that is not there, and the rest of its batch with it.
        present = {str(point.id) for point in _points(collection, [chunk_id for chunk_id, _ in batch])}
        vectors = [PointVectors(i, {name: vector.tolist()}) for i, vector in batch if i in present]
        if vectors:
            collection.update(UpdateOperation.update_vectors(vectors))


def _points(collection: Collection, ids: list[str], vectors: Sequence[str] = ()) -> list[Record]:
    """Those of ``ids`` that are there, with the vectors named. A writer's read."""
    request = ScrollRequest(limit=len(ids), filter=of_ids(ids), with_payload=False, with_vector=list(vectors))
    return collection.shard.scroll(request)[0]


def delete_documents(collections: Collections, corpus: str, document_ids: list[str]) -> None:
    """Remove all chunks of these documents."""
    collection = collections.require(corpus)
    collection.changing(content=True)
    collection.update(UpdateOperation.delete_points_by_filter(of_documents(document_ids)))


def set_readers(collections: Collections, corpus: str, readers: Mapping[frozenset[str], list[str]]) -> None:
    """Replace the readers of documents; the ids of those that get the same readers stand together."""
    collection = collections.require(corpus)
    collection.changing(content=True)
    for granted, document_ids in readers.items():
        payload = {"readers": sorted(granted)}
        collection.update(UpdateOperation.set_payload_by_filter(of_documents(document_ids), payload))


def without_vector(collections: Collections, corpus: str, name: VectorName, limit: int) -> list[Row]:
    """Chunks that lack this vector, of the most recently changed files. A writer's read."""
    collection = collections.find(corpus)
    if collection is None or limit <= 0:
        return []
    newest = OrderBy("mtime_ns", Direction.Desc)
    request = ScrollRequest(limit=limit, filter=lacking(name), with_payload=True, with_vector=False, order_by=newest)
    points, _ = collection.shard.scroll(request)
    return [from_payload(point.id, point.payload or {}) for point in points]


def document_rows(
    collections: Collections, corpus: str, offset: str | None, limit: int
) -> tuple[list[DocumentRow], str | None]:
    """A page of chunks, as rows of ``DOCUMENT_FIELDS``, and where the next page begins. A writer's read."""
    collection = collections.find(corpus)
    if collection is None:
        return [], None
    request = ScrollRequest(offset=offset, limit=limit, with_payload=list(DOCUMENT_FIELDS), with_vector=False)
    points, following = collection.shard.scroll(request)
    rows = [tuple((point.payload or {})[field] for field in DOCUMENT_FIELDS) for point in points]
    return rows, None if following is None else str(following)


def _batches(items: list[_T]) -> Iterator[list[_T]]:
    for start in range(0, len(items), _BATCH):
        yield items[start : start + _BATCH]
