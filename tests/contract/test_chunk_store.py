"""What every ChunkStore does. MemoryStore is the model: each adapter must read like it after the same writes.

A further adapter joins by a line in ``ADAPTERS``.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
import pytest_asyncio
from qdrant_client import AsyncQdrantClient

from ragpilot.adapters.edge_store import EdgeStore
from ragpilot.adapters.qdrant_layout import Layout
from ragpilot.adapters.qdrant_store import QdrantStore
from ragpilot.errors import IndexMismatchError, StoreError
from ragpilot.ports import ChunkStore
from ragpilot.types import (
    Actor,
    Chunk,
    EmbedderIdentity,
    IndexedChunk,
    IndexIdentity,
    IngestScope,
    StoreQuery,
    Vector,
    VectorName,
)
from tests.contract.folders import quick_folder
from tests.fakes import ANN, BOB, NOBODY, OPERATOR, VECTOR_NAMES, MemoryStore, sparse

DIMENSIONS = 16
IDENTITY = IndexIdentity(EmbedderIdentity("fake", DIMENSIONS), "chunker-1")
EVERYONE = frozenset({"team:everyone"})
BOTH = Actor("both", frozenset({"user:bob", "team:everyone", "team:unheard-of"}))
ACTORS = (ANN, BOB, BOTH, NOBODY)

QDRANT = os.environ.get("RAGPILOT_TEST_QDRANT_URL")
"""A real server, to run the suite over it as well; its collections begin with ``test_``."""


def _qdrant_server(shards: int) -> ChunkStore:
    port = os.environ.get("RAGPILOT_TEST_QDRANT_GRPC_PORT")
    layout = Layout(prefix=f"test_{uuid.uuid4().hex[:8]}_", shards=shards)
    key = os.environ.get("RAGPILOT_TEST_QDRANT_API_KEY")
    return QdrantStore(QDRANT or "", api_key=key, layout=layout, grpc_port=int(port) if port else None)


def _qdrant_local(shards: int) -> ChunkStore:
    return QdrantStore("http://local-mode", layout=Layout(shards=shards), client=AsyncQdrantClient(":memory:"))


ADAPTERS: dict[str, Callable[[Path], ChunkStore]] = {
    "memory": lambda _: MemoryStore(),
    "edge": EdgeStore,
    "qdrant local mode": lambda _: _qdrant_local(1),
    # Local mode has no shards: what is under test is the layout that collections of several have.
    "qdrant local mode, shards": lambda _: _qdrant_local(3),
}
if QDRANT:
    ADAPTERS["qdrant"] = lambda _: _qdrant_server(1)
    ADAPTERS["qdrant, shards"] = lambda _: _qdrant_server(3)
PERSISTENT = ("edge",)

pytestmark = [
    pytest.mark.filterwarnings("ignore:Local mode performs exact"),
    pytest.mark.filterwarnings("ignore:Payload indexes have no effect"),
]

_serial = itertools.count()


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=sorted(ADAPTERS))
async def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ChunkStore]:
    with quick_folder(tmp_path_factory) as folder:
        opened = ADAPTERS[request.param](folder)
        yield opened
        await opened.aclose()


@pytest_asyncio.fixture(loop_scope="module")
async def scope(store: ChunkStore) -> AsyncIterator[IngestScope]:
    """A corpus that no other test uses; nothing of it stays behind."""
    own = IngestScope(OPERATOR, f"corpus-{next(_serial)}")
    yield own
    await store.drop(own)


# --- values -----------------------------------------------------------------------------------------


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


# --- the model --------------------------------------------------------------------------------------


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


# --- collections ------------------------------------------------------------------------------------


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


# --- who may read -----------------------------------------------------------------------------------


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


# --- searching --------------------------------------------------------------------------------------


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


# --- writing ----------------------------------------------------------------------------------------


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


# --- what is on disk stays --------------------------------------------------------------------------


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
    ended = await store.record_ingestion(scope, datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))
    await store.aclose()
    await store.aclose()
    store = ADAPTERS[adapter](tmp_path)
    assert await store.describe(scope.corpus) == ended
    assert await store.ensure(scope, IDENTITY) == ended
    queries = [question(scope, any_vector(rng), any_weights(rng), limit=limit) for limit in (3, 150)]
    await assert_reads_alike(store, model, scope, queries, range(30))
    await store.aclose()
