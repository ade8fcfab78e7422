"""Agents of a server under test: the protocol's own client in each of its generations, and calls written by hand."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, TextContent

from ragpilot.runtime import OwnerLock, server_record
from tests.protocol.listening import listening
from tests.server.support import Response, Running, bearer

REVISIONS = {"legacy": "2025-11-25", "auto": "2026-07-28"}
"""How a client is told to negotiate -> the revision that comes of it."""
HEADERS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
MODERN = {**HEADERS, "MCP-Protocol-Version": "2026-07-28"}
SECRET = "/srv/secret/place http://10.0.0.9:6333"
"""In errors and reports of the core: what no agent may be told."""


class Told:
    """Notifications of progress, as they came."""

    def __init__(self) -> None:
        self.numbers: list[float] = []
        self.messages: list[str | None] = []

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        self.numbers.append(progress)
        self.messages.append(message)

    @property
    def grew(self) -> bool:
        """Whether there were any, each with a higher number than the one before."""
        return bool(self.numbers) and self.numbers == sorted(set(self.numbers))


@asynccontextmanager
async def agent(address: str, *, mode: str = "auto", token: str | None = None) -> AsyncIterator[Client]:
    """A client of the server at ``address``."""
    async with (
        httpx2.AsyncClient(headers=bearer(token) if token else {}, trust_env=False, timeout=30) as http,
        Client(streamable_http_client(f"{address}/mcp", http_client=http), mode=mode) as client,
    ):
        yield client


@asynccontextmanager
async def silent_server(state: Path) -> AsyncIterator[None]:
    """A program that holds the state folder as a server, takes connections, and says nothing."""

    async def hold(_: asyncio.StreamReader, __: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    async with listening(hold) as port:
        at = f"http://127.0.0.1:{port}"
        with OwnerLock(state, "serve") as lock:
            lock.announce(at)
            with server_record(state, at):
                yield


def address(server: Running) -> str:
    return f"http://127.0.0.1:{server.port}"


def text_of(result: CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


def message(method: str, params: dict[str, Any] | None = None, **members: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}, **members}).encode()


def answer(response: Response) -> dict[str, Any]:
    """The one message of a response, whether it came as JSON or as the last event of a stream."""
    body = response.body.decode()
    if response.headers["content-type"].startswith("text/event-stream"):
        body = [line for line in body.splitlines() if line.startswith("data: ")][-1].removeprefix("data: ")
    else:
        assert response.headers["content-type"] == "application/json"
    found: dict[str, Any] = json.loads(body)
    assert found["jsonrpc"] == "2.0"
    return found


def error(response: Response) -> dict[str, Any]:
    found: dict[str, Any] = answer(response)["error"]
    return found
