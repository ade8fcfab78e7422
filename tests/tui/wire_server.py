"""A server of raw bytes on a real socket: it answers with exactly what a test wrote down, in the pieces it names."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.protocol.listening import listening

STREAM = "200 OK", "text/event-stream"


@dataclass
class Reply:
    """``pieces`` are written one by one, each flushed and given time to arrive; then the connection closes.

    With ``stay`` the connection is held open instead, until the client closes it.
    """

    pieces: Sequence[bytes]
    status: str = "200 OK"
    kind: str = "application/json"
    headers: Sequence[str] = ()
    stay: bool = False


def as_json(body: Any, status: str = "200 OK") -> Reply:
    return Reply([json.dumps(body).encode()], status)


def problem(status: str, code: str, detail: str, *headers: str, **more: Any) -> Reply:
    body = {"type": f"urn:ragpilot:problem:{code}", "status": int(status[:3]), "code": code, "detail": detail, **more}
    return Reply([json.dumps(body).encode()], status, "application/problem+json", headers)


def stream(*pieces: bytes, stay: bool = False, headers: Sequence[str] = ()) -> Reply:
    return Reply(pieces, *STREAM, headers, stay=stay)


@dataclass
class WireServer:
    """What it was asked, and when its client left."""

    reply: Reply
    url: str = ""
    requests: list[tuple[str, dict[str, str], Any]] = field(default_factory=list)
    client_left: asyncio.Event = field(default_factory=asyncio.Event)

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        first, *lines = head.strip().split("\r\n")
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        self.requests.append((first.rsplit(" ", 1)[0], headers, json.loads(body) if body else None))
        answer = [f"HTTP/1.1 {self.reply.status}", f"Content-Type: {self.reply.kind}", "Connection: close"]
        writer.write("\r\n".join([*answer, *self.reply.headers, "", ""]).encode())
        for piece in self.reply.pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0)  # the client reads this piece before the next one is there
        if self.reply.stay:
            await reader.read()
            self.client_left.set()


@asynccontextmanager
async def serving(reply: Reply) -> AsyncIterator[WireServer]:
    wire = WireServer(reply)
    async with listening(wire.handle) as port:
        wire.url = f"http://127.0.0.1:{port}"
        yield wire
