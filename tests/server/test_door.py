"""What holds for every request on a real socket: hosts, origins, preflights, bodies, paths and the headers of all."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from ragpilot.config import ServerSettings
from server import guard
from server.origins import Origins
from server.problems import ProblemError
from tests.server.support import LOCAL_TOKEN, ORIGIN, Response, Running, Stand, bearer, running, server_settings

QUESTION = b'{"question": "context budget"}'
PREFLIGHT = {"Origin": ORIGIN, "Access-Control-Request-Method": "POST"}


@pytest_asyncio.fixture
async def server() -> AsyncIterator[Running]:
    async with running(await Stand(settings=server_settings(allowed_hosts=["my-box", "proxy:8443"])).app()) as started:
        yield started


def problem(response: Response, status: int, code: str) -> None:
    document = json.loads(response.body)
    assert (response.status, response.headers["content-type"]) == (status, "application/problem+json")
    assert (document["status"], document["code"]) == (status, code)
    assert document["requestId"] == response.headers["x-request-id"]
    assert response.headers["cache-control"] == "no-store"


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:5200", "127.0.0.1:1", "[::1]", "[::1]:5200", "my-box", "my-box:80", "proxy:8443"]
)
async def test_the_servers_own_names_and_the_configured_ones(server: Running, host: str) -> None:
    assert (await server.call("GET", "/health", headers={"Host": host})).status == 200


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "host",
    ["evil.example", "localhost.evil.example", "evil-localhost", "localhost:5200.evil.example", "user@localhost", "",
     "127.0.0.2", "[::2]", "proxy", "localhost:port", "localhost/"],
)  # fmt: skip
async def test_another_name_is_misdirected_on_every_path(
    server: Running, host: str, caplog: pytest.LogCaptureFixture
) -> None:
    for method, path in (("GET", "/health"), ("POST", "/ask"), ("OPTIONS", "/ask"), ("GET", "/nope")):
        response = await server.call(method, path, QUESTION if method == "POST" else None, {"Host": host})
        problem(response, 421, "unknown_host")
    assert "server.allowed_hosts" in caplog.text


def test_the_host_that_is_listened_on_is_a_name_of_the_server() -> None:
    for setting, host in (("10.0.0.5", b"10.0.0.5:5200"), ("fd00::1", b"[fd00::1]:5200"), ("Box", b"box")):
        Origins(ServerSettings(host=setting)).check([(b"host", host)])
    for headers in ([], [(b"host", b"localhost"), (b"host", b"localhost")]):
        with pytest.raises(ProblemError):
            Origins(ServerSettings()).check(headers)


@pytest.mark.asyncio
@pytest.mark.parametrize("origin", [ORIGIN, "http://localhost", "https://localhost"])
async def test_the_configured_origin_and_the_servers_own_may_ask(server: Running, origin: str) -> None:
    response = await server.call("POST", "/ask", QUESTION, {"Origin": origin})
    assert response.status == 200
    assert response.headers.get("access-control-allow-origin") == (ORIGIN if origin == ORIGIN else None)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "null", "http://localhost:4200.evil.example", "http://localhost:4201",
     "https://localhost:4200", "http://127.0.0.1:4200", "http://localhost:4200/", "HTTP://LOCALHOST:4200", "", "*"],
)  # fmt: skip
async def test_another_origin_is_refused_and_told_nothing(server: Running, origin: str) -> None:
    for method, path in (("GET", "/health"), ("POST", "/ask"), ("OPTIONS", "/ask")):
        body = QUESTION if method == "POST" else None
        headers = {"Origin": origin, "Access-Control-Request-Method": "POST"}
        response = await server.call(method, path, body, headers)
        problem(response, 403, "foreign_origin")
        assert not [name for name in response.headers if name.startswith("access-control-")]


def test_no_origin_may_be_configured() -> None:
    origins = Origins(ServerSettings(cors_origin=""))
    headers = [(b"host", b"localhost"), (b"origin", b"")]
    assert origins.response_headers(headers) == [(b"vary", b"Origin")]
    with pytest.raises(ProblemError):
        origins.check(headers)


@pytest.mark.asyncio
async def test_cors_is_on_everything(server: Running) -> None:
    allowed = {"Origin": ORIGIN}
    calls = [
        ("POST", "/ask", QUESTION, allowed, 200),
        ("POST", "/ask", b"{bad", allowed, 400),
        ("GET", "/nope", None, allowed, 404),
        ("GET", "/ask", None, allowed, 405),
        ("POST", "/ask", b"x" * 70_000, allowed, 413),
        ("POST", "/ask", QUESTION, {**allowed, "Content-Type": "text/plain"}, 415),
        ("POST", "/ask", QUESTION, {**allowed, "Host": "evil.example"}, 421),
        ("POST", "/ask", QUESTION, {**allowed, **bearer("unknown")}, 401),
        ("OPTIONS", "/ask", None, PREFLIGHT, 204),
        ("OPTIONS", "/ask", None, allowed, 204),
    ]
    for method, path, body, headers, status in calls:
        response = await server.call(method, path, body, headers)
        assert response.status == status
        assert response.headers["access-control-allow-origin"] == ORIGIN
        assert "X-Request-Id" in response.headers["access-control-expose-headers"]
        assert response.headers["vary"] == "Origin"
        assert response.headers["x-content-type-options"] == "nosniff"
        assert len(response.headers["x-request-id"]) == 32
    plain = await server.call("GET", "/health")
    assert (plain.headers["vary"], "access-control-allow-origin" in plain.headers) == ("Origin", False)


@pytest.mark.asyncio
async def test_a_preflight_allows_what_the_frontend_and_agents_send(server: Running) -> None:
    for path in ("/ask", "/mcp", "/index/stats"):
        response = await server.call("OPTIONS", path, None, PREFLIGHT)
        assert (response.status, response.body) == (204, b"")
        allowed = response.headers["access-control-allow-headers"].lower()
        for name in ("content-type", "authorization", "mcp-protocol-version", "mcp-session-id", "last-event-id"):
            assert name in allowed
        for method in ("GET", "POST", "DELETE"):
            assert method in response.headers["access-control-allow-methods"]
        assert "access-control-allow-credentials" not in response.headers


@pytest.mark.asyncio
async def test_methods_and_paths_that_do_not_exist(server: Running) -> None:
    problem(await server.call("GET", "/nope"), 404, "unknown_path")
    problem(await server.call("POST", "/nope", b"x", {"Content-Type": "text/plain"}), 404, "unknown_path")
    problem(await server.call("GET", "/sources/a%2fb"), 404, "unknown_path")
    problem(await server.call("GET", "/static/x"), 404, "unknown_path")
    for method, path, allow in (("GET", "/ask", "POST"), ("DELETE", "/health", "GET"), ("BREW", "/corpora", "GET")):
        response = await server.call(method, path)
        problem(response, 405, "method_not_allowed")
        assert allow in response.headers["allow"]
    for target in ("*", "?x=1"):
        problem(await server.call("GET", target), 400, "malformed_request")
    assert (await server.call("GET", "http://localhost/health")).status == 200


@pytest.mark.asyncio
async def test_options_and_head_have_no_body(server: Running) -> None:
    response = await server.call("OPTIONS", "/ask")
    assert (response.status, response.body, response.headers["allow"]) == (204, b"", "OPTIONS, POST")
    assert "content-type" not in response.headers
    problem(await server.call("OPTIONS", "/nope"), 404, "unknown_path")
    for path, status in (("/health", 200), ("/nope", 404), ("/ask", 405)):
        connection = await server.connect()
        await connection.send("HEAD", path, headers={"Connection": "close"})
        assert (await connection.read_head())[0] == status
        async with asyncio.timeout(5):
            assert await connection.reader.read() == b""
        await connection.close()


@pytest.mark.asyncio
async def test_a_body_that_is_too_large_is_refused_so_that_its_sender_can_read_it(server: Running) -> None:
    response = await server.call("POST", "/ask", b"x" * 20_000_000)
    problem(response, 413, "body_too_large")
    assert "65,536" in json.loads(response.body)["detail"]


@pytest.mark.asyncio
async def test_a_chunked_body_is_measured_as_it_comes(server: Running) -> None:
    connection = await server.connect()
    await connection.send("POST", "/ask", headers={"Content-Type": "application/json", "Transfer-Encoding": "chunked"})
    connection.writer.write(b"f000\r\n" + b" " * 0xF000 + b"\r\n")
    connection.writer.write(b"2000\r\n" + b" " * 0x2000 + b"\r\n")
    problem(await connection.read(), 413, "body_too_large")
    await connection.close()
    connection = await server.connect()
    await connection.send("POST", "/ask", headers={"Content-Type": "application/json", "Transfer-Encoding": "chunked"})
    for byte in QUESTION:
        connection.writer.write(b"1\r\n" + bytes([byte]) + b"\r\n")
    connection.writer.write(b"0\r\n\r\n")
    assert (await connection.read()).status == 200
    await connection.close()


@pytest.mark.asyncio
async def test_a_body_that_does_not_come_is_given_up(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "BODY_SECONDS", 0.05)
    monkeypatch.setattr(guard, "DISCARD_SECONDS", 0.05)
    connection = await server.connect()
    await connection.send("POST", "/ask", headers={"Content-Type": "application/json", "Content-Length": "20"})
    problem(await connection.read(), 408, "request_timeout")
    await connection.close()


@pytest.mark.asyncio
async def test_a_client_that_leaves_while_it_sends_harms_nothing(server: Running) -> None:
    connection = await server.connect()
    await connection.send("POST", "/ask", headers={"Content-Type": "application/json", "Content-Length": "20"})
    await connection.close()
    assert (await server.call("GET", "/health")).status == 200


@pytest.mark.asyncio
async def test_one_connection_serves_many_requests(server: Running) -> None:
    connection = await server.connect()
    for body, status in ((QUESTION, 200), (b"{bad", 400), (QUESTION, 200)):
        await connection.send("POST", "/ask", body)
        assert (await connection.read()).status == status
    await connection.send("POST", "/index", b"{}", bearer(LOCAL_TOKEN))
    assert (await connection.read()).status == 200
    await connection.close()


@pytest.mark.asyncio
async def test_a_websocket_is_refused_with_a_problem(server: Running) -> None:
    handshake = {
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Version": "13",
    }
    response = await server.call("GET", "/ask", headers=handshake)
    assert (response.status, json.loads(response.body)["code"]) == (400, "malformed_request")


@pytest.mark.asyncio
async def test_what_an_application_raises_is_still_a_problem(caplog: pytest.LogCaptureFixture) -> None:
    app = await Stand().app()
    inner = app.asgi_app

    async def broken(scope: object, receive: object, send: object) -> None:
        raise ZeroDivisionError

    inner._app = broken  # type: ignore[attr-defined]
    response = await app.test_client().get("/health")
    assert (response.status_code, response.headers["Content-Type"]) == (500, "application/problem+json")
    assert "ZeroDivisionError" in caplog.text
