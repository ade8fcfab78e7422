"""``/mcp`` as HTTP sees it: paths, methods, sessions, kinds of body, actors, and the form of every refusal."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from mcp.shared.exceptions import MCPError
from mcp_types.version import KNOWN_PROTOCOL_VERSIONS

from ragpilot.config import ActorSettings, ServerSettings
from ragpilot.mcp_identity import REVISIONS as REVISIONS_SPOKEN
from tests.fakes import ScriptedChatModel
from tests.server.agents import HEADERS, MODERN, REVISIONS, address, agent, answer, error, message
from tests.server.support import (
    LOCAL_TOKEN,
    ORIGIN,
    TOKENS,
    Running,
    Stand,
    bearer,
    running,
    server_settings,
    settings_of,
    until,
    with_actors,
)

LIST = message("tools/list")
ASK = message("tools/call", {"name": "ask", "arguments": {"question": "context budget"}})
READING = ["ask", "rag_query", "rag_collections"]


@pytest_asyncio.fixture
async def server() -> AsyncIterator[Running]:
    async with running(await Stand(settings=server_settings(allowed_hosts=["my-box"])).app()) as started:
        yield started


@pytest.mark.asyncio
@pytest.mark.parametrize("mode", REVISIONS)
async def test_both_generations_learn_who_answers_and_which_tools_there_are(server: Running, mode: str) -> None:
    async with agent(address(server), mode=mode) as client:
        assert client.protocol_version == REVISIONS[mode]
        assert client.server_info is not None
        assert client.server_info.name == "pilot-rag-ask"
        assert "Ask it before you search or guess" in (client.instructions or "")
        assert f'in the folder "{Path.cwd().name}"' in (client.instructions or "")
        assert client.server_capabilities.tools is not None
        assert (client.server_capabilities.prompts, client.server_capabilities.resources) == (None, None)
        assert [tool.name for tool in (await client.list_tools()).tools] == READING


@pytest.mark.asyncio
async def test_the_path_with_and_without_its_slash_and_no_other(server: Running) -> None:
    for path in ("/mcp", "/mcp/", "/mcp?x=1"):
        response = await server.call("POST", path, message("ping"), HEADERS)
        assert (response.status, answer(response)["result"]) == (200, {})
    for path in ("/mcpx", "/mcp/x", "//mcp", "/mcp//", "/MCP", "/x/mcp"):
        response = await server.call("POST", path, message("ping"), HEADERS)
        assert (response.status, response.headers["content-type"]) == (404, "application/problem+json")


@pytest.mark.asyncio
async def test_without_sessions_there_is_nothing_but_post(server: Running) -> None:
    for method in ("GET", "DELETE", "PUT", "PATCH"):
        response = await server.call(method, "/mcp", headers=HEADERS)
        assert (response.status, response.headers["allow"]) == (405, "OPTIONS, POST")
        assert error(response)["code"] == -32600
    options = await server.call("OPTIONS", "/mcp")
    assert (options.status, options.headers["allow"], options.body) == (204, "OPTIONS, POST", b"")
    stale = await server.call("POST", "/mcp", LIST, {**HEADERS, "Mcp-Session-Id": "of-a-server-before"})
    assert (stale.status, error(stale)["data"]["code"]) == (404, "unknown_session")
    fresh = await server.call("POST", "/mcp", message("initialize", INITIALIZE), HEADERS)
    assert (fresh.status, "mcp-session-id" in fresh.headers) == (200, False)


INITIALIZE = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "a client", "version": "1"},
}


NO_MESSAGES: list[tuple[bytes, int, int | str | None]] = [
    (b"", -32700, None),
    (b"{bad", -32700, None),
    (b"\xff", -32700, None),
    (b"[" * 10_000, -32700, None),
    (message("ping", {"x": float("nan")}), -32700, None),
    (b"[]", -32600, None),
    (b"42", -32600, None),
    (b"null", -32600, None),
    (b"{}", -32600, None),
    (b'{"jsonrpc": "1.0", "id": 1, "method": "ping"}', -32600, 1),
    (b'{"jsonrpc": "2.0", "id": "one"}', -32600, "one"),
    (b'{"jsonrpc": "2.0", "id": 1, "method": 7}', -32600, 1),
    (b'{"jsonrpc": "2.0", "id": 1, "error": 7}', -32600, 1),
    (b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": []}', -32602, 1),
    (rb'{"jsonrpc": "2.0", "id": "a\ud800", "method": "ping"}', -32600, None),
    (rb'{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "ask\uDFFF"}}', -32600, 7),
    (rb'{"jsonrpc": "2.0", "id": 7, "method": "ping", "params": {"a": [{"\ud83d": 1}]}}', -32600, 7),
    (b'{"jsonrpc": "2.0", "method": "notifications/initialized", "params": []}', -32602, None),
]
ODD_IDS: list[Any] = [None, {}, [], 1.5, 1.0, True, False]


@pytest.mark.asyncio
@pytest.mark.parametrize("headers", [HEADERS, MODERN], ids=["2025", "2026"])
async def test_what_is_no_message_is_an_error_of_the_protocol(server: Running, headers: dict[str, str]) -> None:
    odd = [(message("ping", id=number), -32600, None) for number in ODD_IDS]
    for body, code, number in [*NO_MESSAGES, *odd]:
        response = await server.call("POST", "/mcp", body, headers)
        found = answer(response)
        assert (response.status, found["id"], found["error"]["code"]) == (400, number, code), body[:50]
        assert found["error"]["data"]["requestId"] == response.headers["x-request-id"]
        # Words for whoever wrote the client, and none of the library's own.
        assert 10 < len(found["error"]["message"]) < 120
        assert "pydantic" not in response.body.decode()


@pytest.mark.asyncio
@pytest.mark.parametrize("version", [None, "2025-03-26"])
async def test_a_list_of_messages_is_answered_with_a_list(version: str | None) -> None:
    headers = {**HEADERS, **({"MCP-Protocol-Version": version} if version else {})}
    called = {"name": "rag_query", "arguments": {"question": "context budget"}}
    sent = [
        json.loads(message("ping", id="one")),
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 99}},
        json.loads(message("tools/call", called, id=2)),
        json.loads(message("tools/call", {"name": "nope"}, id=3)),
        json.loads(message("initialize", INITIALIZE, id=4)),
        7,
    ]
    async with running(await Stand().app()) as server:
        response = await server.call("POST", "/mcp", json.dumps(sent).encode(), headers)
        assert (response.status, response.headers["content-type"]) == (200, "application/json")
        found = json.loads(response.body)
        assert [one["id"] for one in found] == ["one", 2, 3, 4, None]
        assert found[0]["result"] == {}
        assert found[1]["result"]["structuredContent"]["hits"][0]["filePath"] == "core/prompting.py"
        assert [one["error"]["code"] for one in found[2:]] == [-32602, -32600, -32600]
        assert found[4]["error"]["data"]["requestId"] == response.headers["x-request-id"]
        silent = await server.call("POST", "/mcp", json.dumps([sent[1]]).encode(), headers)
        assert (silent.status, silent.body) == (202, b"")
        many = await server.call("POST", "/mcp", json.dumps([sent[0]] * 51).encode(), headers)
        assert (many.status, error(many)["message"]) == (400, "A list of messages holds 1 to 50 of them.")


@pytest.mark.asyncio
@pytest.mark.parametrize("version", ["2025-06-18", "2026-07-28"])
async def test_later_revisions_have_no_lists(server: Running, version: str) -> None:
    response = await server.call("POST", "/mcp", b"[" + LIST + b"]", {**HEADERS, "MCP-Protocol-Version": version})
    assert (response.status, error(response)["code"]) == (400, -32600)
    assert error(response)["message"] == "Lists of messages are not taken: send them one by one."


@pytest.mark.asyncio
async def test_an_agent_that_leaves_stops_every_call_of_its_list() -> None:
    chat = ScriptedChatModel(gate=asyncio.Semaphore(0))
    ask = {"name": "ask", "arguments": {"question": "context budget"}}
    body = b"[" + b",".join(message("tools/call", ask, id=number) for number in range(2)) + b"]"
    async with running(await Stand(chat=chat).app()) as server:
        connection = await server.connect()
        await connection.send("POST", "/mcp", body, HEADERS)
        await until(lambda: chat.opened >= 1)
        connection.writer.transport.abort()
        await until(lambda: chat.ended == chat.opened)


@pytest.mark.asyncio
async def test_an_id_is_a_text_or_a_whole_number(server: Running) -> None:
    for number in (0, -1, 10**15, "", "a", "\U0001f600"):
        assert answer(await server.call("POST", "/mcp", message("ping", id=number), HEADERS))["id"] == number


@pytest.mark.asyncio
async def test_calls_that_make_no_sense_are_errors_of_the_protocol(server: Running) -> None:
    for body, code, words in (
        (message("nope"), -32601, "Method not found"),
        (message("prompts/list"), -32601, "Method not found"),
        (message("initialize"), -32602, "initialize needs 'protocolVersion' in its 'params': a text."),
        (message("tools/call"), -32602, "tools/call needs 'name' in its 'params': a text."),
        (message("tools/call", {"name": 7}), -32602, "tools/call needs 'name' in its 'params': a text."),
        (message("tools/call", {"name": "ask", "arguments": ["x"]}), -32602, "'arguments' must be an object."),
        (message("tools/call", {"name": "ask", "_meta": 7}), -32602, "'_meta' must be an object."),
        (message("tools/call", {"name": "ask", "_meta": {"progressToken": 1.5}}), -32602, "'progressToken' must be"),
        (message("tools/list", {"cursor": 7}), -32602, "'cursor' must be a text."),
        (message("tools/call", {"name": "nope", "arguments": {}}), -32602, "Unknown tool: nope"),
    ):
        response = await server.call("POST", "/mcp", body, HEADERS)
        assert answer(response)["id"] == 1
        assert error(response)["code"] == code
        assert error(response)["message"].startswith(words)
    noted = json.dumps({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}).encode()
    for headers in (HEADERS, MODERN):
        response = await server.call("POST", "/mcp", noted, headers)
        assert (response.status, response.body) == (202, b"")


@pytest.mark.asyncio
async def test_a_revision_that_is_not_spoken_is_told_those_that_are(server: Running) -> None:
    assert REVISIONS_SPOKEN == KNOWN_PROTOCOL_VERSIONS
    for version in ("1999-01-01", "2030-01-01", "draft", ""):
        response = await server.call("POST", "/mcp", LIST, {**HEADERS, "MCP-Protocol-Version": version})
        found = error(response)
        assert (response.status, answer(response)["id"], found["code"]) == (400, 1, -32022)
        assert found["message"].startswith(f"The protocol version {version!r} is not supported; supported are 2024-")
        assert found["message"].endswith("2025-11-25, 2026-07-28.")
        assert (found["data"]["supported"], found["data"]["requested"]) == (list(REVISIONS_SPOKEN), version)
    for version in REVISIONS_SPOKEN[:-1]:
        assert (await server.call("POST", "/mcp", LIST, {**HEADERS, "MCP-Protocol-Version": version})).status == 200


@pytest.mark.asyncio
async def test_a_client_says_that_it_takes_both_forms_of_an_answer(server: Running) -> None:
    for headers in (HEADERS, MODERN):
        for accept in (
            "application/json",
            "text/event-stream",
            "text/html",
            "",
            "application/jsonx, text/event-stream",
        ):
            response = await server.call("POST", "/mcp", LIST, {**headers, "Accept": accept})
            assert (response.status, error(response)["data"]["code"]) == (406, "not_acceptable")
    for accept in ("*/*", "application/*;q=0.5, text/*", "TEXT/EVENT-STREAM , application/json"):
        assert (await server.call("POST", "/mcp", LIST, {**HEADERS, "Accept": accept})).status == 200


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("headers", "body", "status", "code"),
    [
        ({"Host": "evil.example"}, LIST, 421, "unknown_host"),
        ({"Origin": "http://evil.example"}, LIST, 403, "foreign_origin"),
        ({"Content-Type": "text/plain"}, LIST, 415, "unsupported_media_type"),
        ({}, b"x" * 70_000, 413, "body_too_large"),
        (bearer("unknown"), LIST, 401, "unauthenticated"),
        ({"Authorization": "Basic eA=="}, LIST, 401, "unauthenticated"),
    ],
)
async def test_what_the_door_refuses_is_told_in_the_protocols_form(
    server: Running, headers: dict[str, str], body: bytes, status: int, code: str
) -> None:
    for path in ("/mcp", "/mcp/"):
        response = await server.call("POST", path, body, {**HEADERS, **headers})
        found = error(response)
        assert (response.status, found["code"], found["data"]["code"]) == (status, -32600, code)
        assert found["message"]


@pytest.mark.asyncio
async def test_the_configured_hosts_and_the_frontend_may_call(server: Running) -> None:
    for host in ("localhost:1", "127.0.0.1", "[::1]:5200", "my-box:80"):
        assert (await server.call("POST", "/mcp", LIST, {**HEADERS, "Host": host})).status == 200
    for body, status in ((message("initialize", INITIALIZE), 200), (b"{bad", 400)):
        response = await server.call("POST", "/mcp", body, {**HEADERS, "Origin": ORIGIN})
        assert (response.status, response.headers["access-control-allow-origin"]) == (status, ORIGIN)
        assert "Mcp-Session-Id" in response.headers["access-control-expose-headers"]


@pytest.mark.asyncio
async def test_the_actor_comes_from_the_request_and_decides_which_tools_there_are() -> None:
    settings = with_actors()
    guest = ActorSettings(name="guest", permissions=["admin"], tokens=["env:GUEST"])
    writer = ActorSettings(name="writer", principals=["team:everyone"], permissions=["ingest"], tokens=["env:WRITER"])
    settings = settings.model_copy(update={"actors": [*settings.actors, guest, writer]})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GUEST", "token-of-guest")
        patch.setenv("WRITER", "token-of-writer")
        async with running(await Stand(settings=settings).app()) as server:
            none = await server.call("POST", "/mcp", LIST, HEADERS)
            assert (none.status, none.headers["www-authenticate"]) == (401, "Bearer")
            refused = await server.call("POST", "/mcp", LIST, {**HEADERS, **bearer("token-of-guest")})
            assert (refused.status, error(refused)["data"]["code"]) == (403, "forbidden")
            assert error(refused)["message"] == "The actor 'guest' does not hold the permission 'ask' or 'ingest'."
            for mode in REVISIONS:
                async with agent(address(server), mode=mode, token="token-of-writer") as client:
                    assert [tool.name for tool in (await client.list_tools()).tools] == ["rag_ingest"]
                    written = await client.call_tool("rag_ingest", {"path": "."})
                    assert (written.is_error, written.structured_content["outcome"]) == (False, "complete")
                    for name in READING:
                        with pytest.raises(MCPError, match=f"Unknown tool: {name}"):
                            await client.call_tool(name, {"question": "context budget"})
            for name, tools in (("ann", READING), ("bob", READING), ("olga", [*READING, "rag_ingest"])):
                async with agent(address(server), token=TOKENS[name]) as client:
                    assert [tool.name for tool in (await client.list_tools()).tools] == tools


@pytest.mark.asyncio
async def test_the_token_of_the_state_folder_adds_the_tool_that_writes(server: Running) -> None:
    async with agent(address(server), token=LOCAL_TOKEN) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == [*READING, "rag_ingest"]


@pytest.mark.asyncio
async def test_an_agent_that_leaves_stops_the_model_in_both_generations() -> None:
    chat = ScriptedChatModel(gate=asyncio.Semaphore(0))
    async with running(await Stand(chat=chat).app()) as server:
        async with agent(address(server), mode="auto") as client:
            call = asyncio.create_task(client.call_tool("ask", {"question": "context budget"}))
            await until(lambda: chat.opened == 1)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            await until(lambda: chat.ended == 1)
        connection = await server.connect()
        await connection.send("POST", "/mcp", ASK, HEADERS)
        await until(lambda: chat.opened == 2)
        connection.writer.transport.abort()
        await until(lambda: chat.ended == 2)
        assert (await server.call("POST", "/mcp", LIST, HEADERS)).status == 200


@pytest.mark.asyncio
@pytest.mark.parametrize("mode", REVISIONS)
async def test_a_shutdown_ends_a_call_with_words(mode: str) -> None:
    chat = ScriptedChatModel(gate=asyncio.Semaphore(0))
    async with running(await Stand(chat=chat).app()) as server, agent(address(server), mode=mode) as client:
        call = asyncio.create_task(client.call_tool("ask", {"question": "context budget"}))
        await until(lambda: chat.opened == 1)
        server.stop.set()
        async with asyncio.timeout(5):
            result = await call
        assert result.is_error
        assert "shutting down" in str(result.content)
        await until(lambda: chat.ended == 1)


@pytest.mark.asyncio
async def test_it_starts_again_in_the_same_process_and_needs_no_lifespan() -> None:
    stand = Stand()
    for _ in range(2):
        async with running(await stand.app()) as server:
            assert (await server.call("POST", "/mcp", message("initialize", INITIALIZE), HEADERS)).status == 200
            assert (await server.call("POST", "/mcp", LIST, HEADERS)).status == 200
    app = await stand.app()
    for _ in range(2):
        response = await app.test_client().post("/mcp", data=LIST, headers={**HEADERS, "Host": "localhost"})
        assert response.status_code == 200
        assert b'"rag_query"' in await response.get_data(as_text=False)


@pytest.mark.asyncio
async def test_logging_stays_as_it_was_and_holds_no_question(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    root = logging.getLogger()
    before = (root.level, list(root.handlers))
    async with running(await Stand().app()) as server, agent(address(server)) as client:
        await client.call_tool("ask", {"question": "context budget"})
        await client.call_tool("ask", {"question": "context budget", "topK": 0})
    assert (root.level, list(root.handlers)) == before
    assert "POST /mcp 200" in caplog.text
    assert "context budget" not in caplog.text


@pytest.mark.asyncio
async def test_a_large_answer_and_many_calls_on_one_connection() -> None:
    settings = settings_of(server=ServerSettings(max_body_bytes=1024))
    chat = ScriptedChatModel(["line\n" * 100_000])
    async with running(await Stand(chat=chat, settings=settings).app()) as server:
        assert (await server.call("POST", "/mcp", message("ping", {"_meta": {"x": "y" * 1000}}), HEADERS)).status == 413
        connection = await server.connect()
        for _ in range(3):
            await connection.send("POST", "/mcp", ASK, HEADERS)
            result: dict[str, Any] = answer(await connection.read())["result"]
            assert result["structuredContent"]["answer"] == "line\n" * 100_000
