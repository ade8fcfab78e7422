"""What actors read from a Qdrant server. Every request carries the readers predicate, in each of its branches."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from qdrant_client import models

from ragpilot.adapters.chunk_rows import Row, from_payload
from ragpilot.adapters.index_identity import REBUILD
from ragpilot.adapters.qdrant_collections import Known, QdrantCollections
from ragpilot.adapters.qdrant_filters import having_ids, readable_by
from ragpilot.adapters.qdrant_layout import LEXICAL, TERMS
from ragpilot.adapters.qdrant_terms import batch, count_of, weighed, weighing
from ragpilot.adapters.tied import WIDER, added_up, cut, nearer, nearest, wordiest
from ragpilot.errors import IndexMismatchError
from ragpilot.types import Actor, FacetField, SparseVector, StoreQuery, VectorName

WITHOUT_TERMS = models.PayloadSelectorExclude(exclude=[TERMS])

Scores = dict[str, float]
ScoredRow = tuple[Row, float | None, float | None, float]
"""A row with its header's cosine, its body's cosine and its lexical score."""


@dataclass(frozen=True)
class _Branch:
    """One way to score chunks. The same request is made twice: over all that is readable, then over the candidates."""

    using: str
    query: list[float] | models.SparseVector
    params: models.SearchParams
    limit: int

    def request(
        self, where: models.Filter, limit: int, params: models.SearchParams | None = None
    ) -> models.QueryRequest:
        return models.QueryRequest(
            query=self.query,
            using=self.using,
            filter=where,
            limit=limit,
            params=params or self.params,
            with_payload=False,
            with_vector=False,
        )


async def search(collections: QdrantCollections, actor: Actor, query: StoreQuery) -> list[ScoredRow]:
    """The nearest chunks and the best lexical matches, together, each with its score in every branch; ordered by id."""
    known = await collections.find(query.corpus)
    if known is None:
        return []
    dimensions = known.identity.embedder.dimensions
    if query.vector.shape != (dimensions,):
        raise IndexMismatchError(
            f"The question's vector has the shape {query.vector.shape}, "
            f"those of the collection {query.corpus!r} have {dimensions} numbers.",
            hint=REBUILD,
        )
    asked = await weighed(collections, known, actor, query.lexical)
    branches = _branches(actor, query, asked, known, collections.layout.search_params(known.points))
    found = await _best(collections, known, actor, branches)
    header, body, wordy = (found.get(name, {}) for name in ("header", "body", LEXICAL))
    near = nearer((header, body), query.dense_limit)
    ids = sorted({*near, *wordy})
    if not ids:
        return []
    records, lexical, _ = await asyncio.gather(
        _records(collections, known, actor, ids),
        _lexical_scores(collections, known, actor, asked, ids),
        _complete(collections, known, actor, branches, found, ids),
    )
    kept = near | cut(((lexical.get(chunk_id, 0.0), chunk_id) for chunk_id in wordy), query.lexical_limit).keys()
    scored: list[ScoredRow] = []
    for record in records:
        chunk_id = str(record.id)
        if chunk_id in kept:
            row = from_payload(chunk_id, record.payload or {})
            scored.append((row, header.get(chunk_id), body.get(chunk_id), lexical.get(chunk_id, 0.0)))
    return sorted(scored, key=lambda entry: str(entry[0][0]))


def _branches(
    actor: Actor, query: StoreQuery, asked: SparseVector, known: Known, nearest: models.SearchParams
) -> dict[str, _Branch]:
    vector = query.vector.tolist()
    branches = {name: _Branch(name, vector, nearest, query.dense_limit) for name in ("header", "body")}
    if asked.indices:
        terms = models.SparseVector(indices=list(asked.indices), values=list(asked.values))
        branches[LEXICAL] = _Branch(LEXICAL, terms, weighing(known, actor), query.lexical_limit)
    return branches


async def _best(
    collections: QdrantCollections, known: Known, actor: Actor, branches: Mapping[str, _Branch]
) -> dict[str, Scores]:
    """The scores of each branch's best, to its limit; of the lexical one all that may be among them."""
    readable = readable_by(actor)
    found: dict[str, Scores] = {name: {} for name in branches}
    sizes = {name: branch.limit + 1 for name, branch in branches.items() if branch.limit > 0}
    while sizes:
        requests = [branches[name].request(readable, size) for name, size in sizes.items()]
        wider: dict[str, int] = {}
        for (name, size), points in zip(sizes.items(), await batch(collections, known, requests), strict=True):
            scored, settle = [(p.score, str(p.id)) for p in points], wordiest if name == LEXICAL else nearest
            best = settle(scored, branches[name].limit, size)
            if best is None:
                wider[name] = size * WIDER
            else:
                found[name] = best
        sizes = wider
    return found


async def _complete(
    collections: QdrantCollections,
    known: Known,
    actor: Actor,
    branches: Mapping[str, _Branch],
    found: dict[str, Scores],
    ids: Sequence[str],
) -> None:
    """Score in each dense branch what only other branches found."""
    missing = {name: [i for i in ids if i not in found[name]] for name in branches if name != LEXICAL}
    exact = models.SearchParams(exact=True)
    requests = {
        name: branches[name].request(readable_by(actor, having_ids(rest)), len(rest), exact)
        for name, rest in missing.items()
        if rest
    }
    for name, points in zip(requests, await batch(collections, known, list(requests.values())), strict=True):
        found[name].update(_scores(points))


async def _lexical_scores(
    collections: QdrantCollections, known: Known, actor: Actor, terms: SparseVector, ids: Sequence[str]
) -> Scores:
    """The lexical scores of chunks, those left out that hold no term."""
    where, params = readable_by(actor, having_ids(ids)), weighing(known, actor)
    requests = [
        models.QueryRequest(
            query=models.SparseVector(indices=[term], values=[weight]),
            using=LEXICAL,
            filter=where,
            limit=len(ids),
            params=params,
            with_payload=False,
            with_vector=False,
        )
        for term, weight in zip(terms.indices, terms.values, strict=True)
    ]
    return added_up(map(_scores, await batch(collections, known, requests)))


def _scores(points: Iterable[models.ScoredPoint]) -> Scores:
    return {str(point.id): point.score for point in points}


async def _records(
    collections: QdrantCollections, known: Known, actor: Actor, ids: Sequence[str]
) -> list[models.Record]:
    where = readable_by(actor, having_ids(ids))
    records, _ = await collections.connection.call(
        lambda client: client.scroll(known.name, where, limit=len(ids), with_payload=WITHOUT_TERMS, with_vectors=False)
    )
    return records


async def get(collections: QdrantCollections, actor: Actor, corpus: str, chunk_id: str) -> Row | None:
    """The row of a readable chunk, or None. ``chunk_id`` is a UUID."""
    known = await collections.find(corpus)
    records = await _records(collections, known, actor, [chunk_id]) if known else []
    return from_payload(records[0].id, records[0].payload or {}) if records else None


async def count(collections: QdrantCollections, actor: Actor, corpus: str, having: VectorName | None) -> int:
    """Readable chunks; with ``having``, those that have this vector."""
    known = await collections.find(corpus)
    if known is None:
        return 0
    narrower = [models.HasVectorCondition(has_vector=having)] if having else []
    return await count_of(collections, known, actor, *narrower)


async def facets(collections: QdrantCollections, actor: Actor, corpus: str, field: FacetField) -> dict[str, int]:
    """Readable chunks by the value of ``field``."""
    # There cannot be more values than readable chunks.
    limit = await count(collections, actor, corpus, None)
    known = await collections.find(corpus)
    if known is None or not limit:
        return {}
    where = readable_by(actor)
    answer = await collections.connection.call(
        lambda client: client.facet(known.name, field, facet_filter=where, limit=limit, exact=True)
    )
    return {str(hit.value): hit.count for hit in answer.hits}


async def last_indexed(collections: QdrantCollections, actor: Actor, corpus: str) -> int | None:
    """When the most recently written readable chunk was written, in seconds since the epoch; None without chunks."""
    known = await collections.find(corpus)
    if known is None:
        return None
    newest = models.OrderBy(key="indexed_at", direction=models.Direction.DESC)
    where = readable_by(actor)
    records, _ = await collections.connection.call(
        lambda client: client.scroll(
            known.name, where, limit=1, order_by=newest, with_payload=["indexed_at"], with_vectors=False
        )
    )
    return int((records[0].payload or {})["indexed_at"]) if records else None
