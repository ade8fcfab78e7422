"""Candidates, their scores and their limits."""

from __future__ import annotations

import uuid
from dataclasses import replace

import numpy as np
import pytest

from ragpilot.errors import IndexMismatchError
from ragpilot.ports import ChunkStore
from ragpilot.types import IngestScope, StoreQuery, VectorName
from tests.contract.chunk_store.adapters import LOCAL_MODE_WARNS
from tests.contract.chunk_store.values import IDENTITY, entry, put, question, texts, unit
from tests.fakes import ANN, sparse

pytestmark = LOCAL_MODE_WARNS


@pytest.mark.asyncio(loop_scope="module")
async def test_every_candidate_has_its_score_in_every_branch(store: ChunkStore, scope: IngestScope) -> None:
    await store.ensure(scope, IDENTITY)
    by_header = entry(scope, "a", "by header", {5: 1.0})
    by_body = entry(scope, "a", "by body", {1: 0.5})
    by_word = entry(scope, "a", "by word", {1: 2.0})
    neither = entry(scope, "a", "neither", {1: 0.1})
    await put(store, scope, "a", by_header, by_body, by_word, neither)
    ids = [item.chunk.id for item in (by_header, by_body, by_word, neither)]
    headers = {ids[0]: unit(1), ids[1]: unit(3, 4), ids[3]: unit(0, 1)}
    bodies = {ids[0]: unit(0, 1), ids[1]: unit(1), ids[2]: unit(4, 3)}
    await store.set_vectors(scope, "header", headers)
    await store.set_vectors(scope, "body", bodies)
    asked = question(scope, unit(1), {1: 1.0}, limit=1)
    found = await store.search(ANN, replace(asked, dense_limit=2))
    assert [item.chunk.id for item in found] == sorted(ids[:3])
    scores = {item.chunk.title: (item.header_score, item.body_score, item.lexical_score) for item in found}
    idf = np.log(1 + (4 - 3 + 0.5) / (3 + 0.5))
    assert scores["by header"] == pytest.approx((1.0, 0.0, 0.0), abs=1e-5)
    assert scores["by body"] == pytest.approx((0.6, 1.0, 0.5 * idf), abs=1e-5)
    assert scores["by word"][0] is None
    assert scores["by word"][1:] == pytest.approx((0.8, 2.0 * idf), abs=1e-5)


@pytest.mark.asyncio(loop_scope="module")
async def test_the_nearest_are_those_with_the_larger_of_two_cosines(store: ChunkStore, scope: IngestScope) -> None:
    await store.ensure(scope, IDENTITY)
    names = ("first", "second", "third", "fourth", "no vector")
    entries = [entry(scope, "a", name, {}) for name in names]
    await put(store, scope, "a", *entries)
    ids = {item.chunk.title: item.chunk.id for item in entries}
    cosines: dict[VectorName, dict[str, float]] = {
        "header": {"first": 0.6, "second": 0.8, "third": 0.5},
        "body": {"first": 0.9, "third": 0.7, "fourth": 0.1},
    }
    for kind, by_title in cosines.items():
        vectors = {ids[title]: unit(cosine, (1 - cosine**2) ** 0.5) for title, cosine in by_title.items()}
        await store.set_vectors(scope, kind, vectors)
    for limit in range(1, 6):
        found = await texts(store, ANN, question(scope, unit(1), {}, limit=limit))
        assert found == set(names[: min(limit, 4)])


@pytest.mark.asyncio(loop_scope="module")
async def test_a_question_without_terms_and_one_without_neighbours(store: ChunkStore, scope: IngestScope) -> None:
    await store.ensure(scope, IDENTITY)
    await put(store, scope, "a", entry(scope, "a", "wordless", {}), entry(scope, "a", "wordy", {1: 1.0}))
    assert await texts(store, ANN, question(scope, unit(1), {})) == set()
    assert await texts(store, ANN, question(scope, unit(1), {2: 1.0})) == set()
    assert await texts(store, ANN, question(scope, unit(1), {1: 1.0})) == {"wordy"}
    wordless = entry(scope, "a", "wordless").chunk
    await store.set_vectors(scope, "body", {wordless.id: unit(1)})
    found = await store.search(ANN, question(scope, unit(1), {}))
    assert [(item.chunk.title, item.header_score, item.lexical_score) for item in found] == [("wordless", None, 0.0)]


@pytest.mark.asyncio(loop_scope="module")
async def test_limits_of_nothing_and_of_more_than_there_is(store: ChunkStore, scope: IngestScope) -> None:
    await store.ensure(scope, IDENTITY)
    items = [entry(scope, "a", str(n), {1: 1.0 + n}) for n in range(5)]
    await put(store, scope, "a", *items)
    await store.set_vectors(scope, "header", {item.chunk.id: unit(1, n) for n, item in enumerate(items)})
    vector, terms = unit(1), sparse({1: 1.0})
    assert len(await store.search(ANN, StoreQuery(scope.corpus, vector, terms, 100_000, 100_000))) == 5
    assert await store.search(ANN, StoreQuery(scope.corpus, vector, terms, 0, 0)) == []
    (best,) = await store.search(ANN, StoreQuery(scope.corpus, vector, terms, 0, 1))
    assert best.chunk.title == "4"
    assert best.header_score == pytest.approx(float(unit(1, 4)[0]), abs=1e-5)
    (nearest,) = await store.search(ANN, StoreQuery(scope.corpus, vector, terms, 1, 0))
    assert nearest.chunk.title == "0"
    assert nearest.lexical_score > 0


@pytest.mark.asyncio(loop_scope="module")
async def test_identical_text_in_two_documents_is_two_chunks(store: ChunkStore, scope: IngestScope) -> None:
    await store.ensure(scope, IDENTITY)
    twins = [entry(scope, document, "same", {1: 1.0}) for document in ("a", "b")]
    for item in twins:
        await put(store, scope, item.chunk.document_id, item)
    await store.set_vectors(scope, "body", {item.chunk.id: unit(1) for item in twins})
    found = await store.search(ANN, question(scope, unit(1), {1: 1.0}))
    assert [item.chunk.id for item in found] == sorted(item.chunk.id for item in twins)
    assert len({(item.body_score, item.lexical_score) for item in found}) == 1
    await store.delete_documents(scope, ["a"])
    assert [item.chunk.document_id for item in await store.search(ANN, question(scope, unit(1), {1: 1.0}))] == ["b"]


@pytest.mark.asyncio(loop_scope="module")
async def test_a_question_of_another_dimension_is_refused(store: ChunkStore, scope: IngestScope) -> None:
    await store.ensure(scope, IDENTITY)
    await put(store, scope, "a", entry(scope, "a", "0"))
    with pytest.raises(IndexMismatchError):
        await store.search(ANN, question(scope, np.ones(3, dtype=np.float32), {1: 1.0}))


@pytest.mark.asyncio(loop_scope="module")
async def test_get_knows_an_id_by_its_one_spelling(store: ChunkStore, scope: IngestScope) -> None:
    await store.ensure(scope, IDENTITY)
    item = entry(scope, "a", "0").chunk
    await put(store, scope, "a", entry(scope, "a", "0"))
    assert await store.get(ANN, scope.corpus, item.id) == item
    for other in (str(uuid.uuid4()), item.id.upper(), f"{{{item.id}}}", item.id.replace("-", ""), "", "1", "no uuid"):
        assert await store.get(ANN, scope.corpus, other) is None


@pytest.mark.asyncio(loop_scope="module")
async def test_terms_that_no_chunk_could_hold_stand_in_none(store: ChunkStore, scope: IngestScope) -> None:
    await store.ensure(scope, IDENTITY)
    await put(store, scope, "a", entry(scope, "a", "0", {0: 1.0, 2**32 - 1: 0.3}), entry(scope, "a", "1", {0: 0.001}))
    statistics = await store.term_statistics(ANN, scope.corpus, [0, 0, 2**32 - 1, 2**32, -1, 7])
    assert statistics.total == 2
    assert dict(statistics.frequencies) == {0: 2, 2**32 - 1: 1, 2**32: 0, -1: 0, 7: 0}
    assert (await store.term_statistics(ANN, scope.corpus, [])).total == 2
