"""The queue before the language model: few generations at once, some that wait, the rest is told to come back.

Only generations are queued. Retrieval costs milliseconds, and extracts are made of what it found, so the place to
count is the model's own stream: whatever ends an answer closes that stream, and its ``finally`` gives the place back.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from ragpilot.errors import OverloadedError
from ragpilot.ports import ChatModel
from ragpilot.types import Health, ModelIdentity, ModelUsage, Prompt
from server.problems import RETRY_AFTER_SECONDS


@dataclass(slots=True)
class Ticket:
    """Where one request stands: ``changed`` is called whenever ``waiting`` changes."""

    changed: Callable[[], None]
    waiting: bool = False
    admitted_at: float | None = None
    """Time of the event loop when the wait ended; None while it lasts, and for those that never waited."""


_ticket: ContextVar[Ticket | None] = ContextVar("ragpilot_ticket", default=None)


def carry(ticket: Ticket) -> None:
    """Make ``ticket`` that of the current task and of what it calls."""
    _ticket.set(ticket)


class Admission:
    """Lets ``running`` generations through at once and ``waiting`` more wait, first come, first served."""

    def __init__(self, *, running: int, waiting: int) -> None:
        self._places = asyncio.Semaphore(running)
        self._max_waiting = waiting
        self.running = 0
        self.waiting = 0

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """Hold a place. Raises OverloadedError where too many wait already."""
        if self._places.locked():
            await self._queue()
        else:
            await self._places.acquire()
        self.running += 1
        try:
            yield
        finally:
            self.running -= 1
            self._places.release()

    async def _queue(self) -> None:
        if self.waiting >= self._max_waiting:
            raise OverloadedError(
                f"{self.running} answers are being written and {self.waiting} questions wait for theirs; "
                "more are not taken (server.max_running, server.max_waiting).",
                retry_after=RETRY_AFTER_SECONDS,
            )
        ticket = _ticket.get() or Ticket(changed=lambda: None)
        self.waiting += 1
        ticket.waiting = True
        ticket.changed()
        try:
            await self._places.acquire()
        finally:
            self.waiting -= 1
            ticket.waiting = False
            ticket.admitted_at = asyncio.get_running_loop().time()
            ticket.changed()


class QueuedChatModel:
    """A ChatModel whose generations pass through an Admission; one that makes extracts is never kept waiting."""

    def __init__(self, model: ChatModel, admission: Admission) -> None:
        self._model = model
        self._admission = admission

    @property
    def identity(self) -> ModelIdentity:
        """The model's own."""
        return self._model.identity

    @property
    def context_window(self) -> int:
        """The model's own."""
        return self._model.context_window

    async def stream(
        self,
        prompt: Prompt,
        *,
        temperature: float,
        max_tokens: int,
        report: Callable[[ModelUsage], None] | None = None,
    ) -> AsyncGenerator[str, None]:
        """The model's pieces, once a place is free. Raises OverloadedError, and what the model raises."""
        async with AsyncExitStack() as held:
            if not self._model.identity.extract:
                await held.enter_async_context(self._admission.place())
            pieces = self._model.stream(prompt, temperature=temperature, max_tokens=max_tokens, report=report)
            if isinstance(pieces, AsyncGenerator):
                await held.enter_async_context(aclosing(pieces))
            async for piece in pieces:
                yield piece

    async def check(self) -> Health:
        """The model's own."""
        return await self._model.check()

    async def aclose(self) -> None:
        """Free what the model holds."""
        await self._model.aclose()
