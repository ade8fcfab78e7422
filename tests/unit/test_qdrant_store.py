from __future__ import annotations

import json
import math
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from qdrant_client import models

from ragpilot.adapters.qdrant_filters import RECORD_ID
from ragpilot.adapters.qdrant_layout import Layout
from ragpilot.adapters.qdrant_store import QdrantStore
from ragpilot.errors import IndexMismatchError, RagPilotError, StoreError, StoreUnavailableError
from ragpilot.types import EmbedderIdentity, IndexIdentity, IngestScope, StoreQuery, Vector
from tests.builders import chunk, indexed
from tests.fakes import ANN, NOBODY, OPERATOR, sparse
from tests.protocol.http_server import ProtocolServer, Reply, Request
from tests.protocol.qdrant_server import QdrantServer

pytestmark = [
    pytest.mark.timeout(30),
    pytest.mark.filterwarnings("ignore:Local mode performs exact"),
    pytest.mark.filterwarnings("ignore:Payload indexes have no effect"),
]

IDENTITY = IndexIdentity(EmbedderIdentity("fake", 4), "chunker-1")
SCOPE = IngestScope(OPERATOR, "default")
COLLECTION = "/collections/ragpilot_default"


def store_of(server: ProtocolServer, **given: Any) -> QdrantStore:
    return QdrantStore(server.url, **{"pause": 0.0, **given})


def unit(*numbers: float) -> Vector:
    vector = np.asarray(numbers, dtype=np.float32)
    return vector / np.float32(np.linalg.norm(vector))


async def filled(store: QdrantStore, count: int = 3) -> None:
    await store.ensure(SCOPE, IDENTITY)
    chunks = [indexed(chunk(text=f"def run_{index}(): pass", start=index + 1, end=index + 1)) for index in range(count)]
    await store.upsert(SCOPE, chunks[0].chunk.document_id, chunks)
    await store.set_vectors(
        SCOPE, "header", {entry.chunk.id: unit(1, index, 0, 0) for index, entry in enumerate(chunks)}
    )


# --- the requests


@pytest.mark.asyncio
async def test_a_collection_is_made_as_configured_and_indexed_before_its_first_chunk() -> None:
    layout = Layout(shards=3, replicas=2, on_disk=True, quantization="scalar", prefix="team_")
    async with QdrantServer() as server, aclosing(store_of(server, layout=layout, api_key="k3y")) as store:
        await filled(store)
        [made] = server.sent_to("/collections/team_default")[1:2]
        assert (made["shard_number"], made["replication_factor"], made["write_consistency_factor"]) == (3, 2, 2)
        assert made["vectors"]["body"] == {"size": 4, "distance": "Cosine", "on_disk": True}
        assert made["hnsw_config"]["payload_m"] == 16
        assert made["quantization_config"]["scalar"]["type"] == "int8"
        assert made["metadata"]["ragpilot"]["embedder"]["name"] == "fake"
        writes = [
            request.path
            for request in server.requests
            if request.path.split("?")[0].endswith(("index", "points/batch", "points"))
        ]
        fields = [request.body["field_name"] for request in server.requests if "/index" in request.path]
        assert fields[0] == "readers"
        assert ["index" in path for path in writes].index(False) == len(fields) == 7
        tenant = next(request.body for request in server.requests if "/index" in request.path)
        assert tenant["field_schema"]["is_tenant"] is True
        assert {request.headers["api-key"] for request in server.requests} == {"k3y"}


@pytest.mark.asyncio
async def test_words_are_weighed_by_the_server_in_one_shard_and_by_ragpilot_in_several() -> None:
    for shards, modifier in ((1, "idf"), (3, "none")):
        layout = Layout(shards=shards)
        async with QdrantServer() as server, aclosing(store_of(server, layout=layout)) as store:
            await filled(store)
            made = server.sent_to(COLLECTION)[1]
            assert made["sparse_vectors"]["lexical"]["modifier"] == modifier
            fields = [request.body["field_name"] for request in server.requests if "/index" in request.path]
            assert ("terms" in fields) == (shards > 1)
            term = indexed(chunk(text="def run_0(): pass")).lexical.indices[0]
            query = StoreQuery("default", unit(1, 0, 0, 0), sparse({term: 2.0}))
            server.requests.clear()
            found = await store.search(ANN, query)
            searches = next(request.body["searches"] for request in server.requests if "query/batch" in request.path)
            lexical = next(search for search in searches if search["using"] == "lexical")
            statistics = await store.term_statistics(ANN, "default", [term])
            weight = math.log((statistics.total + 1) / (statistics.frequencies[term] + 0.5))
            sent = 2.0 if shards == 1 else pytest.approx(2.0 * weight)
            assert lexical["query"]["nearest"]["values"] == [sent]
            assert ("idf" in (lexical["params"] or {})) == (shards == 1)
            assert max(item.lexical_score for item in found) > 0
            scroll = next(request.body for request in server.requests if request.path.endswith("scroll"))
            assert scroll["with_payload"] == {"exclude": ["terms"]}


@pytest.mark.asyncio
async def test_shards_that_came_later_are_said_once(caplog: pytest.LogCaptureFixture) -> None:
    async def resharded(request: Request, reply: Reply) -> bool:
        if (request.method, request.path) != ("GET", COLLECTION):
            return False
        info = (await server.local.get_collection("ragpilot_default")).model_dump(mode="json")
        info["config"]["params"]["shard_number"] = 4
        await reply.json(200, {"result": info, "status": "ok", "time": 0.0})
        return True

    async with QdrantServer() as server, aclosing(store_of(server)) as store:
        await filled(store)
        server.fault = resharded
        for _ in range(3):
            await store.describe("default")
    assert [record.getMessage() for record in caplog.records] == [
        "'ragpilot_default' was given shards after it was made: its words weigh otherwise in each. "
        "`ragpilot index --rebuild` builds it anew."
    ]


@pytest.mark.asyncio
async def test_the_readers_predicate_stands_in_every_branch_and_scopes_the_statistics() -> None:
    async with QdrantServer() as server, aclosing(store_of(server)) as store:
        await filled(store)
        server.requests.clear()
        query = StoreQuery("default", unit(1, 0, 0, 0), sparse({7: 1.0}))
        await store.search(ANN, query)
        batches = [request.body["searches"] for request in server.requests if "query/batch" in request.path]
    readers = {"key": "readers", "match": {"any": ["team:everyone", "user:ann"]}}
    assert [search["using"] for search in batches[0]] == ["header", "body", "lexical"]
    for search in [search for batch in batches for search in batch]:
        assert search["filter"]["must"][0] == readers
    lexical = batches[0][2]
    assert lexical["params"]["idf"] == {"corpus": {"must": [readers]}}
    assert batches[0][0]["params"] == {"exact": True}


@pytest.mark.asyncio
async def test_an_actor_without_principals_reads_nothing() -> None:
    async with QdrantServer() as server, aclosing(store_of(server)) as store:
        await filled(store)
        assert await store.search(NOBODY, StoreQuery("default", unit(1, 0, 0, 0), sparse({7: 1.0}))) == []
        assert await store.count(NOBODY, "default") == 0
        assert await store.facets(NOBODY, "default", "path") == {}
        assert await store.get(NOBODY, "default", RECORD_ID) is None
        assert await store.get(ANN, "default", RECORD_ID) is None


@pytest.mark.asyncio
async def test_large_documents_go_in_batches_bounded_by_count_and_bytes() -> None:
    async with QdrantServer() as server, aclosing(store_of(server)) as store:
        await store.ensure(SCOPE, IDENTITY)
        chunks = [
            indexed(chunk(text="x" * 40_000 + str(index), start=index + 1, end=index + 1)) for index in range(100)
        ]
        await store.upsert(SCOPE, chunks[0].chunk.document_id, chunks)
        sizes = [len(json.dumps(request.body)) for request in server.requests if request.body]
        assert await store.count(ANN, "default") == 100
        small = [indexed(chunk(text=str(index), start=index + 1, end=index + 1)) for index in range(600)]
        server.requests.clear()
        await store.upsert(SCOPE, small[0].chunk.document_id, small)
        counts = [
            len(operation["upsert"]["points"])
            for request in server.requests
            if "points/batch" in request.path
            for operation in request.body["operations"]
            if "upsert" in operation
        ]
        assert await store.count(ANN, "default") == 600
    assert max(sizes) < 8 * 1024 * 1024
    assert max(counts) <= 256
    assert sum(counts) == 600


@pytest.mark.asyncio
async def test_every_write_moves_the_revision_and_a_run_is_noted() -> None:
    async with QdrantServer() as server, aclosing(store_of(server)) as store:
        first = await store.ensure(SCOPE, IDENTITY)
        await filled(store)
        second = await store.describe("default")
        assert second is not None
        assert second.revision > first.revision
        ended = datetime(2025, 1, 2, 3, 4, 5, tzinfo=UTC)
        third = await store.record_ingestion(SCOPE, ended)
        assert third.last_ingestion == ended
        assert third.revision > second.revision
        assert (await store.ensure(SCOPE, IDENTITY)).last_ingestion == ended


# --- collections that are not ours, or not what they should be


@pytest.mark.asyncio
async def test_a_foreign_collection_is_neither_used_nor_dropped() -> None:
    async with QdrantServer() as server, aclosing(store_of(server)) as store:
        await server.local.create_collection(
            "ragpilot_default", vectors_config=models.VectorParams(size=4, distance=models.Distance.DOT)
        )
        for refused in (store.ensure(SCOPE, IDENTITY), store.drop(SCOPE), store.count(ANN, "default")):
            with pytest.raises(StoreError, match="was not made by RagPilot"):
                await refused
        assert await server.local.collection_exists("ragpilot_default")


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "other",
    [
        IndexIdentity(EmbedderIdentity("other", 4), "chunker-1"),
        IndexIdentity(EmbedderIdentity("fake", 8), "chunker-1"),
        IndexIdentity(EmbedderIdentity("fake", 4, question_prefix="query: "), "chunker-1"),
        IndexIdentity(EmbedderIdentity("fake", 4, revision="2"), "chunker-1"),
        IndexIdentity(EmbedderIdentity("fake", 4), "chunker-2"),
    ],
)
async def test_another_identity_is_refused_also_by_an_empty_collection(other: IndexIdentity) -> None:
    async with QdrantServer() as server, aclosing(store_of(server)) as store:
        await store.ensure(SCOPE, IDENTITY)
        command = "ragpilot index --rebuild" if other.embedder != IDENTITY.embedder else "`ragpilot index` cuts it anew"
        with pytest.raises(IndexMismatchError, match=command):
            await store.ensure(SCOPE, other)
        await store.drop(SCOPE)
        assert (await store.ensure(SCOPE, other)).identity == other


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("metadata", "kind", "words"),
    [
        ({"schema": 99}, IndexMismatchError, "another version of RagPilot"),
        ({"schema": 1, "corpus": "default"}, IndexMismatchError, "cannot be read"),
        (
            {"schema": 1, "corpus": "other", "embedder": {"name": "f", "dimensions": 4}, "chunker": "c"},
            StoreError,
            "holds the corpus 'other'",
        ),
        (
            {"schema": 1, "corpus": "default", "embedder": {"name": "f", "dimensions": 4}, "chunker": "c"},
            IndexMismatchError,
            "has vectors of",
        ),
    ],
)
async def test_a_collection_that_is_not_what_it_says_is_its_own_error(
    metadata: dict[str, Any], kind: type[RagPilotError], words: str
) -> None:
    async with QdrantServer() as server, aclosing(store_of(server)) as store:
        size = models.VectorParams(size=8, distance=models.Distance.COSINE)
        await server.local.create_collection(
            "ragpilot_default", vectors_config={"header": size, "body": size}, metadata={"ragpilot": metadata}
        )
        with pytest.raises(kind, match=words):
            await store.describe("default")


@pytest.mark.asyncio
async def test_a_creation_that_was_interrupted_is_completed() -> None:
    async with QdrantServer() as server, aclosing(store_of(server)) as store:
        await store.ensure(SCOPE, IDENTITY)
        await server.local.delete("ragpilot_default", [RECORD_ID])
        with pytest.raises(StoreError, match="lacks its record"):
            await store.describe("default")
        await store.ensure(SCOPE, IDENTITY)
        await filled(store)
        assert await store.count(ANN, "default") == 3


@pytest.mark.asyncio
async def test_a_collection_that_another_process_removed_reads_as_empty() -> None:
    async with QdrantServer() as server, aclosing(store_of(server)) as store:
        await filled(store)
        await server.local.delete_collection("ragpilot_default")
        assert await store.search(ANN, StoreQuery("default", unit(1, 0, 0, 0), sparse({}))) == []
        assert await store.count(ANN, "default") == 0
        assert await store.describe("default") is None
        with pytest.raises(StoreError, match="no collection"):
            await store.delete_documents(SCOPE, ["a"])


# --- the server


@pytest.mark.asyncio
@pytest.mark.parametrize("version", ["1.18.3", "0.11.0", "2.0.0", "unknown"])
async def test_a_server_of_another_version_is_refused(version: str) -> None:
    async with QdrantServer(version) as server, aclosing(store_of(server)) as store:
        with pytest.raises(StoreUnavailableError, match=r"RagPilot needs 1\.19 or newer"):
            await store.describe("default")
        health = await store.check()
        assert not health.ok
        assert version in health.detail
        assert server.sent_to(COLLECTION) == []


@pytest.mark.asyncio
@pytest.mark.parametrize("version", ["1.19.0", "1.20.1-dev", "1.30.0"])
async def test_newer_servers_are_taken(version: str) -> None:
    async with QdrantServer(version) as server, aclosing(store_of(server)) as store:
        health = await store.check()
        assert health.ok
        assert version in health.detail
        assert await store.describe("default") is None


@pytest.mark.asyncio
async def test_a_wrong_key_is_said_and_not_shown() -> None:
    async with QdrantServer() as server, aclosing(store_of(server, api_key="wr0ng")) as store:
        server.key = "right"
        with pytest.raises(StoreUnavailableError, match=r"refused the key.*store\.api_key_env") as caught:
            await store.describe("default")
        assert "wr0ng" not in str(caught.value)
        health = await store.check()
        assert not health.ok
        assert "store.api_key_env" in health.detail


@pytest.mark.asyncio
async def test_transient_failures_are_tried_again_and_others_are_not() -> None:
    async with QdrantServer() as server, aclosing(store_of(server)) as store:
        await filled(store)
        server.statuses = [503, 429, 502]
        assert await store.count(ANN, "default") == 3
        server.statuses = [503] * 4
        with pytest.raises(StoreUnavailableError, match=r"busy or not ready \(503\)"):
            await store.count(ANN, "default")
        server.requests.clear()
        server.statuses = [400]
        with pytest.raises(StoreError, match=r"refused the request \(400\): injected"):
            await store.count(ANN, "default")
        assert len(server.requests) == 1


@pytest.mark.asyncio
async def test_a_lost_connection_is_tried_again() -> None:
    lost: list[str] = []

    async def reset_once(request: Request, reply: Reply) -> bool:
        if lost or "count" not in request.path:
            return False
        lost.append(request.path)
        reply.reset()
        return True

    async with QdrantServer() as server, aclosing(store_of(server)) as store:
        await filled(store)
        server.fault = reset_once
        assert await store.count(ANN, "default") == 3
    assert len(lost) == 1


@pytest.mark.asyncio
async def test_a_silent_server_is_left_after_the_limit() -> None:
    async def hang(request: Request, reply: Reply) -> bool:
        await reply.gone()
        return True

    async with QdrantServer() as server, aclosing(store_of(server, seconds=1.0)) as store:
        # Connected beforehand: a connection that is given up just as it opens belongs to nobody.
        await store.ensure(SCOPE, IDENTITY)
        server.fault = hang
        with pytest.raises(StoreUnavailableError, match=r"no answer within 1 s"):
            await store.describe("default")
        await server.all_closed()


@pytest.mark.asyncio
async def test_a_write_that_was_taken_and_not_carried_out_is_no_success() -> None:
    async def slow(request: Request, reply: Reply) -> bool:
        if "points/batch" not in request.path:
            return False
        await reply.json(200, {"result": [{"operation_id": 1, "status": "wait_timeout"}], "status": "ok", "time": 1.0})
        return True

    async with QdrantServer() as server, aclosing(store_of(server)) as store:
        await store.ensure(SCOPE, IDENTITY)
        server.fault = slow
        with pytest.raises(StoreUnavailableError, match="did not carry it out in time"):
            await store.delete_documents(SCOPE, ["a"])


@pytest.mark.asyncio
async def test_no_server_and_another_program_are_said(unused_tcp_port: int) -> None:
    async with aclosing(QdrantStore(f"http://127.0.0.1:{unused_tcp_port}", pause=0.0)) as store:
        with pytest.raises(StoreUnavailableError, match=f"cannot be reached at http://127.0.0.1:{unused_tcp_port}"):
            await store.describe("default")
        assert not (await store.check()).ok

    async def website(request: Request, reply: Reply) -> None:
        await reply.whole(200, b"<html>hello</html>", "text/html")

    async with ProtocolServer(website) as server, aclosing(store_of(server)) as store:
        with pytest.raises(StoreUnavailableError, match="is no Qdrant"):
            await store.describe("default")


@pytest.mark.asyncio
@pytest.mark.parametrize("proxy", ["http://127.0.0.1:9", "socks5://127.0.0.1:9"])
async def test_loopback_never_goes_through_a_proxy(monkeypatch: pytest.MonkeyPatch, proxy: str) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, proxy)
    async with QdrantServer() as server, aclosing(store_of(server)) as store:
        assert (await store.check()).ok


def test_searches_are_exact_until_graphs_are_needed() -> None:
    assert Layout().search_params(100_000).exact is True
    assert not Layout().search_params(100_001).exact
    assert not Layout(on_disk=True).search_params(10).exact
    rescored = Layout(quantization="scalar").search_params(10).quantization
    assert rescored is not None
    assert rescored.rescore is True
