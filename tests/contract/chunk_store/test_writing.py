"""Documents and vectors, written whole or refused."""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import replace

import numpy as np
import pytest

from ragpilot.errors import StoreError
from ragpilot.ports import ChunkStore
from ragpilot.types import IndexedChunk, IngestScope, Vector
from tests.contract.chunk_store.adapters import LOCAL_MODE_WARNS
from tests.contract.chunk_store.values import DIMENSIONS, EVERYONE, IDENTITY, entry, put, question, unit
from tests.fakes import ANN, VECTOR_NAMES, sparse

pytestmark = LOCAL_MODE_WARNS


@pytest.mark.asyncio(loop_scope="module")
async def test_a_chunk_comes_back_as_it_went_in(store: ChunkStore, scope: IngestScope) -> None:
    await store.ensure(scope, IDENTITY)
    plain = entry(scope, "a", "0").chunk
    strange = replace(
        entry(scope, "a", "strange").chunk,
        symbol=None,
        title="",
        header="\u202e overridden \N{ZERO WIDTH SPACE}",
        text='nul \0, "quotes", \\ and \N{PILE OF POO}\r\n\u2028' + "ü" * 5_000,
        start_line=0,
        end_line=2**31,
        mtime_ns=-(2**62),
        size=0,
        commit="0123abc",
    )
    await store.upsert(scope, "a", [IndexedChunk(plain, sparse({})), IndexedChunk(strange, sparse({4: 1e-6, 9: 3e30}))])
    assert await store.get(ANN, scope.corpus, plain.id) == plain
    assert await store.get(ANN, scope.corpus, strange.id) == strange


@pytest.mark.asyncio(loop_scope="module")
async def test_upsert_keeps_vectors_refreshes_payloads_and_leaves_no_tail(
    store: ChunkStore, scope: IngestScope
) -> None:
    await store.ensure(scope, IDENTITY)
    first = [entry(scope, "a", str(n), {n: 1.0}) for n in range(6)]
    await put(store, scope, "a", *first)
    await put(store, scope, "b", entry(scope, "b", "other"))
    vectors = {item.chunk.id: unit(1, n) for n, item in enumerate(first)}
    for name in VECTOR_NAMES:
        await store.set_vectors(scope, name, vectors)
    second = [entry(scope, "a", str(n), {n: 2.0}, mtime_ns=9, content_hash="new", indexed_at=8) for n in (1, 3, 7)]
    for _ in range(5):
        await put(store, scope, "a", *second)
    found = {item.chunk.title: item for item in await store.search(ANN, question(scope, unit(1), {3: 1.0, 7: 1.0}))}
    assert {"1", "3", "7"} == set(found) - {"other"}
    for n in (1, 3):
        item = found[str(n)]
        assert item.chunk == second[0 if n == 1 else 1].chunk
        assert (item.header_score, item.body_score) == pytest.approx([float(unit(1, n)[0])] * 2, abs=1e-6)
    assert (found["7"].header_score, found["7"].body_score) == (None, None)
    assert found["3"].lexical_score == pytest.approx(2.0 * np.log(1 + 3.5 / 1.5), rel=1e-5)
    statistics = await store.term_statistics(ANN, scope.corpus, [0, 1, 3])
    assert (statistics.total, dict(statistics.frequencies)) == (4, {0: 0, 1: 2, 3: 1})
    await store.upsert(scope, "a", [])
    assert await store.facets(ANN, scope.corpus, "path") == {"src/b.py": 1}


@pytest.mark.asyncio(loop_scope="module")
async def test_a_document_of_many_chunks(store: ChunkStore, scope: IngestScope) -> None:
    await store.ensure(scope, IDENTITY)
    chunks = [entry(scope, "long", str(n), {n % 7: 1.0}) for n in range(700)]
    await put(store, scope, "long", *chunks)
    await store.set_vectors(scope, "header", {item.chunk.id: unit(1) for item in chunks})
    assert await store.count(ANN, scope.corpus, having="header") == 700
    await put(store, scope, "long", *chunks[100:])
    assert await store.count(ANN, scope.corpus, having="header") == 600
    (state,) = await store.documents(scope)
    assert (state.chunk_count, state.content_hash) == (600, "hash")


@pytest.mark.asyncio(loop_scope="module")
async def test_documents_are_listed_with_what_a_manifest_needs(store: ChunkStore, scope: IngestScope) -> None:
    await store.ensure(scope, IDENTITY)
    readers = frozenset({"user:bob", "team:core"})
    await put(store, scope, "b", *[entry(scope, "b", str(n), readers=readers, mtime_ns=5) for n in range(3)])
    await put(store, scope, "a", entry(scope, "a", "0", content_hash="other"))
    first, second = await store.documents(scope)
    assert (first.document_id, first.path, first.content_hash, first.chunk_count) == ("a", "src/a.py", "other", 1)
    assert (second.document_id, second.mtime_ns, second.size, second.chunk_count) == ("b", 5, 1234, 3)
    assert (first.readers, second.readers) == (EVERYONE, readers)


@pytest.mark.asyncio(loop_scope="module")
async def test_what_lacks_a_vector_comes_newest_first(store: ChunkStore, scope: IngestScope) -> None:
    await store.ensure(scope, IDENTITY)
    # Times a nanosecond apart: a store that holds them as floating point would not tell them apart.
    times = [1_700_000_000_123_456_700 + n for n in (3, 1, 4, 0, 5, 2)]
    for time in times:
        await put(store, scope, f"d{time}", entry(scope, f"d{time}", "0", mtime_ns=time, readers=frozenset()))
    newest = sorted(times, reverse=True)
    assert [c.mtime_ns for c in await store.without_vector(scope, "header", limit=4)] == newest[:4]
    taken = await store.without_vector(scope, "header", limit=2)
    await store.set_vectors(scope, "header", {chunk.id: unit(1) for chunk in taken})
    assert [c.mtime_ns for c in await store.without_vector(scope, "header", limit=99)] == newest[2:]
    assert [c.mtime_ns for c in await store.without_vector(scope, "body", limit=99)] == newest
    assert await store.without_vector(scope, "body", limit=0) == []


@pytest.mark.asyncio(loop_scope="module")
async def test_vectors_replace_vectors_and_pass_over_what_is_gone(store: ChunkStore, scope: IngestScope) -> None:
    await store.ensure(scope, IDENTITY)
    item = entry(scope, "a", "0")
    await put(store, scope, "a", item)
    gone = str(uuid.uuid4())
    await store.set_vectors(scope, "header", {gone: unit(1), item.chunk.id: unit(0, 1)})
    await store.set_vectors(scope, "header", {item.chunk.id: unit(1)})
    await store.set_vectors(scope, "body", {gone: unit(1)})
    await store.set_vectors(scope, "body", {})
    (found,) = await store.search(ANN, question(scope, unit(1), {}))
    assert found.header_score == pytest.approx(1.0, abs=1e-6)
    assert found.body_score is None
    assert await store.count(ANN, scope.corpus) == 1


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    "bad",
    [
        np.ones(DIMENSIONS + 1, dtype=np.float32),
        np.ones((1, DIMENSIONS), dtype=np.float32),
        np.full(DIMENSIONS, np.nan, dtype=np.float32),
        np.full(DIMENSIONS, np.inf, dtype=np.float32),
    ],
    ids=["too long", "a matrix", "not a number", "infinite"],
)
async def test_a_bad_vector_is_refused_before_any_is_written(
    store: ChunkStore, scope: IngestScope, bad: Vector
) -> None:
    await store.ensure(scope, IDENTITY)
    items = [entry(scope, "a", str(n)) for n in range(3)]
    await put(store, scope, "a", *items)
    ids = [item.chunk.id for item in items]
    with pytest.raises(StoreError):
        await store.set_vectors(scope, "header", {ids[0]: unit(1), ids[1]: bad, ids[2]: unit(1)})
    assert await store.count(ANN, scope.corpus, having="header") == 0


@pytest.mark.asyncio(loop_scope="module")
async def test_chunks_that_do_not_belong_are_refused_before_any_is_written(
    store: ChunkStore, scope: IngestScope
) -> None:
    await store.ensure(scope, IDENTITY)
    good, other = entry(scope, "a", "0"), entry(scope, "b", "1")
    elsewhere = replace(good, chunk=replace(good.chunk, corpus="elsewhere"))
    for chunks in ([good, other], [good, good], [elsewhere]):
        with pytest.raises(StoreError):
            await store.upsert(scope, "a", chunks)
    assert await store.count(ANN, scope.corpus) == 0


@pytest.mark.asyncio(loop_scope="module")
async def test_writes_and_reads_at_once(store: ChunkStore, scope: IngestScope) -> None:
    await store.ensure(scope, IDENTITY)

    async def write(number: int) -> None:
        document = f"d{number}"
        chunks = [entry(scope, document, str(n), {number: 1.0}) for n in range(4)]
        await store.upsert(scope, document, chunks)
        # What is acknowledged is there for whoever asks next.
        assert await store.get(ANN, scope.corpus, chunks[3].chunk.id) == chunks[3].chunk
        assert (await store.term_statistics(ANN, scope.corpus, [number])).frequencies[number] == 4
        await store.set_vectors(scope, "header", {item.chunk.id: unit(1, number) for item in chunks})

    async with asyncio.timeout(60):
        await asyncio.gather(*(write(number) for number in range(40)))
    assert await store.count(ANN, scope.corpus, having="header") == 160
    assert await store.facets(ANN, scope.corpus, "path") == {f"src/d{number}.py": 4 for number in range(40)}
