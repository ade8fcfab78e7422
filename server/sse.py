"""Server-sent events: an iterator of events to frames, with keep-alives, limits, and an end that always comes.

The iterator runs in a task of its own. It is never cancelled by a keep-alive that is due, its context does not change
between two events, and when the response ends, for whatever reason, it is closed: the model stops with its reader.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from typing import Generic, NoReturn, TypeVar

from quart import Response

from ragpilot.config import ChatSettings
from ragpilot.errors import ChatModelTimeoutError, RagPilotError
from ragpilot.events import AnswerEvent, Done, Failed, event_to_wire
from ragpilot.logs import log_unexpected
from ragpilot.types import IngestProgress, IngestReport
from server.admission import Ticket, carry
from server.lifecycle import Lifecycle
from server.problems import SHUTTING_DOWN, UNEXPECTED, ProblemError, from_code, from_error

logger = logging.getLogger(__name__)

CONTENT_TYPE = "text/event-stream"
KEEP_ALIVE = b": keep-alive\n\n"
QUEUED = b": queued\n\n"
BUFFERED_EVENTS = 64
"""How far the model may run ahead of its reader."""
CLOSE_SECONDS = 5.0

WireEvent = AnswerEvent | IngestProgress | IngestReport
E = TypeVar("E", bound=WireEvent)


@dataclass(frozen=True, slots=True)
class Limits:
    """How long an answer may take, in seconds; waiting for a place in the queue does not count."""

    first: float
    idle: float
    total: float

    @classmethod
    def of(cls, settings: ChatSettings) -> Limits:
        """Those of ``[chat]``."""
        return cls(settings.first_token_seconds, settings.idle_seconds, settings.total_seconds)


class EventStream(Generic[E]):
    """One stream of events on its way to one client: it starts at once, and ``aclose`` must be called in the end."""

    def __init__(
        self,
        events: AsyncIterator[E],
        *,
        request_id: str,
        lifecycle: Lifecycle,
        keep_alive: float,
        limits: Limits | None = None,
    ) -> None:
        self._events = events
        self._request_id = request_id
        self._lifecycle = lifecycle
        self._keep_alive = keep_alive
        self._limits = limits
        self._wake = asyncio.Event()
        self._ticket = Ticket(changed=self._wake.set)
        self._buffer: deque[E] = deque()
        self._room = asyncio.Semaphore(BUFFERED_EVENTS)
        self._started = self._last = asyncio.get_running_loop().time()
        self._any = False
        self._complete = False
        self._task = asyncio.create_task(self._pump())
        self._task.add_done_callback(lambda _: self._wake.set())

    async def begin(self) -> None:
        """Wait until it is known how the stream begins: with the first event, or late.

        What goes wrong before the first event is raised, so that it can still become a status; so is a failure that
        comes as the first event. Returns without an event once a keep-alive is due or the answer waits in the queue.
        """
        if not await self._news(self._keep_alive, or_queued=True):
            return
        if not self._buffer:
            self._raise_end()
        first = self._buffer[0]
        if isinstance(first, Failed):
            raise ProblemError(from_code(first.code, first.message))

    async def next(self) -> E | None:
        """The next event; None when a keep-alive is due. Raises what ended the stream before its last event."""
        self._check_limits(only_total=bool(self._buffer))
        if not await self._news(self._keep_alive):
            return None
        if not self._buffer:
            self._raise_end()
        event = self._buffer.popleft()
        self._room.release()
        self._any = True
        self._last = asyncio.get_running_loop().time()
        self._complete = isinstance(event, Done | Failed | IngestReport)
        return event

    async def frames(self) -> AsyncIterator[bytes]:
        """The stream as bytes: a frame an event, a comment where none comes, an ``error`` event where it breaks."""
        while not self._complete:
            try:
                event = await self.next()
                yield (QUEUED if self._ticket.waiting else KEEP_ALIVE) if event is None else frame(event)
            except ProblemError as error:
                yield frame(Failed(error.problem.code, error.problem.detail, self._request_id))
                return
            except RagPilotError as error:
                problem = from_error(error)
                yield frame(Failed(error.code, problem.detail, self._request_id))
                return
            except Exception as error:  # noqa: BLE001 - the response has begun: the reader must learn that it ended
                log_unexpected(logger, error, self._request_id)
                yield frame(Failed(UNEXPECTED.code, UNEXPECTED.detail, self._request_id))
                return
            # An iterator that never suspends would keep the loop from noticing that the client has left.
            await asyncio.sleep(0)

    async def aclose(self) -> None:
        """Close the iterator and wait for its end. Idempotent."""
        if self._complete:
            # What stands behind the last event is the iterator's own tidying: it is left a moment for it.
            await asyncio.wait({self._task}, timeout=1.0)
        self._task.cancel()
        await asyncio.wait({self._task}, timeout=CLOSE_SECONDS)
        if not self._task.done():
            logger.error("request %s: its events could not be closed", self._request_id)
        elif not self._task.cancelled() and (error := self._task.exception()) and not isinstance(error, RagPilotError):
            logger.debug("request %s: %s at the close", self._request_id, type(error).__name__)

    async def _pump(self) -> None:
        carry(self._ticket)
        try:
            async for event in self._events:
                await self._room.acquire()
                self._buffer.append(event)
                self._wake.set()
        finally:
            # Cancelling whoever reads a generator does not close the generator.
            if isinstance(self._events, AsyncGenerator):
                await self._events.aclose()

    async def _news(self, seconds: float, *, or_queued: bool = False) -> bool:
        """Whether an event, or the end, is there within ``seconds``. Raises at a broken limit and at the shutdown."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        with self._lifecycle.listener(self._wake.set):
            while True:
                if self._lifecycle.ending:
                    raise ProblemError(SHUTTING_DOWN)
                if self._buffer or self._task.done():
                    return True
                if or_queued and self._ticket.waiting:
                    return False
                if loop.time() >= until:
                    return False
                limit = self._check_limits()
                self._wake.clear()
                try:
                    async with asyncio.timeout_at(min(until, limit)):
                        await self._wake.wait()
                except TimeoutError:
                    continue

    def _check_limits(self, *, only_total: bool = False) -> float:
        """When the next limit is due, on the loop's clock. Raises ChatModelTimeoutError at one that is past."""
        if self._limits is None or self._ticket.waiting:
            return float("inf")
        began = self._ticket.admitted_at or self._started
        bounds = [(began + self._limits.total, f"The answer took longer than {self._limits.total:g} s", "total")]
        if not only_total and self._any:
            silence = f"The model was silent for {self._limits.idle:g} s"
            bounds.append((max(began, self._last) + self._limits.idle, silence, "idle"))
        elif not only_total:
            silence = f"The model's first token did not come within {self._limits.first:g} s"
            bounds.append((began + self._limits.first, silence, "first_token"))
        due, words, name = min(bounds)
        if asyncio.get_running_loop().time() >= due:
            raise ChatModelTimeoutError(f"{words} (chat.{name}_seconds).")
        return due

    def _raise_end(self) -> NoReturn:
        """Raise what ended the iterator before its last event."""
        self._task.result()
        raise RuntimeError("The events ended without a last one.")


def frame(event: WireEvent) -> bytes:
    """An event as it goes over the wire: its name, one line of ASCII JSON, an empty line."""
    name, data = event_to_wire(event)
    return f"event: {name}\ndata: {data}\n\n".encode("ascii")


def respond(stream: EventStream[E]) -> Response:
    """The streaming response of ``stream``, which has begun."""
    response = Response(stream.frames(), content_type=CONTENT_TYPE)
    response.headers["Cache-Control"] = "no-cache, no-transform"
    response.headers["X-Accel-Buffering"] = "no"
    # Quart would end the response without a word after RESPONSE_TIMEOUT. The limits above end a silent model, and
    # the guard ends a response whose reader has stalled.
    response.timeout = None
    return response
