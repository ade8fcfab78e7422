"""Calls to a Qdrant server: over REST and gRPC, encrypted, and through all that can go wrong on the way."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import grpc  # type: ignore[import-untyped]
import pytest
from qdrant_client import AsyncQdrantClient
from qdrant_client import grpc as messages

from ragpilot.adapters import qdrant_connection
from ragpilot.adapters.http import Service, fetch, new_client
from ragpilot.adapters.qdrant_connection import ExistsError, MissingError, QdrantConnection
from ragpilot.errors import ChatModelUnavailableError, StoreError, StoreUnavailableError
from tests.protocol.certificates import Certificate, certificate
from tests.protocol.grpc_server import GrpcServer, refusing
from tests.protocol.http_server import ProtocolServer, Reply, Request, plain_server
from tests.protocol.qdrant_server import QdrantServer

pytestmark = [
    pytest.mark.asyncio,
    pytest.mark.timeout(30),
    pytest.mark.filterwarnings("ignore:Local mode performs exact"),
]

Code = grpc.StatusCode  # a class of values


async def counted(client: AsyncQdrantClient) -> int:
    return (await client.count("collection")).count


@asynccontextmanager
async def over_grpc(**given: Any) -> AsyncIterator[tuple[GrpcServer, QdrantConnection]]:
    async with GrpcServer() as server:
        connection = QdrantConnection("http://127.0.0.1:1", grpc_port=server.port, **{"pause": 0.0, **given})
        async with aclosing(connection):
            yield server, connection


# --- gRPC


async def test_calls_go_over_grpc_with_the_key() -> None:
    async with over_grpc(api_key="k3y") as (server, connection):
        assert await connection.call(counted) == 3
        assert server.keys == ["k3y"]


async def test_transient_refusals_are_tried_again_and_a_lasting_one_is_said() -> None:
    async with over_grpc() as (server, connection):
        server.answers = [refusing(Code.UNAVAILABLE), refusing(Code.ABORTED), refusing(Code.RESOURCE_EXHAUSTED)]
        assert await connection.call(counted) == 3
        server.answers = [refusing(Code.UNAVAILABLE, "shard is moving") for _ in range(4)]
        with pytest.raises(StoreUnavailableError, match=f"gRPC \\(port {server.port}\\): shard is moving"):
            await connection.call(counted)
        assert server.answers == []


async def test_a_server_that_says_how_long_to_wait_is_waited_for_within_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(qdrant_connection, "LONGEST_PAUSE", 0.0)
    async with over_grpc() as (server, connection):
        server.answers = [refusing(Code.RESOURCE_EXHAUSTED, "too many", retry_after="9000")]
        assert await connection.call(counted) == 3
        server.answers = [refusing(Code.RESOURCE_EXHAUSTED, "too many", retry_after="9000") for _ in range(4)]
        with pytest.raises(StoreUnavailableError, match="busy: too many"):
            await connection.call(counted)


@pytest.mark.parametrize(
    ("code", "words", "kind", "said"),
    [
        (Code.NOT_FOUND, "Collection `c` doesn't exist!", MissingError, "doesn't exist"),
        (Code.ALREADY_EXISTS, "there", ExistsError, "there"),
        (Code.INVALID_ARGUMENT, "Collection `c` already exists!", ExistsError, "already exists"),
        (Code.UNAUTHENTICATED, "Invalid API key", StoreUnavailableError, r"asks for a key: .*store\.api_key_env"),
        (Code.PERMISSION_DENIED, "Forbidden", StoreUnavailableError, r"asks for a key: .*store\.api_key_env"),
        (Code.INVALID_ARGUMENT, "Wrong \x1b[31mdimension", StoreError, r"\(INVALID_ARGUMENT\): Wrong \ufffd\[31m"),
        (Code.INTERNAL, "panicked", StoreError, r"\(INTERNAL\): panicked"),
        (Code.UNIMPLEMENTED, "", StoreError, r"\(UNIMPLEMENTED\)"),
    ],
)
async def test_each_other_refusal_is_asked_once_and_has_its_own_error(
    code: grpc.StatusCode, words: str, kind: type[Exception], said: str
) -> None:
    async with over_grpc() as (server, connection):
        server.answers = [refusing(code, words)]
        with pytest.raises(kind, match=said):
            await connection.call(counted)
        assert len(server.keys) == 1


async def test_a_silent_grpc_port_and_a_closed_one_are_left(unused_tcp_port: int) -> None:
    async def hang(_: Any) -> messages.CountResponse:
        await asyncio.Event().wait()
        raise AssertionError("unreachable")

    async with over_grpc(seconds=0.3) as (server, connection):
        server.answers = [hang]
        with pytest.raises(StoreUnavailableError, match=r"no answer within 0\.3 s"):
            await connection.call(counted)
    closed = QdrantConnection("http://127.0.0.1:1", grpc_port=unused_tcp_port, pause=0.0)
    async with aclosing(closed) as connection:
        with pytest.raises(StoreUnavailableError, match=f"over gRPC \\(port {unused_tcp_port}\\)"):
            await connection.call(counted)


# --- REST


async def test_the_grpc_port_in_place_of_that_of_rest_is_told_apart() -> None:
    async with GrpcServer() as server:
        url = f"http://127.0.0.1:{server.port}"
        async with aclosing(QdrantConnection(url, pause=0.0)) as connection:
            with pytest.raises(
                StoreUnavailableError, match=r"REST \(6333\); that of gRPC \(6334\) goes into store\.grpc_port"
            ):
                await connection.version()


async def test_https_to_a_server_of_plain_http_is_said() -> None:
    async with plain_server() as port:
        url = f"https://127.0.0.1:{port}"
        async with aclosing(QdrantConnection(url, pause=0.0)) as connection:
            with pytest.raises(StoreUnavailableError) as raised:
                await connection.version()
    assert raised.value.message == f"Qdrant cannot be reached at {url}: it speaks http, not https."
    assert raised.value.hint == f"Write http://127.0.0.1:{port} for store.url in config.toml."


@pytest.mark.parametrize(
    ("status", "body", "kind", "said"),
    [
        (302, b"", "text/html", "is no Qdrant"),
        (404, b"<h1>Not here</h1>", "text/html", "is no Qdrant"),
        (200, b"", "text/plain", "is no Qdrant"),
        (200, b"<html>sign in</html>", "text/html", "is no Qdrant"),
        (200, b"null", "application/json", "is no Qdrant"),
        (200, b'{"result": {"count": "many"}}', "application/json", "is no Qdrant"),
        pytest.param(200, b"[" * 100_000, "application/json", "is no Qdrant", id="nested"),
        (403, b"Forbidden", "text/plain", r"asks for a key: Forbidden.*store\.api_key_env"),
        (500, b"<h1>oops\x1b[2J</h1>", "text/html", r"\(500\): oops\ufffd"),
        (400, b'{"status": {"error": "Wrong input: 1 != 2"}}', "application/json", r"\(400\): Wrong input: 1 != 2"),
    ],
)
async def test_each_answer_that_is_none_has_its_own_error(status: int, body: bytes, kind: str, said: str) -> None:
    async def fault(request: Request, reply: Reply) -> bool:
        if request.path == "/":
            return False
        return await everywhere(request, reply)

    async def everywhere(_: Request, reply: Reply) -> bool:
        await reply.whole(status, body, kind)
        return True

    async with QdrantServer() as server, aclosing(QdrantConnection(server.url, pause=0.0)) as connection:
        server.fault = fault
        with pytest.raises(StoreError, match=said):
            await connection.call(counted)
        assert len(server.requests) == 2
        server.fault = everywhere
        async with aclosing(QdrantConnection(server.url, pause=0.0)) as other:
            with pytest.raises(StoreError, match=said):
                await other.version()


async def test_connections_are_kept_between_calls() -> None:
    async with QdrantServer() as server, aclosing(QdrantConnection(server.url)) as connection:
        for _ in range(5):
            await connection.call(lambda client: client.info())
        assert server.connections == 1
    await server.all_closed()


# --- TLS


@pytest.fixture
def own(tmp_path: Path) -> Certificate:
    return certificate(tmp_path)


async def test_a_certificate_of_ones_own_is_refused_until_it_is_named(
    own: Certificate, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    rest = QdrantServer()
    rest.tls = own.context()
    async with rest, GrpcServer(own) as served:
        for port in (None, served.port):
            async with aclosing(QdrantConnection(rest.url, grpc_port=port, pause=0.0, api_key="k3y")) as connection:
                with pytest.raises(StoreUnavailableError, match=r"certificate was not accepted.*SSL_CERT_FILE"):
                    await connection.version()
        monkeypatch.setenv("SSL_CERT_FILE", str(own.file))
        async with aclosing(QdrantConnection(rest.url, pause=0.0)) as connection:
            assert await connection.version() == rest.version
        async with aclosing(QdrantConnection(rest.url, grpc_port=served.port, pause=0.0, api_key="k3y")) as connection:
            assert await connection.call(counted) == 3
        assert served.keys == ["k3y"]
    assert "unencrypted" not in caplog.text


async def test_other_services_take_the_same_certificate(own: Certificate, monkeypatch: pytest.MonkeyPatch) -> None:
    async def answer(_: Request, reply: Reply) -> None:
        await reply.json(200, {})

    server = ProtocolServer(answer)
    server.tls = own.context()
    async with server:
        service = Service("Ollama", server.url, "chat")
        async with new_client(service) as client:
            with pytest.raises(ChatModelUnavailableError, match=r"certificate was not accepted.*SSL_CERT_FILE"):
                await fetch(service, client, "GET", "/", seconds=5)
        monkeypatch.setenv("SSL_CERT_FILE", str(own.file))
        async with new_client(service) as client:
            assert (await fetch(service, client, "GET", "/", seconds=5)).status == 200


async def test_a_file_of_certificates_that_is_none_is_said(
    tmp_path: Path, own: Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty.pem").write_text("nothing")
    for name in ("absent.pem", "empty.pem"):
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / name))
        with pytest.raises(ChatModelUnavailableError, match="SSL_CERT_FILE"):
            new_client(Service("Ollama", "https://127.0.0.1:1", "chat"))
        for port in (None, 2):
            async with aclosing(QdrantConnection("https://127.0.0.1:1", grpc_port=port, pause=0.0)) as connection:
                with pytest.raises(StoreUnavailableError, match="SSL_CERT_FILE"):
                    await connection.version()
