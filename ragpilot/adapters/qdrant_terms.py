"""How rare a lexical term is, for an actor, on a Qdrant server.

A server weighs terms by its own counts, shard by shard. A collection of one shard leaves it to that: each request
says over which chunks to count. In a collection of several, the same chunk would score by the shard it lies in, and
a rare word by how its few chunks happen to be spread; there the terms stand in the payload too, are counted over all
shards, and go out with their weights in the question.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence

from qdrant_client import models

from ragpilot.adapters.chunk_rows import is_term
from ragpilot.adapters.qdrant_collections import Known, QdrantCollections
from ragpilot.adapters.qdrant_filters import readable_by
from ragpilot.adapters.qdrant_layout import LEXICAL, TERMS
from ragpilot.types import Actor, SparseVector

COUNTED_AT_ONCE = 32


def weighing(known: Known, actor: Actor) -> models.SearchParams:
    """Of a lexical request: terms are weighed over what the actor may read, so that no other document moves a score."""
    if known.counted:
        return models.SearchParams()
    return models.SearchParams(idf=models.IdfCorpusParams(corpus=readable_by(actor)))


async def weighed(collections: QdrantCollections, known: Known, actor: Actor, terms: SparseVector) -> SparseVector:
    """The question's terms as they go out: as they are, or each times its weight, those left out that stand nowhere."""
    if not known.counted or not terms.indices:
        return terms
    total, held = await _counted(collections, known, actor, [term for term in terms.indices if is_term(term)])
    found = [
        (term, value * math.log((total + 1) / (held[term] + 0.5)))
        for term, value in zip(terms.indices, terms.values, strict=True)
        if held.get(term)
    ]
    return SparseVector(tuple(term for term, _ in found), tuple(value for _, value in found))


async def term_statistics(
    collections: QdrantCollections, actor: Actor, corpus: str, terms: Sequence[int]
) -> tuple[int, dict[int, int]]:
    """How many chunks are readable, and in how many of them each term stands."""
    frequencies = dict.fromkeys(terms, 0)
    known = await collections.find(corpus)
    if known is None:
        return 0, frequencies
    asked = [term for term in frequencies if is_term(term)]
    total, found = await (_counted if known.counted else _derived)(collections, known, actor, asked)
    return total, {**frequencies, **found}


async def count_of(collections: QdrantCollections, known: Known, actor: Actor, *narrower: models.Condition) -> int:
    """How many readable chunks there are that are like this as well, exactly."""
    where = readable_by(actor, *narrower)
    answer = await collections.connection.call(lambda client: client.count(known.name, where, exact=True))
    return answer.count


async def batch(
    collections: QdrantCollections, known: Known, requests: list[models.QueryRequest]
) -> list[list[models.ScoredPoint]]:
    """What each request finds, in one call."""
    if not requests:
        return []
    answers = await collections.connection.call(lambda client: client.query_batch_points(known.name, requests))
    return [answer.points for answer in answers]


async def _counted(
    collections: QdrantCollections, known: Known, actor: Actor, terms: Sequence[int]
) -> tuple[int, Mapping[int, int]]:
    holding = [models.FieldCondition(key=TERMS, match=models.MatchValue(value=term)) for term in terms]
    wanted: list[list[models.FieldCondition]] = [[], *([held] for held in holding)]
    counts: list[int] = []
    for start in range(0, len(wanted), COUNTED_AT_ONCE):
        some = wanted[start : start + COUNTED_AT_ONCE]
        counts += await asyncio.gather(*(count_of(collections, known, actor, *narrower) for narrower in some))
    total, *found = counts
    return total, dict(zip(terms, found, strict=True))


async def _derived(
    collections: QdrantCollections, known: Known, actor: Actor, terms: Sequence[int]
) -> tuple[int, Mapping[int, int]]:
    """By the server's weights: it counts documents to weigh terms, and has no request that returns the counts.

    The best chunk for one term alone scores ``stored weight x idf``, and
    ``idf = ln((total + 1) / (frequency + 0.5))``, precise enough to round to the exact frequency.
    """
    readable, params = readable_by(actor), weighing(known, actor)
    requests = [
        models.QueryRequest(
            query=models.SparseVector(indices=[term], values=[1.0]),
            using=LEXICAL,
            filter=readable,
            limit=1,
            params=params,
            with_payload=False,
            with_vector=[LEXICAL],
        )
        for term in terms
    ]
    total, answers = await asyncio.gather(count_of(collections, known, actor), batch(collections, known, requests))
    frequencies = {}
    for term, points in zip(terms, answers, strict=True):
        if points:
            idf = points[0].score / _weight_of(term, points[0])
            frequencies[term] = min(total, max(1, round((total + 1) / math.exp(idf) - 0.5)))
    return total, frequencies


def _weight_of(term: int, point: models.ScoredPoint) -> float:
    vector = point.vector.get(LEXICAL) if isinstance(point.vector, dict) else None
    if not isinstance(vector, models.SparseVector):
        raise TypeError(f"A match for a lexical term came without its vector: {point!r}")
    return vector.values[vector.indices.index(term)]
