from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from ragpilot import cli_mcp_stdio, mcp_client
from ragpilot.cli_mcp_stdio import Upstream
from ragpilot.config import Environment, Settings
from ragpilot.errors import AuthenticationError, ServerUnreachableError
from ragpilot.mcp_client import CallBrokenOffError, McpClient, RpcError, ServerSilentError
from ragpilot.runtime import ANSWER_SECONDS, ServerRecord, local_token
from server import patience
from tests.fakes import ScriptedChatModel
from tests.protocol.listening import listening
from tests.server.agents import Told, address
from tests.server.support import LOCAL_TOKEN, Stand, running, until


@asynccontextmanager
async def program(answer: bytes) -> AsyncIterator[str]:
    """A program at a free port that gives these bytes to whoever connects."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()

    async with listening(serve) as port:
        yield f"http://127.0.0.1:{port}"


def http(kind: str, body: str, status: str = "200 OK") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()


async def call(at: str, token: str | None = None) -> dict[str, Any]:
    client = McpClient(at, token)
    try:
        async with asyncio.timeout(10):
            return await client.call("tools/list", {})
    finally:
        await client.aclose()


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "answer",
    [
        b"",
        http("text/html", "<html>"),
        http("application/json", "[]"),
        http("application/json", '{"jsonrpc": "2.0", "id": 1}'),
        http("application/json", '{"jsonrpc": "2.0", "id": 1, "result": 7}'),
        http("text/event-stream", "data: <html>\n\n"),
        http("text/event-stream", ": ping\n\n"),
        http("text/event-stream", 'data: {"jsonrpc": "2.0", "method": "notifications/progress"}\n\n'),
    ],
)
async def test_what_is_no_answer_of_a_server_is_no_server(answer: bytes) -> None:
    async with program(answer) as at:
        with pytest.raises(ServerUnreachableError):
            await call(at)
    with pytest.raises(ServerUnreachableError, match="No RagPilot server answers"):
        await call(at)


@pytest.mark.asyncio
async def test_a_server_that_is_silent_and_one_that_ends_at_work_are_told_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stream = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    event = 'data: {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": 1}}\n\n'
    for body in (event, ""):
        begun = f"{stream}{len(body):x}\r\n{body}\r\n" if body else stream
        async with program(begun.encode()) as at:
            with pytest.raises(CallBrokenOffError) as caught:
                await call(at)
            assert str(caught.value) == (
                f"The RagPilot server at {at} ended during this call. The call can be made again."
            )
    monkeypatch.setattr(mcp_client, "SILENCE_SECONDS", 0.2)

    async def hold(_: asyncio.StreamReader, __: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    async with listening(hold) as port:
        with pytest.raises(ServerSilentError, match=r"does not answer: silent for 0\.2 s\."):
            await call(f"http://127.0.0.1:{port}")


@pytest.mark.asyncio
@pytest.mark.parametrize("failure", [ServerSilentError, CallBrokenOffError])
async def test_a_call_that_was_begun_is_not_made_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: type[ServerUnreachableError]
) -> None:
    found, made = 0, 0

    async def find(_: Path) -> ServerRecord:
        nonlocal found
        found += 1
        return ServerRecord("http://127.0.0.1:1", 1, "now")

    async def fail(_: McpClient) -> None:
        nonlocal made
        made += 1
        raise failure("It ended.")

    async def work(_: McpClient) -> str:
        return "done"

    monkeypatch.setattr(cli_mcp_stdio, "running_server", find)
    upstream = Upstream(Environment(settings=Settings(), state=tmp_path), {}, may_ingest=False)
    assert await upstream.use(work) == "done"
    with pytest.raises(failure):
        await upstream.use(fail)
    assert (found, made) == (1, 1)
    # The next call looks for a server anew, and meets none that it would wait for again.
    assert await upstream.use(work) == "done"
    assert found == 2
    await upstream.aclose()


def test_silence_is_over_before_a_tools_own_deadline() -> None:
    # And one that lives breaks it in time: the protocol's streams send a comment every 15 s.
    assert 15 < mcp_client.SILENCE_SECONDS < patience.READ_SECONDS
    assert mcp_client.WAIT_SECONDS + 2 * ANSWER_SECONDS < patience.READ_SECONDS


@pytest.mark.asyncio
async def test_results_errors_and_progress() -> None:
    async with running(await Stand().app()) as server:
        assert (await call(address(server)))["tools"][0]["name"] == "ask"
        with pytest.raises(AuthenticationError, match="RAGPILOT_TOKEN"):
            await call(address(server), "unknown")
        client, told = McpClient(address(server) + "/", LOCAL_TOKEN), Told()
        asked = {"name": "ask", "arguments": {"question": "context budget"}}
        result = await client.call("tools/call", asked, progress=told)
        assert result["structuredContent"]["outcome"] == "answered"
        assert told.grew
        with pytest.raises(RpcError, match="Unknown tool: nope") as caught:
            await client.call("tools/call", {"name": "nope"})
        assert caught.value.code == -32602
        await client.aclose()


@pytest.mark.asyncio
async def test_a_call_that_is_cancelled_stops_the_model() -> None:
    chat = ScriptedChatModel(gate=asyncio.Semaphore(0))
    async with running(await Stand(chat=chat).app()) as server:
        client = McpClient(address(server), None)
        asked = {"name": "ask", "arguments": {"question": "context budget"}}
        going = asyncio.create_task(client.call("tools/call", asked))
        await until(lambda: chat.opened == 1)
        going.cancel()
        with pytest.raises(asyncio.CancelledError):
            await going
        await until(lambda: chat.ended == 1)
        await client.aclose()


# --- the server that `ragpilot mcp` speaks to


@pytest.mark.asyncio
async def test_a_server_that_has_gone_is_found_or_started_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places: list[str] = []
    started: list[str] = []

    async def find(_: Path) -> ServerRecord | None:
        return None

    async def start(*_: Any) -> ServerRecord:
        started.append(places[-1])
        return ServerRecord(places[-1], 1, "now")

    monkeypatch.setattr(cli_mcp_stdio, "running_server", find)
    monkeypatch.setattr(cli_mcp_stdio, "start", start)
    upstream = Upstream(Environment(settings=Settings(), state=tmp_path), {}, may_ingest=False)

    async def names() -> list[str]:
        found = await upstream.use(lambda client: client.call("tools/list", {}))
        return [tool["name"] for tool in found["tools"]]

    for _ in range(2):
        async with running(await Stand().app()) as server:
            places.append(address(server))
            assert await names() == ["ask", "rag_query", "rag_collections"]
            assert await names() == ["ask", "rag_query", "rag_collections"]
    assert started == places
    with pytest.raises(ServerUnreachableError):
        await names()
    await upstream.aclose()


@pytest.mark.asyncio
@pytest.mark.parametrize(("may_ingest", "token"), [(False, None), (True, "local"), (False, "of-ann"), (True, "of-ann")])
async def test_the_token_of_the_state_folder_is_used_only_where_it_was_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, may_ingest: bool, token: str | None
) -> None:
    async def find(_: Path) -> ServerRecord:
        return ServerRecord("http://127.0.0.1:1", 1, "now")

    monkeypatch.setattr(cli_mcp_stdio, "running_server", find)
    state = tmp_path / "state"
    local = local_token(state)
    environ = {"RAGPILOT_TOKEN": token} if token == "of-ann" else {}
    upstream = Upstream(Environment(settings=Settings(), state=state), environ, may_ingest=may_ingest)

    async def header(client: McpClient) -> str | None:
        found: str | None = client._client.headers.get("Authorization")
        return found

    expected = {None: None, "local": f"Bearer {local}", "of-ann": "Bearer of-ann"}[token]
    assert await upstream.use(header) == expected
    await upstream.aclose()
