"""After the same writes every store reads like the model, at any selectivity."""

from __future__ import annotations

import asyncio
import random

import pytest

from ragpilot.ports import ChunkStore
from ragpilot.types import Actor, IngestScope, VectorName
from tests.contract.chunk_store.adapters import LOCAL_MODE_WARNS
from tests.contract.chunk_store.values import (
    EVERYONE,
    IDENTITY,
    any_vector,
    any_weights,
    assert_reads_alike,
    entry,
    question,
)
from tests.fakes import VECTOR_NAMES, MemoryStore

pytestmark = LOCAL_MODE_WARNS


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_reads_like_the_model_after_any_writes(store: ChunkStore, scope: IngestScope, seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 - numbers for tests
    model = MemoryStore()
    pair = (store, model)
    for each in pair:
        await each.ensure(scope, IDENTITY)
    readers = [EVERYONE, frozenset({"user:bob"}), frozenset({"user:bob", "team:everyone"}), frozenset[str]()]
    ids: list[str] = []
    for step in range(24):
        document = f"document-{rng.randrange(7)}"
        match rng.choice(["upsert", "upsert", "vectors", "vectors", "readers", "delete"]):
            case "upsert":
                # Of a pool of names, so that an upsert keeps some chunks, brings some and drops some.
                granted = rng.choice(readers)
                chunks = [
                    entry(scope, document, str(n), any_weights(rng), readers=granted, mtime_ns=step, indexed_at=step)
                    for n in rng.sample(range(12), rng.randint(0, 9))
                ]
                ids.extend(item.chunk.id for item in chunks)
                for each in pair:
                    await each.upsert(scope, document, chunks)
            case "vectors":
                name: VectorName = rng.choice(VECTOR_NAMES)
                vectors = {i: any_vector(rng) for i in rng.sample(ids, min(len(ids), 25))}
                for each in pair:
                    await each.set_vectors(scope, name, vectors)
            case "readers":
                changes = {document: rng.choice(readers), "document-0": rng.choice(readers), "none": EVERYONE}
                for each in pair:
                    await each.set_readers(scope, changes)
            case _:
                for each in pair:
                    await each.delete_documents(scope, [document, "never-there"])
        if step % 4 == 3:
            queries = [question(scope, any_vector(rng), any_weights(rng), limit=limit) for limit in (3, 150)]
            await assert_reads_alike(store, model, scope, queries, range(32))


@pytest.mark.asyncio(loop_scope="module")
async def test_ids_and_scores_at_every_selectivity(store: ChunkStore, scope: IngestScope) -> None:
    rng = random.Random(7)  # noqa: S311 - numbers for tests
    model = MemoryStore()
    shares = {"user:bob": 0.01, "team:few": 0.1, "team:half": 0.5, "team:everyone": 1.0}
    documents = {
        f"document-{number}": [
            entry(scope, f"document-{number}", str(name), any_weights(rng), readers=granted) for name in range(5)
        ]
        for number in range(80)
        for granted in [frozenset(who for who, share in shares.items() if number % round(1 / share) == 0)]
    }
    ids = [item.chunk.id for chunks in documents.values() for item in chunks]
    vectors = {name: {i: any_vector(rng) for i in ids if rng.random() < 0.8} for name in VECTOR_NAMES}
    for each in (store, model):
        await each.ensure(scope, IDENTITY)
        await asyncio.gather(*(each.upsert(scope, document, chunks) for document, chunks in documents.items()))
        for name in VECTOR_NAMES:
            await each.set_vectors(scope, name, vectors[name])
    for principals in [{"user:bob"}, {"team:few"}, {"team:half"}, {"team:everyone"}, {"user:bob", "team:few"}]:
        actor = Actor("someone", frozenset(principals))
        for limit in (1, 20, 1_000):
            query = question(scope, any_vector(rng), any_weights(rng), limit=limit)
            found, expected = await store.search(actor, query), await model.search(actor, query)
            assert [item.chunk.id for item in found] == [item.chunk.id for item in expected]
            for item, wanted in zip(found, expected, strict=True):
                got = (item.header_score, item.body_score, item.lexical_score)
                assert got == pytest.approx((wanted.header_score, wanted.body_score, wanted.lexical_score), abs=1e-5)
        statistics = await store.term_statistics(actor, scope.corpus, range(30))
        assert statistics == await model.term_statistics(actor, scope.corpus, range(30))
