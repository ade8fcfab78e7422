"""Chunks that share a score at the limit of a search: which of them an actor gets must not depend on anything else."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from qdrant_client import AsyncQdrantClient

from ragpilot.adapters.qdrant_store import QdrantStore
from ragpilot.adapters.tied import added_up, cut, nearest, wordiest
from ragpilot.lexical import question_vector
from ragpilot.ports import ChunkStore
from ragpilot.types import Chunk, StoreQuery
from tests.builders import chunk
from tests.contract.folders import quick_folder
from tests.fakes import FakeEmbedder, MemoryStore
from tests.security.worlds import ANN, Index, inline_edge, whole

pytestmark = [
    pytest.mark.filterwarnings("ignore:Local mode performs exact"),
    pytest.mark.filterwarnings("ignore:Payload indexes have no effect"),
]

MINE = [
    chunk(f"a{n}.py", "cache walk", header="parser", start=n, readers=frozenset({"user:ann" if n % 2 else "team:core"}))
    for n in range(60)
]
FOREIGN = [
    chunk(f"b{n}.py", "cache walk", header="parser", start=n, readers=frozenset({"user:bob"})) for n in range(200)
]


@pytest.fixture(params=["memory", "edge", "qdrant local mode"])
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChunkStore]:
    with quick_folder(tmp_path_factory) as folder:
        made: dict[str, ChunkStore] = {
            "memory": MemoryStore(),
            "edge": inline_edge(folder / Path("store")),
            "qdrant local mode": QdrantStore("http://local-mode", client=AsyncQdrantClient(":memory:")),
        }
        yield made[request.param]
        for each in made.values():
            asyncio.run(each.aclose())


async def best(store: ChunkStore, chunks: list[Chunk], limit: int) -> list[str]:
    index = Index(store, FakeEmbedder())
    await store.drop(index.scope)
    await index.open()
    for item in chunks:
        await index.put(whole([item]))
    vector, lexical = index.embedder.vector("parser"), question_vector("cache")
    dense = await store.search(ANN, StoreQuery("default", vector, lexical, limit, 0))
    words = await store.search(ANN, StoreQuery("default", vector, lexical, 0, limit))
    assert len(words) == min(limit, len(MINE))
    return [item.chunk.id for item in (*dense, *words)]


@pytest.mark.asyncio
async def test_of_a_tie_the_smallest_ids_are_kept_whatever_was_written_when(store: ChunkStore) -> None:
    rng = random.Random(7)  # noqa: S311 - an order for a test
    smallest = sorted(item.id for item in MINE)
    for limit in (1, 8, 59):
        for others in ([], FOREIGN[:120]):
            mixed = rng.sample([*MINE, *others], len(MINE) + len(others))
            assert await best(store, mixed, limit) == smallest[:limit] * 2


def test_a_dense_tie_is_whole_once_a_lower_score_is_seen_or_nothing_is_left() -> None:
    assert nearest([(3.0, "a"), (2.0, "b"), (1.0, "c")], 2, 3) == {"a": 3.0, "b": 2.0}
    assert nearest([(3.0, "a"), (2.0, "b")], 2, 3) == {"a": 3.0, "b": 2.0}
    assert nearest([], 1, 2) == {}
    assert nearest([(3.0, "a"), (2.0, "b"), (2.0, "c")], 2, 3) is None
    assert nearest([(3.0, "a"), (2.0, "c"), (2.0, "b"), (1.0, "d")], 2, 5) == {"a": 3.0, "b": 2.0}
    # A tie that ends inside the limit is none.
    assert nearest([(2.0, "a"), (2.0, "b"), (1.0, "c")], 2, 3) == {"a": 2.0, "b": 2.0}


def test_of_words_all_are_seen_that_the_noise_of_a_sum_may_bring_to_the_best() -> None:
    assert wordiest([(3.0, "a"), (2.0, "b"), (1.999_999_9, "c"), (1.0, "d")], 2, 4) == {
        "a": 3.0,
        "b": 2.0,
        "c": 1.999_999_9,
    }
    assert wordiest([(3.0, "a"), (2.0, "b"), (1.999_999_9, "c")], 2, 3) is None
    assert wordiest([(3.0, "a"), (2.0, "b"), (1.9, "c")], 2, 3) == {"a": 3.0, "b": 2.0}
    assert wordiest([(3.0, "a")], 2, 3) == {"a": 3.0}
    assert wordiest([], 2, 3) == {}


def test_a_cut_takes_the_best_and_of_equal_ones_the_smaller_ids() -> None:
    assert cut([(2.0, "z"), (1.0, "y"), (1.0, "x"), (1.0, "w")], 3) == {"z": 2.0, "w": 1.0, "x": 1.0}
    assert cut([(1.0, "a")], 5) == {"a": 1.0}


def test_sums_follow_the_order_of_the_terms() -> None:
    first, second, third = {"a": 0.1, "b": 0.1}, {"b": 0.2}, {"a": 0.3, "b": 0.3}
    assert added_up([first, second, third]) == {"a": 0.1 + 0.3, "b": (0.1 + 0.2) + 0.3}
    assert added_up([first, second, third])["b"] != 0.1 + (0.2 + 0.3)
    assert added_up([]) == {}
