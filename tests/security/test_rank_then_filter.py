"""What an implementation fails that ranks first and filters afterwards: readable chunks behind thousands of others."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from ragpilot.config import RetrievalSettings
from ragpilot.ports import ChunkStore
from ragpilot.retrieval import Retriever
from ragpilot.types import (
    Actor,
    Candidate,
    Chunk,
    EmbedderIdentity,
    IndexedChunk,
    IndexIdentity,
    IngestScope,
    StoreQuery,
    Vector,
)
from tests.builders import chunk
from tests.contract.folders import quick_folder
from tests.fakes import OPERATOR, VECTOR_NAMES, FakeEmbedder, MemoryStore, sparse
from tests.security.worlds import inline_edge

CHUNKS = 10_000
DIMENSIONS = 32
WANTED = 8
SHARES = {"half": 5_000, "tenth": 1_000, "hundredth": 100, "thousandth": 10, "one": 1}
"""How many of the chunks each actor may read: 50, 10, 1, 0.1 and 0.01 %."""
TERMS = (1, 2, 3)


@dataclass
class Crowd:
    """Ten thousand chunks, by row: similarity to the question falls with the row, and so does the weight of words."""

    chunks: list[Chunk]
    vectors: NDArray[np.float32]
    weights: NDArray[np.float64]
    readers: list[frozenset[str]]

    def rows(self, actor: Actor) -> NDArray[np.int64]:
        return np.array([at for at, readers in enumerate(self.readers) if readers & actor.principals], dtype=np.int64)

    def nearest(self, actor: Actor, question: Vector) -> list[str]:
        """By brute force over what the actor may read, and nothing else."""
        rows = self.rows(actor)
        scores = self.vectors[rows] @ question
        return [self.chunks[at].id for at in rows[np.argsort(-scores, kind="stable")[:WANTED]]]

    def wordiest(self, actor: Actor) -> list[str]:
        """By BM25's weights times an IDF over what the actor may read."""
        rows = self.rows(actor)
        held = (self.weights[rows] > 0).sum(axis=0)
        idf = np.log(1 + (len(rows) - held + 0.5) / (held + 0.5))
        scores = self.weights[rows] @ idf
        best = [at for at in np.argsort(-scores, kind="stable")[:WANTED] if scores[at] > 0]
        return [self.chunks[rows[at]].id for at in best]


QUESTION: Vector = np.eye(1, DIMENSIONS, dtype=np.float32)[0]


def crowd() -> Crowd:
    """Members are the farthest of all (``far-*``), or taken at random (``any-*``)."""
    rng = np.random.default_rng(5)
    vectors = rng.standard_normal((CHUNKS, DIMENSIONS)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors = vectors[np.argsort(-(vectors @ QUESTION))]
    weights = rng.uniform(0.5, 1.5, (CHUNKS, len(TERMS))) * (rng.random((CHUNKS, len(TERMS))) < (0.9, 0.3, 0.05))
    weights *= np.linspace(2.0, 0.2, CHUNKS)[:, None]
    readers = [{"team:others"} for _ in range(CHUNKS)]
    for share, number in SHARES.items():
        for at in range(CHUNKS - number, CHUNKS):
            readers[at].add(f"team:far-{share}")
        for at in rng.choice(CHUNKS, number, replace=False):
            readers[at].add(f"team:any-{share}")
    chunks = [
        chunk(f"d{at // 100}.py", f"passage {at}", start=at % 100 + 1, end=at % 100 + 1, readers=frozenset(readers[at]))
        for at in range(CHUNKS)
    ]
    return Crowd(chunks, vectors, weights, [frozenset(each) for each in readers])


async def fill(store: ChunkStore, crowd: Crowd) -> None:
    scope = IngestScope(OPERATOR, "default")
    await store.ensure(scope, IndexIdentity(EmbedderIdentity("fake", DIMENSIONS), "test"))
    for start in range(0, CHUNKS, 100):
        rows = range(start, start + 100)
        entries = [
            IndexedChunk(
                crowd.chunks[at],
                sparse({term: float(weight) for term, weight in zip(TERMS, crowd.weights[at], strict=True) if weight}),
            )
            for at in rows
        ]
        await store.upsert(scope, crowd.chunks[start].document_id, entries)
        for name in VECTOR_NAMES:
            await store.set_vectors(scope, name, {crowd.chunks[at].id: crowd.vectors[at] for at in rows})


@pytest.fixture(scope="module")
def population() -> Crowd:
    return crowd()


@pytest.fixture(scope="module", params=["edge", "memory"])
def store(
    request: pytest.FixtureRequest, population: Crowd, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ChunkStore]:
    with quick_folder(tmp_path_factory) as folder:
        opened: ChunkStore = inline_edge(folder) if request.param == "edge" else MemoryStore()
        asyncio.run(fill(opened, population))
        yield opened
        asyncio.run(opened.aclose())


ACTORS = [Actor(f"{kind}-{share}", frozenset({f"team:{kind}-{share}"})) for kind in ("far", "any") for share in SHARES]


async def dense(store: ChunkStore, actor: Actor) -> list[Candidate]:
    found = await store.search(actor, StoreQuery("default", QUESTION, sparse({}), WANTED, 0))
    return sorted(found, key=lambda item: -(item.header_score or 0.0))


async def words(store: ChunkStore, actor: Actor) -> list[Candidate]:
    query = StoreQuery("default", QUESTION, sparse(dict.fromkeys(TERMS, 1.0)), 0, WANTED)
    return sorted(await store.search(actor, query), key=lambda item: -item.lexical_score)


async def check(store: ChunkStore, population: Crowd, actor: Actor) -> None:
    """The best eight of an actor are those of an exact search over what he may read."""
    nearest = await dense(store, actor)
    assert [item.chunk.id for item in nearest] == population.nearest(actor, QUESTION)
    assert len(nearest) == min(WANTED, len(population.rows(actor)))
    found = await words(store, actor)
    assert [item.chunk.id for item in found] == population.wordiest(actor)
    assert all(item.chunk.readers & actor.principals for item in (*nearest, *found))


@pytest.mark.asyncio
@pytest.mark.parametrize("actor", ACTORS, ids=lambda actor: actor.name)
async def test_the_best_eight_are_those_of_exact_brute_force(
    store: ChunkStore, population: Crowd, actor: Actor
) -> None:
    await check(store, population, actor)


@pytest.mark.asyncio
async def test_one_readable_chunk_behind_all_others_comes_back(store: ChunkStore, population: Crowd) -> None:
    actor = Actor("last", frozenset({"team:far-one"}))
    (found,) = await dense(store, actor)
    assert found.chunk.id == population.chunks[-1].id
    nearer = population.vectors[:-1] @ QUESTION
    assert found.header_score is not None
    assert (nearer >= found.header_score).all()
    assert await store.count(actor, "default") == 1


class Answering(FakeEmbedder):
    """Every question is the same one; no floor, so that only the store can keep a chunk back."""

    def __init__(self) -> None:
        super().__init__(DIMENSIONS)
        self.default_floor = -1.0

    async def embed_question(self, text: str) -> Vector:
        return QUESTION


@pytest.mark.asyncio
@pytest.mark.parametrize("actor", ACTORS, ids=lambda actor: actor.name)
async def test_a_question_never_finds_fewer_than_it_could(store: ChunkStore, population: Crowd, actor: Actor) -> None:
    embedder = Answering()
    identity = IndexIdentity(embedder.identity, "test")
    retriever = Retriever(store, embedder, RetrievalSettings(gate="off", min_score=-1.0), identity=identity)
    for asked in (1, WANTED, 50):
        found = await retriever.search(actor, "passage", corpus="default", top_k=asked)
        assert len(found.hits) == min(asked, len(population.rows(actor)))
        assert all(hit.chunk.readers & actor.principals for hit in found.hits)


# --- that the checks notice an implementation that is wrong


class RankThenFilter(MemoryStore):
    """Ranks everything, to ten times the limit, and then throws away what may not be read."""

    def __init__(self, model: MemoryStore) -> None:
        super().__init__()
        self.infos, self.chunks, self.vectors = model.infos, model.chunks, model.vectors

    async def search(self, actor: Actor, query: StoreQuery) -> list[Candidate]:
        everyone = Actor("all", frozenset({"team:others"}))
        deeper = StoreQuery(query.corpus, query.vector, query.lexical, query.dense_limit * 10, query.lexical_limit * 10)
        found = await super().search(everyone, deeper)
        return [item for item in found if item.chunk.readers & actor.principals][:WANTED]


@pytest.mark.asyncio
async def test_ranking_before_filtering_is_noticed_from_a_tenth_down(population: Crowd) -> None:
    model = MemoryStore()
    await fill(model, population)
    wrong = RankThenFilter(model)
    for actor in ACTORS:
        # Where a random half is readable, ten times the limit is deep enough to get away with it.
        if actor.name != "any-half":
            with pytest.raises(AssertionError):
                await check(wrong, population, actor)
