"""A small HTTP/1.1 server over real sockets whose every byte, pause and fault a test decides."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from tests.protocol.listening import listening

WAIT_SECONDS = 10.0
"""The longest that anything here waits for a client."""


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    headers: dict[str, str]
    body: Any


class Reply:
    """The answer to one request. Whole (``json``), or in chunks (``start``, ``chunk`` …, ``end``)."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.keep = True

    async def raw(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def whole(self, status: int, body: bytes, content_type: str, headers: dict[str, str] | None = None) -> None:
        fields = {"Content-Type": content_type, "Content-Length": str(len(body)), **(headers or {})}
        await self.raw(_head(status, fields) + body)

    async def json(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
        await self.whole(status, json.dumps(body).encode(), "application/json", headers)

    async def start(self, content_type: str, status: int = 200) -> None:
        await self.raw(_head(status, {"Content-Type": content_type, "Transfer-Encoding": "chunked"}))

    async def chunk(self, data: bytes) -> None:
        await self.raw(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    async def end(self) -> None:
        await self.raw(b"0\r\n\r\n")

    def reset(self) -> None:
        """Tear the connection down with a RST."""
        self.keep = False
        raw = self._writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()

    def hang_up(self) -> None:
        """Close in the middle of the answer, without its end."""
        self.keep = False
        self._writer.close()

    async def gone(self) -> None:
        """Return once the client has closed its side."""
        self.keep = False
        async with asyncio.timeout(WAIT_SECONDS):
            while await self._reader.read(4096):
                pass

    async def unless_gone(self, awaitable: Awaitable[object]) -> bool:
        """Wait for ``awaitable``; False if the client leaves before."""
        waited, left = asyncio.ensure_future(awaitable), asyncio.ensure_future(self._reader.read(1))
        await asyncio.wait({waited, left}, return_when=asyncio.FIRST_COMPLETED, timeout=WAIT_SECONDS)
        done = waited.done()
        waited.cancel()
        left.cancel()
        self.keep = self.keep and done
        return done


def _head(status: int, fields: dict[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {status} Status", *(f"{name}: {value}" for name, value in fields.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


Handler = Callable[[Request, Reply], Awaitable[None]]


class ProtocolServer:
    """Listens on a free port of the loopback while its context is open. Subclasses answer in ``handle``."""

    def __init__(self, handler: Handler | None = None) -> None:
        self._handler = handler
        self.tls: ssl.SSLContext | None = None
        """Set before the context is entered: the server speaks https."""
        self.requests: list[Request] = []
        self.open_connections = 0
        self.connections = 0
        self._changed = asyncio.Event()
        self._open = AsyncExitStack()

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"

    async def handle(self, request: Request, reply: Reply) -> None:
        assert self._handler is not None
        await self._handler(request, reply)

    def sent_to(self, path: str) -> list[Any]:
        """The bodies of all requests to ``path``."""
        return [request.body for request in self.requests if request.path == path]

    async def until(self, holds: Callable[[], bool], seconds: float = 10.0) -> None:
        """Wait until ``holds``, asked again at each request and each end of a connection; else TimeoutError."""
        async with asyncio.timeout(seconds):
            while not holds():
                self._changed.clear()
                await self._changed.wait()

    async def all_closed(self, *, but: int = 0) -> None:
        """Wait until no more than ``but`` connections are open; TimeoutError after ten seconds."""
        await self.until(lambda: self.open_connections <= but)

    async def __aenter__(self) -> Self:
        self.port = await self._open.enter_async_context(listening(self._serve, tls=self.tls))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._open.aclose()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open_connections += 1
        try:
            while (request := await _read(reader)) is not None:
                self.requests.append(request)
                self._changed.set()
                reply = Reply(reader, writer)
                await self.handle(request, reply)
                if not reply.keep:
                    break
        finally:
            self.open_connections -= 1
            self._changed.set()


async def _read(reader: asyncio.StreamReader) -> Request | None:
    head = await reader.readuntil(b"\r\n\r\n") if not reader.at_eof() else b""
    if not head:
        return None
    first, *lines = head.decode("latin-1").strip().split("\r\n")
    method, path, _ = first.split(" ")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    raw = await reader.readexactly(int(headers.get("content-length", "0")))
    return Request(method, path, headers, json.loads(raw) if raw else None)


@asynccontextmanager
async def plain_server() -> AsyncIterator[int]:
    """The port of a server of plain HTTP that answers whatever is sent first, a TLS handshake too, with 400."""

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        await writer.drain()

    async with listening(refuse) as port:
        yield port
