"""`ragpilot mcp` over real pipes: what comes in a line at a time, what goes out, and what is refused."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from ragpilot import cli_mcp_pipes, cli_mcp_stdio, mcp_client
from ragpilot.cli_mcp_pipes import message_streams
from ragpilot.cli_mcp_stdio import Upstream, bridge
from ragpilot.config import Environment, Settings
from ragpilot.runtime import ServerRecord
from tests.fakes import ScriptedChatModel
from tests.server.agents import address, message, silent_server
from tests.server.support import Stand, running, until

INITIALIZE = message(
    "initialize",
    {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "a client", "version": "1"}},
    id="first",
)
ASK = {"name": "ask", "arguments": {"question": "context budget"}}


class Program:
    """`ragpilot mcp` as its client sees it."""

    def __init__(self, into: int, out_of: int) -> None:
        self._into = into
        self._out_of = out_of
        self._rest = b""

    def say(self, *lines: bytes) -> None:
        os.write(self._into, b"".join(line + b"\n" for line in lines))

    def finish(self) -> None:
        """End standard input."""
        if self._into >= 0:
            os.close(self._into)
            self._into = -1

    def leave(self) -> None:
        """Read no more."""
        if self._out_of >= 0:
            os.close(self._out_of)
            self._out_of = -1

    async def hear(self) -> dict[str, Any]:
        """The next line."""
        async with asyncio.timeout(10):
            while b"\n" not in self._rest:
                piece = await asyncio.to_thread(os.read, self._out_of, 65_536)
                assert piece, "it has ended"
                self._rest += piece
        line, _, self._rest = self._rest.partition(b"\n")
        found: dict[str, Any] = json.loads(line)
        return found


@asynccontextmanager
async def started(upstream: Upstream) -> AsyncIterator[tuple[Program, asyncio.Task[None]]]:
    source, into = os.pipe()
    out_of, sink = os.pipe()

    async def serve() -> None:
        server = bridge(upstream)
        try:
            async with message_streams(source, sink) as (incoming, outgoing):
                await server.run(incoming, outgoing, server.create_initialization_options())
        finally:
            os.close(sink)

    program, task = Program(into, out_of), asyncio.create_task(serve())
    try:
        yield program, task
    finally:
        program.finish()
        async with asyncio.timeout(10):
            with suppress(BaseExceptionGroup):
                await task
        program.leave()
        os.close(source)
        await upstream.aclose()


def upstream_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str) -> Upstream:
    async def found(*_: Any, **__: Any) -> ServerRecord:
        return ServerRecord(at, 1, "now")

    monkeypatch.setattr(cli_mcp_stdio, "running_server", found)
    return Upstream(Environment(settings=Settings(), state=tmp_path), {}, may_ingest=False)


REFUSED: list[tuple[bytes, int, int | str | None]] = [
    (b"garbage", -32700, None),
    (b"\xff\xfe", -32700, None),
    (message("ping").replace(b"ping", b"\xff"), -32700, None),
    (b"[" * 20_000, -32700, None),
    (b"[]", -32600, None),
    (b"[" + message("ping") + b"]", -32600, None),
    (b"42", -32600, None),
    (b'{"jsonrpc": "1.0", "id": 7, "method": "ping"}', -32600, 7),
    (b'{"jsonrpc": "2.0", "id": 7}', -32600, 7),
    (message("ping", id=None), -32600, None),
    (message("ping", id=1.5), -32600, None),
    (message("ping", id=True), -32600, None),
    (b'{"jsonrpc": "2.0", "id": "x", "method": "tools/list", "params": []}', -32602, "x"),
    (b'{"jsonrpc": "2.0", "id": 7, "method": "tools/list", "params": "all"}', -32602, 7),
    (message("tools/call", {"name": "ask", "arguments": []}), -32602, 1),
    (message("nope"), -32601, 1),
]


@pytest.mark.asyncio
@pytest.mark.parametrize("handshake", [True, False], ids=["after the handshake", "before it"])
async def test_what_is_no_message_is_answered_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, handshake: bool
) -> None:
    async with started(upstream_of(tmp_path, monkeypatch, "http://127.0.0.1:1")) as (program, task):
        if handshake:
            program.say(INITIALIZE, message("notifications/initialized", id=None).replace(b'"id": null, ', b""))
            assert (await program.hear())["result"]["serverInfo"]["name"] == "pilot-rag-ask"
        for line, code, number in REFUSED:
            program.say(line)
            found = await program.hear()
            assert (found["jsonrpc"], found["id"], found["error"]["code"]) == ("2.0", number, code), line[:60]
            assert 10 < len(found["error"]["message"]) < 120
        # Neither a blank line nor a notification gets an answer, and a line without its end is one.
        program.say(b"", b"  \r", b'{"jsonrpc": "2.0", "method": "notifications/x", "params": []}')
        os.write(program._into, message("ping", id="last"))
        program.finish()
        assert await program.hear() == {"jsonrpc": "2.0", "id": "last", "result": {}}
        await task


@pytest.mark.asyncio
async def test_a_line_without_end_is_refused_and_the_next_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cli_mcp_pipes, "LINE_MAX_BYTES", 1_000)
    monkeypatch.setattr(cli_mcp_pipes, "_READ_BYTES", 64)
    async with started(upstream_of(tmp_path, monkeypatch, "http://127.0.0.1:1")) as (program, _):
        program.say(message("ping", {"x": "y" * 20_000}), message("ping"))
        assert (await program.hear())["error"]["message"] == "A message may have at most 1,000 bytes."
        assert (await program.hear())["result"] == {}


@pytest.mark.asyncio
async def test_a_cancelled_call_stops_the_model_and_is_not_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat = ScriptedChatModel(gate=asyncio.Semaphore(0))
    async with (
        running(await Stand(chat=chat).app()) as server,
        started(upstream_of(tmp_path, monkeypatch, address(server))) as (program, _),
    ):
        program.say(INITIALIZE)
        await program.hear()
        for number in (1, "two"):
            program.say(message("tools/call", {**ASK, "_meta": {"progressToken": "p"}}, id=number))
            while (await program.hear())["params"]["message"] != "Searching the index":
                pass
            await until(lambda: chat.opened > chat.ended)
            cancelled = {"method": "notifications/cancelled", "params": {"requestId": number}}
            program.say(json.dumps({"jsonrpc": "2.0", **cancelled}).encode())
            await until(lambda: chat.ended == chat.opened)
        program.say(message("ping", id="after"))
        while "id" not in (heard := await program.hear()):
            assert heard["method"] == "notifications/progress"
        assert heard == {"jsonrpc": "2.0", "id": "after", "result": {}}
    assert chat.ended == 2


@pytest.mark.asyncio
async def test_what_was_asked_before_the_end_is_still_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = asyncio.Semaphore(0)
    chat = ScriptedChatModel(["Kept [1]."], gate=gate)
    async with (
        running(await Stand(chat=chat).app()) as server,
        started(upstream_of(tmp_path, monkeypatch, address(server))) as (program, task),
    ):
        program.say(INITIALIZE, message("tools/call", ASK))
        program.finish()
        assert (await program.hear())["id"] == "first"
        await until(lambda: chat.opened == 1)
        gate.release()
        assert (await program.hear())["result"]["structuredContent"]["answer"] == "Kept [1]."
        await task


@pytest.mark.asyncio
async def test_what_never_comes_holds_up_the_end_only_so_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli_mcp_pipes, "LAST_ANSWERS_SECONDS", 0.2)
    chat = ScriptedChatModel(gate=asyncio.Semaphore(0))
    async with running(await Stand(chat=chat).app()) as server:
        async with started(upstream_of(tmp_path, monkeypatch, address(server))) as (program, task):
            program.say(INITIALIZE, message("tools/call", ASK))
            await until(lambda: chat.opened == 1)
            program.finish()
            async with asyncio.timeout(5):
                await task
        await until(lambda: chat.ended == 1)


@pytest.mark.asyncio
async def test_a_client_that_reads_no_more_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with started(upstream_of(tmp_path, monkeypatch, "http://127.0.0.1:1")) as (program, task):
        program.leave()
        program.say(message("ping"))
        with pytest.RaisesGroup(BrokenPipeError, flatten_subgroups=True):
            async with asyncio.timeout(5):
                await task


# --- a server that is there and silent


@pytest.mark.asyncio
async def test_a_server_that_hangs_is_told_with_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_client, "WAIT_SECONDS", 0.1)
    monkeypatch.setattr("ragpilot.runtime.ANSWER_SECONDS", 0.1)
    state = tmp_path / "state"
    words = f"process {os.getpid()} and start it anew."
    upstream = Upstream(Environment(settings=Settings(), state=state), {}, may_ingest=False)
    async with silent_server(state), started(upstream) as (program, _):
        program.say(INITIALIZE, message("tools/list", id="list"), message("tools/call", ASK, id="call"))
        await program.hear()
        for _ in range(2):
            found = await program.hear()
            text = found["error"]["message"] if found["id"] == "list" else found["result"]["content"][0]["text"]
            assert text.startswith("The running RagPilot server does not answer: `ragpilot serve` at http://127.0.0.1")
            assert text.endswith(words)
