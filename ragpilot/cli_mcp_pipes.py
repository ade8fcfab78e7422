"""Standard input and output as the streams of the protocol: one message a line.

A line that is no message is refused with the reason, where the library's own transport would drop it in silence; and
what was asked before standard input ended is still answered, so that a file of calls may be piped in.
"""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any, Final

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import ErrorData, JSONRPCError, JSONRPCMessage, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from ragpilot.errors import InvalidRequestError
from ragpilot.mcp_messages import INVALID_REQUEST, MessageError, read_message

LINE_MAX_BYTES: Final = 4_000_000
"""No call is that long; the rest of such a line is passed over."""
LAST_ANSWERS_SECONDS: Final = 30.0
"""How long what is under way may still take when standard input has ended."""

_READ_BYTES: Final = 65_536
_LINES_AHEAD: Final = 16

Incoming = MemoryObjectReceiveStream[SessionMessage | Exception]
Outgoing = MemoryObjectSendStream[SessionMessage]


def own_standard_streams() -> tuple[int, int]:
    """Descriptors of standard input and output that nothing else has.

    Whatever else reads meets the end at once, and whatever else prints goes to standard error, not between messages.
    Raises InvalidRequestError where one of them is closed.
    """
    try:
        source, sink = os.dup(0), os.dup(1)
    except OSError:
        words = "Agents are served over standard input and output, and one of them is closed."
        raise InvalidRequestError(words, hint="Let the client start it: `ragpilot mcp config`.") from None
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return source, sink


@asynccontextmanager
async def message_streams(source: int, sink: int) -> AsyncIterator[tuple[Incoming, Outgoing]]:
    """The messages that come from the descriptor ``source``, and where those go that leave by ``sink``.

    Raises BrokenPipeError, in a group, where nobody reads any more.
    """
    to_server, incoming = anyio.create_memory_object_stream[SessionMessage | Exception]()
    outgoing, from_server = anyio.create_memory_object_stream[SessionMessage]()
    asked = _Asked()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_read, source, to_server, outgoing.clone(), asked)
        tasks.start_soon(_write, sink, from_server, asked)
        yield incoming, outgoing


class _Asked:
    """The requests that are not answered yet."""

    def __init__(self) -> None:
        self._open: set[str | int] = set()
        self._changed = asyncio.Event()

    def came(self, message: JSONRPCMessage) -> None:
        """A request expects an answer; one that is cancelled gets none."""
        match message:
            case JSONRPCRequest(id=number):
                self._open.add(number)
            case JSONRPCNotification(method="notifications/cancelled", params={"requestId": str() | int() as number}):
                self._settle(number)

    def left(self, message: JSONRPCMessage) -> None:
        """An answer, or an error, settles what it names."""
        if isinstance(message, JSONRPCResponse | JSONRPCError) and message.id is not None:
            self._settle(message.id)

    async def settled(self) -> None:
        """Wait until everything is answered, within bounds."""
        try:
            async with asyncio.timeout(LAST_ANSWERS_SECONDS):
                while self._open:
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            pass

    def _settle(self, number: str | int) -> None:
        self._open.discard(number)
        self._changed.set()


async def _read(
    source: int, to_server: MemoryObjectSendStream[SessionMessage | Exception], refusals: Outgoing, asked: _Asked
) -> None:
    async with to_server, refusals, aclosing(_lines(source)) as lines:
        async for line in lines:
            try:
                message = _message(line)
            except MessageError as error:
                if not error.notification:
                    told = ErrorData(code=error.code, message=error.message)
                    await refusals.send(SessionMessage(JSONRPCError(jsonrpc="2.0", id=error.id, error=told)))
                continue
            asked.came(message)
            await to_server.send(SessionMessage(message))
        await asked.settled()


async def _write(sink: int, from_server: MemoryObjectReceiveStream[SessionMessage], asked: _Asked) -> None:
    async with from_server:
        async for item in from_server:
            # ASCII: what was indexed may hold what UTF-8 cannot.
            line = json.dumps(item.message.model_dump(mode="json", by_alias=True, exclude_unset=True)).encode() + b"\n"
            await asyncio.to_thread(_write_all, sink, line)
            asked.left(item.message)


def _message(line: bytes) -> JSONRPCMessage:
    """Raises MessageError."""
    if len(line) > LINE_MAX_BYTES:
        raise MessageError(INVALID_REQUEST, f"A message may have at most {LINE_MAX_BYTES:,} bytes.")
    data: dict[str, Any] = read_message(line)
    kind = next(
        kind
        for name, kind in (
            ("method", JSONRPCRequest if "id" in data else JSONRPCNotification),
            ("result", JSONRPCResponse),
            ("error", JSONRPCError),
        )
        if name in data
    )
    return kind.model_validate({"id": None, **data} if kind is JSONRPCError else data)


async def _lines(source: int) -> AsyncGenerator[bytes, None]:
    """Lines that hold something, until the end. A line past LINE_MAX_BYTES comes cut just behind them."""
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[bytes | None] = asyncio.Queue()
    room = threading.Semaphore(_LINES_AHEAD)

    def put(line: bytes | None) -> None:
        room.acquire()
        loop.call_soon_threadsafe(lines.put_nowait, line)

    # A thread of its own, that no exit waits for: a read of standard input cannot be interrupted.
    threading.Thread(target=_pump, args=(source, put), name="stdin", daemon=True).start()
    try:
        while (line := await lines.get()) is not None:
            room.release()
            if line.strip():
                yield line
    finally:
        room.release()


def _pump(source: int, put: Callable[[bytes | None], None]) -> None:
    rest = bytearray()
    # A RuntimeError is a loop that has been closed: nobody waits for lines any more.
    with suppress(RuntimeError):
        try:
            while piece := os.read(source, _READ_BYTES):
                *whole, last = piece.split(b"\n")
                for end in whole:
                    put(bytes(rest + end)[: LINE_MAX_BYTES + 1])
                    rest.clear()
                if len(rest) <= LINE_MAX_BYTES:
                    rest += last
            put(bytes(rest))
        except OSError:
            # Standard input broke off, which ends it like any other end.
            pass
        put(None)


def _write_all(sink: int, line: bytes) -> None:
    while line:
        line = line[os.write(sink, line) :]
