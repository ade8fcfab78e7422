"""Collections: there or not, opened, dropped, and told apart."""

from __future__ import annotations

import asyncio
import random
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ragpilot.errors import IndexMismatchError, StoreError
from ragpilot.ports import ChunkStore
from ragpilot.types import EmbedderIdentity, IndexIdentity, IngestScope
from tests.contract.chunk_store.adapters import ADAPTERS, LOCAL_MODE_WARNS
from tests.contract.chunk_store.values import (
    DIMENSIONS,
    EVERYONE,
    IDENTITY,
    any_vector,
    any_weights,
    assert_reads_alike,
    entry,
    put,
    question,
    texts,
    unit,
)
from tests.fakes import ANN, OPERATOR, MemoryStore

PERSISTENT = ("edge",)


pytestmark = LOCAL_MODE_WARNS


@pytest.mark.asyncio(loop_scope="module")
async def test_a_missing_corpus_reads_as_an_empty_one(store: ChunkStore, scope: IngestScope) -> None:
    corpus = scope.corpus
    assert await store.describe(corpus) is None
    assert await store.search(ANN, question(scope, unit(1), {1: 1.0})) == []
    assert await store.count(ANN, corpus) == 0
    assert await store.count(ANN, corpus, having="header") == 0
    assert await store.get(ANN, corpus, str(uuid.uuid4())) is None
    assert await store.facets(ANN, corpus, "path") == {}
    statistics = await store.term_statistics(ANN, corpus, [1, 2])
    assert (statistics.total, dict(statistics.frequencies)) == (0, {1: 0, 2: 0})
    assert await store.last_indexed(ANN, corpus) is None
    assert await store.documents(scope) == []
    assert await store.without_vector(scope, "header", limit=5) == []
    await store.drop(scope)
    assert await store.describe(corpus) is None


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("corpus", ["", ".", "..", "../elsewhere", "a/b", "/etc", "x" * 65, "nul\0"])
async def test_a_name_that_no_corpus_can_have_reads_as_an_empty_one(store: ChunkStore, corpus: str) -> None:
    assert await store.describe(corpus) is None
    assert await store.count(ANN, corpus) == 0
    await store.drop(IngestScope(OPERATOR, corpus))


@pytest.mark.asyncio(loop_scope="module")
async def test_writes_to_a_missing_corpus_are_refused(store: ChunkStore, scope: IngestScope) -> None:
    writes: list[Callable[[], Awaitable[object]]] = [
        lambda: store.upsert(scope, "a", [entry(scope, "a", "0")]),
        lambda: store.set_vectors(scope, "header", {str(uuid.uuid4()): unit(1)}),
        lambda: store.delete_documents(scope, ["a"]),
        lambda: store.set_readers(scope, {"a": EVERYONE}),
        lambda: store.record_ingestion(scope, datetime.now(UTC)),
        lambda: store.adopt_chunker(scope, "chunker-2"),
    ]
    for write in writes:
        with pytest.raises(StoreError):
            await write()
    assert await store.describe(scope.corpus) is None


@pytest.mark.asyncio(loop_scope="module")
async def test_ensure_opens_what_is_there_and_refuses_another_identity(store: ChunkStore, scope: IngestScope) -> None:
    created = await store.ensure(scope, IDENTITY)
    assert (created.corpus, created.identity, created.last_ingestion) == (scope.corpus, IDENTITY, None)
    assert await store.ensure(scope, IDENTITY) == created == await store.describe(scope.corpus)
    for other in (
        IndexIdentity(replace(IDENTITY.embedder, question_prefix="query: "), "chunker-1"),
        IndexIdentity(replace(IDENTITY.embedder, dimensions=DIMENSIONS + 1), "chunker-1"),
        IndexIdentity(IDENTITY.embedder, "chunker-2"),
    ):
        # The collection is empty still, and refused nevertheless.
        with pytest.raises(IndexMismatchError):
            await store.ensure(scope, other)
    assert await store.describe(scope.corpus) == created


@pytest.mark.asyncio(loop_scope="module")
async def test_another_chunker_is_adopted_over_all_that_is_there(store: ChunkStore, scope: IngestScope) -> None:
    created = await store.ensure(scope, IDENTITY)
    item = entry(scope, "a", "0")
    await put(store, scope, "a", item)
    await store.set_vectors(scope, "header", {item.chunk.id: unit(1)})
    ended = await store.record_ingestion(scope, datetime(2026, 3, 4, tzinfo=UTC))
    newer = IndexIdentity(IDENTITY.embedder, "chunker-2")
    adopted = await store.adopt_chunker(scope, "chunker-2")
    assert (adopted.identity, adopted.last_ingestion) == (newer, ended.last_ingestion)
    assert adopted.revision > ended.revision > created.revision
    assert await store.describe(scope.corpus) == adopted == await store.ensure(scope, newer)
    with pytest.raises(IndexMismatchError):
        await store.ensure(scope, IDENTITY)
    assert await texts(store, ANN, question(scope, unit(1), {1: 1.0})) == {"0"}
    assert await store.count(ANN, scope.corpus, having="header") == 1


@pytest.mark.asyncio(loop_scope="module")
async def test_drop_leaves_nothing_and_another_identity_may_follow(store: ChunkStore, scope: IngestScope) -> None:
    first = await store.ensure(scope, IDENTITY)
    item = entry(scope, "a", "0")
    await put(store, scope, "a", item)
    await store.set_vectors(scope, "header", {item.chunk.id: unit(1)})
    await store.drop(scope)
    assert await store.describe(scope.corpus) is None
    assert await store.count(ANN, scope.corpus) == 0
    wider = IndexIdentity(EmbedderIdentity("wider", DIMENSIONS + 2), "chunker-2")
    second = await store.ensure(scope, wider)
    assert second.identity == wider
    assert second.last_ingestion is None
    assert await store.count(ANN, scope.corpus) == 0
    await put(store, scope, "a", item)
    assert await store.count(ANN, scope.corpus) == 1
    assert await store.count(ANN, scope.corpus, having="header") == 0
    assert first.identity == IDENTITY


@pytest.mark.asyncio(loop_scope="module")
async def test_each_write_takes_a_new_revision_and_no_read_does(store: ChunkStore, scope: IngestScope) -> None:
    await store.ensure(scope, IDENTITY)
    item = entry(scope, "a", "0")
    writes: list[Callable[[], Awaitable[object]]] = [
        lambda: store.upsert(scope, "a", [item]),
        lambda: store.set_vectors(scope, "body", {item.chunk.id: unit(1)}),
        lambda: store.set_readers(scope, {"a": frozenset({"user:bob"})}),
        lambda: store.record_ingestion(scope, datetime.now(UTC)),
        lambda: store.delete_documents(scope, ["a"]),
    ]
    revisions = []
    for write in [*writes, *writes]:
        await write()
        await store.search(ANN, question(scope, unit(1), {1: 1.0}))
        await store.ensure(scope, IDENTITY)
        info = await store.describe(scope.corpus)
        assert info is not None
        revisions.append(info.revision)
    assert revisions == sorted(set(revisions))


@pytest.mark.asyncio(loop_scope="module")
async def test_the_end_of_a_run_is_kept_with_the_collection(store: ChunkStore, scope: IngestScope) -> None:
    await store.ensure(scope, IDENTITY)
    ended = datetime(2026, 3, 4, 5, 6, 7, 89_000, tzinfo=UTC)
    info = await store.record_ingestion(scope, ended)
    assert info.last_ingestion == ended
    assert await store.describe(scope.corpus) == info


@pytest.mark.asyncio(loop_scope="module")
async def test_two_corpora_do_not_meet(store: ChunkStore, scope: IngestScope) -> None:
    other = IngestScope(OPERATOR, f"{scope.corpus}.other")
    for each in (scope, other):
        await store.ensure(each, IDENTITY)
        await put(store, each, "a", entry(each, "a", each.corpus))
    assert await texts(store, ANN, question(scope, unit(1), {1: 1.0})) == {scope.corpus}
    await store.delete_documents(other, ["a"])
    assert await store.count(ANN, scope.corpus) == 1
    await store.drop(other)
    assert await store.count(ANN, scope.corpus) == 1


@pytest.mark.asyncio(loop_scope="module")
async def test_a_store_that_answers_is_healthy(store: ChunkStore) -> None:
    health = await store.check()
    assert health.ok, health.detail


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("adapter", PERSISTENT)
async def test_all_is_there_after_closing_and_opening(adapter: str, scope: IngestScope, tmp_path: Path) -> None:
    rng = random.Random(11)  # noqa: S311 - numbers for tests
    model = MemoryStore()
    store = ADAPTERS[adapter](tmp_path)
    items = [entry(scope, f"d{n % 5}", str(n), any_weights(rng)) for n in range(40)]
    for each in (store, model):
        await each.ensure(scope, IDENTITY)
        by_document = {f"d{n}": [i for i in items if i.chunk.document_id == f"d{n}"] for n in range(5)}
        await asyncio.gather(*(each.upsert(scope, document, chunks) for document, chunks in by_document.items()))
    vectors = {item.chunk.id: any_vector(rng) for item in items}
    for each in (store, model):
        await each.set_vectors(scope, "header", vectors)
        await each.delete_documents(scope, ["d4"])
        await each.set_readers(scope, {"d3": frozenset({"user:bob"})})
    await store.record_ingestion(scope, datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))
    ended = await store.adopt_chunker(scope, "chunker-2")
    await store.aclose()
    await store.aclose()
    store = ADAPTERS[adapter](tmp_path)
    assert await store.describe(scope.corpus) == ended
    assert await store.ensure(scope, IndexIdentity(IDENTITY.embedder, "chunker-2")) == ended
    queries = [question(scope, any_vector(rng), any_weights(rng), limit=limit) for limit in (3, 150)]
    await assert_reads_alike(store, model, scope, queries, range(30))
    await store.aclose()
