"""The embedded store and the one on a Qdrant server, side by side on the same chunks."""

from __future__ import annotations

import asyncio
import os
import random
import uuid
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import numpy as np
import pytest
import pytest_asyncio
from qdrant_client import AsyncQdrantClient

from ragpilot.adapters.edge_store import EdgeStore
from ragpilot.adapters.qdrant_layout import Layout
from ragpilot.adapters.qdrant_store import QdrantStore
from ragpilot.ports import ChunkStore
from ragpilot.types import Actor, EmbedderIdentity, IndexedChunk, IndexIdentity, IngestScope, StoreQuery, Vector
from tests.builders import chunk
from tests.fakes import OPERATOR, VECTOR_NAMES, sparse

DIMENSIONS, PER_DOCUMENT = 64, 20
SCOPE = IngestScope(OPERATOR, "agree")
IDENTITY = IndexIdentity(EmbedderIdentity("fake", DIMENSIONS), "chunker-1")
READERS = ["team:everyone", "team:core", "user:ann", "user:bob"]
ACTORS = [
    Actor("everyone", frozenset({"team:everyone"})),
    Actor("ann", frozenset({"user:ann", "team:core"})),
    Actor("bob", frozenset({"user:bob"})),
    Actor("all", frozenset(READERS)),
    Actor("nobody", frozenset()),
]
TERMS = list(range(300))

pytestmark = [
    pytest.mark.asyncio,
    pytest.mark.timeout(3_600),
    pytest.mark.filterwarnings("ignore:Local mode performs exact"),
    pytest.mark.filterwarnings("ignore:Payload indexes have no effect"),
]


def any_vector(rng: np.random.Generator) -> Vector:
    vector = rng.standard_normal(DIMENSIONS).astype(np.float32)
    return vector / np.float32(np.linalg.norm(vector))


async def fill(store: ChunkStore, chunks: int) -> None:
    await store.ensure(SCOPE, IDENTITY)
    # Some documents at once, so that they share the embedded store's flushes.
    for start in range(0, chunks // PER_DOCUMENT, 20):
        await asyncio.gather(*(put(store, document) for document in range(start, start + 20)))


async def put(store: ChunkStore, document: int) -> None:
    rng = random.Random(document)  # noqa: S311 - numbers for tests
    vectors = np.random.default_rng(document)
    readers = frozenset(rng.sample(READERS, rng.randint(0, 2)))
    entries = [
        IndexedChunk(
            chunk(f"src/{document}.py", f"chunk {number}", start=number + 1, readers=readers, corpus=SCOPE.corpus),
            # No two weights are alike: among equal scores each store chooses, where its limit ends.
            sparse({term: rng.uniform(0.1, 3.0) for term in rng.sample(TERMS, rng.randint(0, 30))}),
        )
        for number in range(PER_DOCUMENT)
    ]
    await store.upsert(SCOPE, entries[0].chunk.document_id, entries)
    # A tenth is without vectors, as while an index is still being filled.
    for name in VECTOR_NAMES:
        some = {entry.chunk.id: any_vector(vectors) for entry in entries if rng.random() < 0.9}
        await store.set_vectors(SCOPE, name, some)


def served_by(layout: Layout) -> QdrantStore:
    """On a real server where one is named, else in the client library's own local mode."""
    url = os.environ.get("RAGPILOT_TEST_QDRANT_URL")
    if not url:
        return QdrantStore("http://local-mode", layout=layout, client=AsyncQdrantClient(":memory:"))
    port = os.environ.get("RAGPILOT_TEST_QDRANT_GRPC_PORT")
    key = os.environ.get("RAGPILOT_TEST_QDRANT_API_KEY")
    return QdrantStore(url, api_key=key, layout=layout, grpc_port=int(port) if port else None)


@pytest_asyncio.fixture
async def stores(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[tuple[ChunkStore, ChunkStore]]:
    chunks, shards = request.param
    layout = Layout(prefix=f"test_{uuid.uuid4().hex[:8]}_", shards=shards)
    async with aclosing(EdgeStore(tmp_path / "store")) as embedded, aclosing(served_by(layout)) as served:
        await asyncio.gather(fill(embedded, chunks), fill(served, chunks))
        yield embedded, served
        await served.drop(SCOPE)


async def agree(stores: tuple[ChunkStore, ChunkStore], actor: Actor, question: int) -> None:
    rng = np.random.default_rng(1_000 + question)
    asked = sparse({int(term): 1.0 + float(rng.random()) for term in rng.choice(TERMS, 5)})
    query = StoreQuery(SCOPE.corpus, any_vector(rng), asked, dense_limit=60, lexical_limit=60)
    embedded, served = [await store.search(actor, query) for store in stores]
    assert [item.chunk for item in embedded] == [item.chunk for item in served]
    for one, other in zip(embedded, served, strict=True):
        for ours, theirs in (
            (one.header_score, other.header_score),
            (one.body_score, other.body_score),
            (one.lexical_score, other.lexical_score),
        ):
            assert ours == pytest.approx(theirs, abs=1e-5)


@pytest.mark.parametrize("stores", [(400, 1), (400, 3)], indirect=True)
async def test_each_actor_finds_the_same_chunks_with_the_same_scores(stores: tuple[ChunkStore, ChunkStore]) -> None:
    for question in range(20):
        await agree(stores, ACTORS[question % len(ACTORS)], question)


@pytest.mark.soak
@pytest.mark.parametrize("stores", [(2_000, 1), (2_000, 3)], indirect=True)
async def test_every_actor_finds_the_same_for_two_hundred_questions(stores: tuple[ChunkStore, ChunkStore]) -> None:
    for question in range(200):
        for actor in ACTORS:
            await agree(stores, actor, question)
