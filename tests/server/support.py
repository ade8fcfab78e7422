"""A server over fakes: the real services on a store in memory, scripted runs of ingestion, sockets where needed."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ragpilot.answering import AskService
from ragpilot.config import ActorSettings, CorpusSettings, GrantSettings, RetrievalSettings, ServerSettings, Settings
from ragpilot.ports import ChatModel
from ragpilot.types import Actor, IngestProgress, IngestReport
from server.admission import Admission, QueuedChatModel
from server.app import Server, create_app
from server.listener import Listener
from server.run import serve_app
from tests.builders import chunk
from tests.corpus import Corpus
from tests.fakes import MemoryStore, ScriptedChatModel

LOCAL_TOKEN = "local-token"
TOKENS = {"ann": "token-of-ann", "bob": "token-of-bob", "olga": "token-of-olga"}
ORIGIN = "http://localhost:4200"

BUDGET = chunk("core/prompting.py", "the context budget is enforced here", header="context budget", symbol="fill")
RETRY = chunk("net/retry.py", "sleep longer each time", header="retry backoff")
BOBS = chunk("bob/diary.md", "the secret diary", header="secret diary", readers=frozenset({"user:bob"}))

PROGRESS = IngestProgress("chunks", 1, 2, 1, 3, 100.0, 1.5, "Cut anew.")
REPORT = IngestReport("default", "complete", 1, 0, 0, 0, 3, 3, (), (), 0.5, 0.2, notes=("Cut anew.",))


async def _either(gate: asyncio.Semaphore, leave: asyncio.Event | None) -> None:
    waiting: list[asyncio.Task[Any]] = [asyncio.create_task(gate.acquire())]
    if leave is not None:
        waiting.append(asyncio.create_task(leave.wait()))
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in waiting:
            task.cancel()


@dataclass
class ScriptedIngestion:
    """Runs that give ``events``; ``gate``, when given, is awaited before each event after the first, or ``leave``."""

    events: Sequence[IngestProgress | IngestReport] = (PROGRESS, REPORT)
    failure: Exception | None = None
    gate: asyncio.Semaphore | None = None
    fill_gate: asyncio.Event | None = None
    runs: list[tuple[Actor, str, Path | None, bool, bool]] = field(default_factory=list)
    with_headers: list[bool] = field(default_factory=list)
    fills: list[tuple[Actor, str]] = field(default_factory=list)
    granted: list[tuple[Actor, str]] = field(default_factory=list)
    """Calls of ``apply_grants``."""
    indexed: Sequence[str] = ()
    """Names of files that are indexed, whether or not they are there."""
    ended: int = 0
    fills_ended: int = 0

    async def run(
        self,
        actor: Actor,
        corpus: CorpusSettings,
        *,
        path: Path | None = None,
        rebuild: bool = False,
        headers: bool = True,
        bodies: bool = True,
        leave: asyncio.Event | None = None,
    ) -> AsyncGenerator[IngestProgress | IngestReport, None]:
        self.runs.append((actor, corpus.name, path, rebuild, bodies))
        self.with_headers.append(headers)
        try:
            if self.failure:
                raise self.failure
            for at, event in enumerate(self.events):
                if self.gate and at:
                    await _either(self.gate, leave)
                yield event
        finally:
            self.ended += 1

    async def fill(self, actor: Actor, corpus_name: str) -> AsyncGenerator[IngestProgress | IngestReport, None]:
        self.fills.append((actor, corpus_name))
        try:
            if self.fill_gate:
                await self.fill_gate.wait()
            yield REPORT
        finally:
            self.fills_ended += 1

    def holds(self, actor: Actor, corpus: CorpusSettings, path: Path) -> bool:
        return path.name in self.indexed

    async def apply_grants(self, actor: Actor, corpus: CorpusSettings) -> int:
        self.granted.append((actor, corpus.name))
        return 1


class Stand(Corpus):
    """Everything that ``create_app`` needs, with the generations of its chat model queued as in a real server."""

    def __init__(
        self,
        *,
        chat: ChatModel | None = None,
        settings: Settings | None = None,
        store: MemoryStore | None = None,
        ingestion: ScriptedIngestion | None = None,
        files: dict[str, Path] | None = None,
    ) -> None:
        super().__init__(chat=chat or ScriptedChatModel(), settings=settings, store=store, files=files)
        limits = self.settings.server
        self.admission = Admission(running=limits.max_running, waiting=limits.max_waiting)
        queued = QueuedChatModel(self.chat, self.admission)
        self.asker = AskService(self.retriever, queued, self.counter, self.settings, self.freshness)
        self.ingestion = ingestion or ScriptedIngestion()

    async def app(self, **given: Any) -> Server:
        """The application over a small indexed corpus."""
        await self.index([BUDGET, RETRY, BOBS])
        return create_app(self, local_token=LOCAL_TOKEN, **given)


def settings_of(**sections: Any) -> Settings:
    """Settings whose gate is off, with these sections."""
    return Settings(retrieval=RetrievalSettings(gate="off"), **sections)


def with_actors() -> Settings:
    """Ann may ask, Bob may ask and reads his own, Olga may also index."""
    return settings_of(
        corpora=[CorpusSettings(grants=[GrantSettings(paths=["bob/**"], readers=["user:bob"])])],
        actors=[
            ActorSettings(name="ann", principals=["team:everyone"], tokens=[_hash("ann")]),
            ActorSettings(name="bob", principals=["user:bob"], tokens=[_hash("bob")]),
            ActorSettings(
                name="olga", principals=["team:everyone"], permissions=["ask", "ingest"], tokens=[_hash("olga")]
            ),
        ],
    )


def _hash(name: str) -> str:
    return hashlib.sha256(TOKENS[name].encode()).hexdigest()


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def events_of(body: bytes) -> list[tuple[str, Any]]:
    """The events of a stream's text, comments passed over, exactly as the specification splits them."""
    found = []
    for block in body.decode("utf-8").split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.split("\n") if line and not line.startswith(":"))
        if fields:
            found.append((fields["event"], json.loads(fields["data"])))
    return found


def answer_of(events: list[tuple[str, Any]]) -> str:
    return "".join(data["text"] for name, data in events if name == "token")


@dataclass
class Response:
    """What came back over a socket: head, body without its chunked coding, and whether the end was clean."""

    status: int
    headers: dict[str, str]
    body: bytes
    complete: bool = True


class Connection:
    """One HTTP/1.1 connection, written by hand so that a test decides when a byte is read and when it leaves."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.head = b""

    @classmethod
    async def open(cls, port: int, **given: Any) -> Connection:
        return cls(*await asyncio.open_connection("127.0.0.1", port, **given))

    async def send(
        self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> None:
        given = {"Host": "localhost", **(headers or {})}
        if body is not None:
            given = {"Content-Type": "application/json", "Content-Length": str(len(body)), **given}
        lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items())]
        self.writer.write("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + (body or b""))
        await self.writer.drain()

    async def ask(self, question: str = "context budget", **headers: str) -> None:
        await self.send("POST", "/ask", json.dumps({"question": question}).encode(), headers)

    async def read_head(self) -> tuple[int, dict[str, str]]:
        async with asyncio.timeout(10):
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.strip().split("\r\n")
        pairs = [line.split(": ", 1) for line in lines]
        return int(first.split(" ")[1]), {name.lower(): value for name, value in pairs}

    async def read_chunk(self) -> bytes:
        """One chunk of a chunked body; empty at its end."""
        async with asyncio.timeout(10):
            size = int(await self.reader.readuntil(b"\r\n"), 16)
            data = await self.reader.readexactly(size + 2)
        return data[:-2]

    async def read(self) -> Response:
        """The whole response."""
        status, headers = await self.read_head()
        if status == 204:
            return Response(status, headers, b"")
        async with asyncio.timeout(10):
            if "content-length" in headers:
                return Response(status, headers, await self.reader.readexactly(int(headers["content-length"])))
        body = b""
        try:
            while piece := await self.read_chunk():
                body += piece
        except asyncio.IncompleteReadError:
            return Response(status, headers, body, complete=False)
        return Response(status, headers, body)

    async def rest(self) -> bytes:
        """What is left of a chunked body."""
        body = b""
        while piece := await self.read_chunk():
            body += piece
        return body

    async def close(self) -> None:
        self.writer.close()
        await asyncio.sleep(0)


@dataclass
class Running:
    """A server on a socket."""

    app: Server
    port: int
    stop: asyncio.Event
    task: asyncio.Task[None]
    connections: list[Connection] = field(default_factory=list)

    async def connect(self, **given: Any) -> Connection:
        """A connection that is closed with the server at the latest."""
        self.connections.append(await Connection.open(self.port, **given))
        return self.connections[-1]

    async def call(
        self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> Response:
        connection = await self.connect()
        await connection.send(method, path, body, headers)
        response = await connection.read()
        await connection.close()
        return response


@asynccontextmanager
async def running(app: Server, *, idle_exit: float | None = None) -> AsyncIterator[Running]:
    """``app`` under Hypercorn on a free port of loopback, until the block ends."""
    listener = Listener.bound("127.0.0.1", 0)
    port = int(listener.address.rpartition(":")[2])
    stop = asyncio.Event()
    task = asyncio.create_task(serve_app(app, listener, stop, idle_exit=idle_exit))
    server = Running(app, port, stop, task)
    try:
        yield server
    finally:
        stop.set()
        async with asyncio.timeout(10):
            await task
            for connection in server.connections:
                connection.writer.transport.abort()
                with suppress(OSError):
                    await connection.writer.wait_closed()


async def until(condition: Any, *, seconds: float = 5.0) -> None:
    """Wait until ``condition()`` holds, giving the loop its turns; fails when it does not come true in time."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - what is waited for has no event to tell of it
            await asyncio.sleep(0.005)


def server_settings(**given: Any) -> Settings:
    return settings_of(server=ServerSettings(**given))
