"""Who may read what, in every read."""

from __future__ import annotations

import pytest

from ragpilot.ports import ChunkStore
from ragpilot.types import IngestScope
from tests.contract.chunk_store.adapters import LOCAL_MODE_WARNS
from tests.contract.chunk_store.values import BOTH, EVERYONE, IDENTITY, entry, put, question, texts, unit
from tests.fakes import ANN, BOB, NOBODY, VECTOR_NAMES

pytestmark = LOCAL_MODE_WARNS


@pytest.mark.asyncio(loop_scope="module")
async def test_an_actor_reads_what_shares_a_principal_and_nothing_else(store: ChunkStore, scope: IngestScope) -> None:
    await store.ensure(scope, IDENTITY)
    granted = {
        "open": EVERYONE,
        "bobs": frozenset({"user:bob"}),
        "shared": EVERYONE | {"user:bob"},
        "shut": frozenset(),
    }
    items = {}
    for document, readers in granted.items():
        items[document] = entry(scope, document, document, readers=readers)
        await put(store, scope, document, items[document])
        for name in VECTOR_NAMES:
            await store.set_vectors(scope, name, {items[document].chunk.id: unit(1, 0.1 * len(items))})
    allowed = {ANN: {"open", "shared"}, BOB: {"bobs", "shared"}, BOTH: {"open", "bobs", "shared"}, NOBODY: set()}
    for actor, names in allowed.items():
        assert await texts(store, actor, question(scope, unit(1), {1: 1.0})) == names
        assert await texts(store, actor, question(scope, unit(1), {1: 1.0}, limit=4)) == names
        assert await store.count(actor, scope.corpus) == len(names)
        assert await store.count(actor, scope.corpus, having="body") == len(names)
        assert await store.facets(actor, scope.corpus, "path") == {f"src/{name}.py": 1 for name in names}
        statistics = await store.term_statistics(actor, scope.corpus, [1])
        assert (statistics.total, statistics.frequencies[1]) == (len(names), len(names))
        assert (await store.last_indexed(actor, scope.corpus) is None) == (not names)
        for document, item in items.items():
            expected = item.chunk if document in names else None
            assert await store.get(actor, scope.corpus, item.chunk.id) == expected


@pytest.mark.asyncio(loop_scope="module")
async def test_what_may_not_be_read_moves_no_number(store: ChunkStore, scope: IngestScope) -> None:
    await store.ensure(scope, IDENTITY)
    mine = [entry(scope, "mine", str(n), {1: 1.0 + n, 2 + n: 0.5}) for n in range(4)]
    await put(store, scope, "mine", *mine)
    await store.set_vectors(scope, "header", {item.chunk.id: unit(1, n) for n, item in enumerate(mine)})
    query = question(scope, unit(1, 1), {1: 1.0, 2: 2.0, 77: 1.0}, limit=2)

    async def seen() -> list[object]:
        return [
            await store.search(ANN, query),
            await store.term_statistics(ANN, scope.corpus, [1, 2, 77]),
            await store.count(ANN, scope.corpus),
            await store.facets(ANN, scope.corpus, "source_type"),
            await store.last_indexed(ANN, scope.corpus),
        ]

    before = await seen()
    theirs = [
        entry(scope, "theirs", str(n), {1: 9.0, 77: 1.0}, readers=frozenset({"user:bob"}), indexed_at=2_000_000_000)
        for n in range(30)
    ]
    await put(store, scope, "theirs", *theirs)
    await store.set_vectors(scope, "header", {item.chunk.id: unit(1, 1) for item in theirs})
    assert await seen() == before
    await store.delete_documents(scope, ["theirs"])
    assert await seen() == before


@pytest.mark.asyncio(loop_scope="module")
async def test_changed_readers_hold_at_once_and_leave_vectors_alone(store: ChunkStore, scope: IngestScope) -> None:
    await store.ensure(scope, IDENTITY)
    for document in ("a", "b"):
        items = [entry(scope, document, f"{document}{n}") for n in range(3)]
        await put(store, scope, document, *items)
        await store.set_vectors(scope, "header", {item.chunk.id: unit(1) for item in items})
    query = question(scope, unit(1), {1: 1.0})
    assert len(await texts(store, ANN, query)) == 6
    await store.set_readers(scope, {"a": frozenset({"user:bob"}), "b": frozenset(), "unknown": EVERYONE})
    assert await texts(store, ANN, query) == set()
    assert await store.count(ANN, scope.corpus) == 0
    found = await store.search(BOB, query)
    assert {item.chunk.title for item in found} == {"a0", "a1", "a2"}
    assert all(item.header_score == pytest.approx(1.0, abs=1e-6) for item in found)
    assert all(item.chunk.readers == {"user:bob"} for item in found)
    await store.set_readers(scope, {})
    states = {state.document_id: state.readers for state in await store.documents(scope)}
    assert states == {"a": {"user:bob"}, "b": frozenset()}
