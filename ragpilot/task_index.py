"""The index of a folder, opened for as long as somebody asks it: what the facade for planners does without a server.

Whoever asks at the same time, in the same event loop, shares one opened application: it takes most of a second to open,
and only one process at a time may hold an embedded store.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Final, Protocol
from weakref import WeakKeyDictionary

from ragpilot.config import Environment
from ragpilot.runtime import OwnerLock
from ragpilot.searching import SearchService


class Composed(Protocol):
    """An application, as far as it is asked here."""

    @property
    def searcher(self) -> SearchService:
        """Searches without an answer."""
        ...

    async def put_grants_in_force(self) -> None:
        """Have every document readable by whom the configuration says."""
        ...


Build = Callable[[Environment], AbstractAsyncContextManager[Composed]]

_OPENED: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, list[_Opened]]] = WeakKeyDictionary()


@asynccontextmanager
async def opened_index(environment: Environment, build: Build) -> AsyncIterator[SearchService]:
    """The search of the index of ``environment``, composed by ``build``; the last one out closes it.

    Raises StoreInUseError where another process, or another event loop, holds it, and whatever opening it raises.
    """
    shared = _OPENED.setdefault(asyncio.get_running_loop(), [])
    one = next((opened for opened in shared if opened.environment == environment), None)
    if one is None:
        one = _Opened(environment, build)
        shared.append(one)
    one.users += 1
    try:
        yield await asyncio.shield(one.searcher)
    finally:
        one.users -= 1
        if not one.users:
            # Off the list at once: who comes now opens it anew, behind this one.
            shared.remove(one)
            await one.aclose()


class _Opened:
    """An application in a task of its own, which is there before its first user and after its last."""

    def __init__(self, environment: Environment, build: Build) -> None:
        self.environment = environment
        self._build = build
        self.users = 0
        self.searcher: asyncio.Future[SearchService] = asyncio.get_running_loop().create_future()
        self._unused = asyncio.Event()
        self._task = asyncio.create_task(self._run())

    async def aclose(self) -> None:
        """Close it, or give up opening it."""
        self._unused.set()
        if not self.searcher.done():
            self._task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.shield(self._task)

    async def _run(self) -> None:
        try:
            async with _owned(self.environment), self._build(self.environment) as application:
                await application.put_grants_in_force()
                self.searcher.set_result(application.searcher)
                await self._unused.wait()
        except Exception as error:
            if self.searcher.done():
                # It was answered from, and fails to close: that goes to whoever leaves last.
                raise
            # Whoever waits for it is told, and where nobody does any more, nothing is to be said.
            self.searcher.set_exception(error)
            self.searcher.exception()
        finally:
            self.searcher.cancel()


@asynccontextmanager
async def _owned(environment: Environment) -> AsyncIterator[None]:
    """The right to open the embedded store; nothing where the store is a server. Raises StoreInUseError."""
    if environment.settings.store.kind != "embedded":
        yield
        return
    lock = OwnerLock(environment.state, "ask")
    taking = asyncio.ensure_future(asyncio.to_thread(lock.acquire))
    try:
        await asyncio.shield(taking)
        yield
    finally:
        # Where this was cancelled while the thread still tries: what it gets is given back.
        await asyncio.wait({taking})
        taking.exception()
        lock.release()
