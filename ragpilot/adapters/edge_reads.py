"""What actors read, in the owner process. Every request carries the readers predicate, in each of its branches."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from qdrant_edge import (
    CountRequest,
    Direction,
    FacetRequest,
    Filter,
    HasVectorCondition,
    IdfParams,
    OrderBy,
    Query,
    QueryBatchRequest,
    QueryRequest,
    Record,
    ScoredPoint,
    ScrollRequest,
    SearchParams,
    SparseVector,
)

from ragpilot.adapters.chunk_rows import Row, from_payload, is_term
from ragpilot.adapters.edge_collections import Collection, Collections
from ragpilot.adapters.edge_filters import PointId, having_ids, readable_by
from ragpilot.adapters.edge_shard import LEXICAL
from ragpilot.adapters.index_identity import REBUILD
from ragpilot.adapters.tied import WIDER, added_up, cut, nearer, nearest, wordiest
from ragpilot.errors import IndexMismatchError
from ragpilot.types import Actor, FacetField, StoreQuery, VectorName
from ragpilot.types import SparseVector as Terms

Scores = dict[PointId, float]
"""By the ids as the engine gives them: making strings of all of them costs more than some searches."""

ScoredRow = tuple[Row, float | None, float | None, float]
"""A row with its header's cosine, its body's cosine and its lexical score."""


@dataclass(frozen=True)
class _Branch:
    """One way to score chunks. The same request is made twice: over all that is readable, then over the candidates."""

    query: Query
    params: SearchParams
    limit: int

    def request(self, where: Filter, limit: int) -> QueryRequest:
        return QueryRequest(limit=limit, query=self.query, filter=where, params=self.params, with_payload=False)


def search(collections: Collections, actor: Actor, query: StoreQuery) -> list[ScoredRow]:
    """The nearest chunks and the best lexical matches, together, each with its score in every branch; ordered by id."""
    collection = collections.find(query.corpus)
    if collection is None:
        return []
    if query.vector.shape != (collection.dimensions,):
        raise IndexMismatchError(
            f"The question's vector has the shape {query.vector.shape}, "
            f"those of the collection {query.corpus!r} have {collection.dimensions} numbers.",
            hint=REBUILD,
        )
    branches = _branches(actor, query)
    found = _best(collection, actor, branches)
    header, body, wordy = (found.get(name, {}) for name in ("header", "body", LEXICAL))
    near = nearer((header, body), query.dense_limit)
    ids = {*near, *wordy}
    if not ids:
        return []
    lexical = _lexical_scores(collection, actor, query.lexical, ids)
    ids = near | cut(((lexical.get(point_id, 0.0), point_id) for point_id in wordy), query.lexical_limit).keys()
    _complete(collection, actor, branches, found, ids)
    scored: list[ScoredRow] = []
    for record in _records(collection, actor, ids):
        point_id = record.id
        row = from_payload(point_id, record.payload or {})
        scored.append((row, header.get(point_id), body.get(point_id), lexical.get(point_id, 0.0)))
    return sorted(scored, key=_id_of)


def _id_of(scored: ScoredRow) -> str:
    return str(scored[0][0])


def _branches(actor: Actor, query: StoreQuery) -> dict[str, _Branch]:
    exact = SearchParams(exact=True)
    vector = query.vector.tolist()
    branches = {
        name: _Branch(Query.Nearest(vector, using=name), exact, query.dense_limit) for name in ("header", "body")
    }
    if query.lexical.indices:
        terms = SparseVector(list(query.lexical.indices), list(query.lexical.values))
        branches[LEXICAL] = _Branch(Query.Nearest(terms, using=LEXICAL), _lexical_params(actor), query.lexical_limit)
    return branches


def _lexical_params(actor: Actor) -> SearchParams:
    """How rare a term is, is counted over what the actor may read: other documents must not move a score."""
    return SearchParams(exact=True, idf=IdfParams(corpus=readable_by(actor)))


def _best(collection: Collection, actor: Actor, branches: dict[str, _Branch]) -> dict[str, Scores]:
    """The scores of each branch's best, to its limit; of the lexical one all that may be among them."""
    readable = readable_by(actor)
    found: dict[str, Scores] = {name: {} for name in branches}
    sizes = {name: branch.limit + 1 for name, branch in branches.items() if branch.limit > 0}
    while sizes:
        requests = [branches[name].request(readable, size) for name, size in sizes.items()]
        answers = collection.shard.query_batch(QueryBatchRequest(requests))
        wider: dict[str, int] = {}
        for (name, size), points in zip(sizes.items(), answers, strict=True):
            scored, settle = [(point.score, point.id) for point in points], wordiest if name == LEXICAL else nearest
            best = settle(scored, branches[name].limit, size)
            if best is None:
                wider[name] = size * WIDER
            else:
                found[name] = best
        sizes = wider
    return found


def _complete(
    collection: Collection, actor: Actor, branches: dict[str, _Branch], found: dict[str, Scores], ids: set[PointId]
) -> None:
    """Score in each dense branch what only other branches found."""
    # A branch that came back short has shown all that it can score.
    full = {
        name: ids - found[name].keys()
        for name, branch in branches.items()
        if name != LEXICAL and len(found[name]) == branch.limit
    }
    missing = {name: rest for name, rest in full.items() if rest}
    requests = [
        branches[name].request(readable_by(actor, having_ids(rest)), len(rest)) for name, rest in missing.items()
    ]
    answers = collection.shard.query_batch(QueryBatchRequest(requests)) if requests else []
    for name, points in zip(missing, answers, strict=True):
        found[name].update(_scores(points))


def _lexical_scores(collection: Collection, actor: Actor, terms: Terms, ids: set[PointId]) -> Scores:
    """The lexical scores of chunks, those left out that hold no term.

    Counting in how many of all readable chunks a term stands is the dear part of a lexical score, and has been done
    for the question as a whole. So the engine weighs terms by the candidates alone here, which is undone again.
    """
    total, frequencies = _term_statistics(collection, actor, terms.indices)
    where = readable_by(actor, having_ids(ids))
    params = SearchParams(exact=True, idf=IdfParams(corpus=where))
    asked = [(term, weight) for term, weight in zip(terms.indices, terms.values, strict=True) if frequencies[term]]
    requests = [
        QueryRequest(
            limit=len(ids),
            query=Query.Nearest(SparseVector([term], [1.0]), using=LEXICAL),
            filter=where,
            params=params,
            with_payload=False,
        )
        for term, _ in asked
    ]
    answers = collection.shard.query_batch(QueryBatchRequest(requests)) if requests else []
    by_term: list[Scores] = []
    for (term, weight), points in zip(asked, answers, strict=True):
        factor = weight * idf_of(frequencies[term], total) / idf_of(len(points), len(ids))
        by_term.append({point.id: point.score * factor for point in points})
    return added_up(by_term)


def _scores(points: Iterable[ScoredPoint]) -> Scores:
    return {point.id: point.score for point in points}


def _records(collection: Collection, actor: Actor, ids: set[PointId]) -> list[Record]:
    where = readable_by(actor, having_ids(ids))
    request = ScrollRequest(limit=len(ids), filter=where, with_payload=True, with_vector=False)
    return collection.shard.scroll(request)[0]


def get(collections: Collections, actor: Actor, corpus: str, chunk_id: str) -> Row | None:
    """The row of a readable chunk, or None. ``chunk_id`` is a UUID."""
    collection = collections.find(corpus)
    records = _records(collection, actor, {chunk_id}) if collection else []
    return from_payload(records[0].id, records[0].payload or {}) if records else None


def count(collections: Collections, actor: Actor, corpus: str, having: VectorName | None) -> int:
    """Readable chunks; with ``having``, those that have this vector."""
    collection = collections.find(corpus)
    return _count(collection, actor, having) if collection else 0


def _count(collection: Collection, actor: Actor, having: VectorName | None = None) -> int:
    # Counting walks over every readable chunk (15 ms for 100,000), and each question asks for the total.
    version = collection.record.info().revision if having else collection.content_version
    where = readable_by(actor, *([HasVectorCondition(having)] if having else []))
    return collection.remembered(
        ("count", actor.principals, having, version),
        lambda: collection.shard.count(CountRequest(exact=True, filter=where)),
    )


def facets(collections: Collections, actor: Actor, corpus: str, field: FacetField) -> dict[str, int]:
    """Readable chunks by the value of ``field``."""
    collection = collections.find(corpus)
    if collection is None:
        return {}
    shard, readable = collection.shard, readable_by(actor)

    def by_value() -> dict[str, int]:
        limit = max(1, shard.info().points_count)
        response = shard.facet(FacetRequest(key=field, limit=limit, exact=True, filter=readable))
        return {str(hit.value): hit.count for hit in response.hits}

    key = ("facets", actor.principals, field, collection.content_version)
    return dict(collection.remembered(key, by_value))


def term_statistics(
    collections: Collections, actor: Actor, corpus: str, terms: Sequence[int]
) -> tuple[int, dict[int, int]]:
    """How many chunks are readable, and in how many of them each term stands.

    The engine counts document frequencies to weigh terms by, and has no request that returns them; but they follow
    from a weight: the best chunk for one term alone scores its stored weight times the term's idf.
    """
    collection = collections.find(corpus)
    if collection is None:
        return 0, dict.fromkeys(terms, 0)
    return _term_statistics(collection, actor, terms)


def _term_statistics(collection: Collection, actor: Actor, terms: Sequence[int]) -> tuple[int, dict[int, int]]:
    # Asked twice for each question: for the gate, and to score what the search finds.
    key = ("terms", actor.principals, tuple(sorted(terms)), collection.content_version)
    total, frequencies = collection.remembered(key, lambda: _count_terms(collection, actor, terms))
    return total, dict(frequencies)


def _count_terms(collection: Collection, actor: Actor, terms: Sequence[int]) -> tuple[int, dict[int, int]]:
    frequencies = dict.fromkeys(terms, 0)
    total = _count(collection, actor)
    asked = [term for term in frequencies if is_term(term)]
    if not total or not asked:
        return total, frequencies
    readable, params = readable_by(actor), _lexical_params(actor)
    requests = [
        QueryRequest(
            limit=1,
            query=Query.Nearest(SparseVector([term], [1.0]), using=LEXICAL),
            filter=readable,
            params=params,
            with_payload=False,
            with_vector=[LEXICAL],
        )
        for term in asked
    ]
    for term, points in zip(asked, collection.shard.query_batch(QueryBatchRequest(requests)), strict=True):
        if points:
            frequencies[term] = frequency_of(points[0].score / _weight_of(term, points[0]), total)
    return total, frequencies


def idf_of(frequency: int, total: int) -> float:
    """The inverse document frequency of a term that stands in ``frequency`` of ``total`` chunks, as the engine's."""
    return math.log1p((total - frequency + 0.5) / (frequency + 0.5))


def frequency_of(idf: float, total: int) -> int:
    """In how many of ``total`` chunks a term stands whose inverse document frequency is ``idf``.

    ``idf = ln(1 + (total - frequency + 0.5) / (frequency + 0.5))``, turned round. The engine computes it in single
    precision, by which the result is off by 0.01 for 100,000 chunks and 0.1 for a million: rounding makes it exact.
    """
    return round((total + 1) / math.exp(idf) - 0.5)


def _weight_of(term: int, point: ScoredPoint) -> float:
    vector = point.vector[LEXICAL] if isinstance(point.vector, dict) else None
    if not isinstance(vector, SparseVector):
        raise TypeError(f"A match for a lexical term came without its vector: {point!r}")
    return vector.values[vector.indices.index(term)]


def last_indexed(collections: Collections, actor: Actor, corpus: str) -> int | None:
    """When the most recently written readable chunk was written, in seconds since the epoch; None without chunks."""
    collection = collections.find(corpus)
    if collection is None:
        return None
    newest = OrderBy("indexed_at", Direction.Desc)
    request = ScrollRequest(
        limit=1, filter=readable_by(actor), with_payload=["indexed_at"], with_vector=False, order_by=newest
    )
    points, _ = collection.shard.scroll(request)
    return int((points[0].payload or {})["indexed_at"]) if points else None
