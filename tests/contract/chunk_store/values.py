"""Chunks, vectors and questions of the suite, and the comparison of two stores."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterable

import numpy as np
import pytest

from ragpilot.ports import ChunkStore
from ragpilot.types import Actor, Chunk, EmbedderIdentity, IndexedChunk, IndexIdentity, IngestScope, StoreQuery, Vector
from tests.fakes import ANN, BOB, NOBODY, VECTOR_NAMES, sparse

DIMENSIONS = 16
IDENTITY = IndexIdentity(EmbedderIdentity("fake", DIMENSIONS), "chunker-1")
EVERYONE = frozenset({"team:everyone"})
BOTH = Actor("both", frozenset({"user:bob", "team:everyone", "team:unheard-of"}))
ACTORS = (ANN, BOB, BOTH, NOBODY)


def entry(
    scope: IngestScope,
    document: str,
    name: str,
    weights: dict[int, float] | None = None,
    *,
    readers: frozenset[str] = EVERYONE,
    mtime_ns: int = 1_700_000_000_123_456_789,
    indexed_at: int = 1_700_000_000,
    content_hash: str = "hash",
) -> IndexedChunk:
    chunk = Chunk(
        id=str(uuid.uuid5(uuid.NAMESPACE_URL, f"{scope.corpus}/{document}/{name}")),
        document_id=document,
        corpus=scope.corpus,
        path=f"src/{document}.py",
        source_type="docs-markdown" if "doc" in document else "code-python",
        symbol=None if name == "0" else f"Class.{name}",
        title=name,
        header=f"src {document} {name}",
        text=f"def {name}():\n\treturn '{document}'\n",
        start_line=3,
        end_line=9,
        readers=readers,
        content_hash=content_hash,
        mtime_ns=mtime_ns,
        size=1234,
        indexed_at=indexed_at,
    )
    return IndexedChunk(chunk, sparse({1: 1.0} if weights is None else weights))


def unit(*numbers: float) -> Vector:
    vector = np.zeros(DIMENSIONS, dtype=np.float32)
    vector[: len(numbers)] = numbers
    return vector / np.float32(np.linalg.norm(vector))


def any_vector(rng: random.Random) -> Vector:
    return unit(*[rng.gauss(0, 1) for _ in range(DIMENSIONS)])


def any_weights(rng: random.Random, terms: int = 30) -> dict[int, float]:
    # Some chunks hold no term at all; term 0 and the largest are terms like others.
    chosen = rng.sample([*range(terms - 1), 2**32 - 1], rng.randint(0, 8))
    return {term: rng.uniform(0.1, 3.0) for term in chosen}


def question(scope: IngestScope, vector: Vector, weights: dict[int, float], *, limit: int = 150) -> StoreQuery:
    return StoreQuery(scope.corpus, vector, sparse(weights), dense_limit=limit, lexical_limit=limit)


async def put(store: ChunkStore, scope: IngestScope, document: str, *chunks: IndexedChunk) -> None:
    await store.upsert(scope, document, chunks)


async def texts(store: ChunkStore, actor: Actor, query: StoreQuery) -> set[str]:
    return {candidate.chunk.title for candidate in await store.search(actor, query)}


async def assert_reads_alike(
    store: ChunkStore, model: ChunkStore, scope: IngestScope, queries: Iterable[StoreQuery], terms: Iterable[int]
) -> None:
    corpus, terms = scope.corpus, list(terms)
    for actor in ACTORS:
        for query in queries:
            found, expected = await store.search(actor, query), await model.search(actor, query)
            assert [item.chunk for item in found] == [item.chunk for item in expected]
            for item, wanted in zip(found, expected, strict=True):
                assert item.header_score == pytest.approx(wanted.header_score, abs=1e-5)
                assert item.body_score == pytest.approx(wanted.body_score, abs=1e-5)
                assert item.lexical_score == pytest.approx(wanted.lexical_score, rel=1e-5, abs=1e-5)
        assert await store.count(actor, corpus) == await model.count(actor, corpus)
        for name in VECTOR_NAMES:
            assert await store.count(actor, corpus, having=name) == await model.count(actor, corpus, having=name)
        assert await store.facets(actor, corpus, "path") == await model.facets(actor, corpus, "path")
        assert await store.facets(actor, corpus, "source_type") == await model.facets(actor, corpus, "source_type")
        assert await store.term_statistics(actor, corpus, terms) == await model.term_statistics(actor, corpus, terms)
        assert await store.last_indexed(actor, corpus) == await model.last_indexed(actor, corpus)
    assert await store.documents(scope) == await model.documents(scope)
    for name in VECTOR_NAMES:
        found_chunks = await store.without_vector(scope, name, limit=10_000)
        assert found_chunks == await model.without_vector(scope, name, limit=10_000)
