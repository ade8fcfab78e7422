"""The life of a running server: open requests, the time since the last one, and the order to stop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Lifecycle:
    """Counts open requests and passes the order to stop on to those that stream.

    Stopping has two steps, so that an answer that is nearly there still arrives: first no new request is taken
    (``draining``), then, after a moment's grace, open streams are told to end (``ending``).
    """

    def __init__(self) -> None:
        self.open_requests = 0
        self.draining = False
        self.ending = False
        self._last_activity = time.monotonic()
        self._listeners: set[Callable[[], None]] = set()
        self._none_open = asyncio.Event()
        self._none_open.set()

    @contextmanager
    def request(self) -> Iterator[None]:
        """Counts one request, from its first byte to the last of its response."""
        self.open_requests += 1
        self._none_open.clear()
        try:
            yield
        finally:
            self.open_requests -= 1
            self.touch()
            if not self.open_requests:
                self._none_open.set()

    def touch(self) -> None:
        """Note that something happened just now."""
        self._last_activity = time.monotonic()

    def idle_seconds(self) -> float:
        """Seconds since the last request ended; 0.0 while one is open."""
        return 0.0 if self.open_requests else time.monotonic() - self._last_activity

    @contextmanager
    def listener(self, tell: Callable[[], None]) -> Iterator[None]:
        """Has ``tell`` called when streams are to end."""
        self._listeners.add(tell)
        try:
            yield
        finally:
            self._listeners.discard(tell)

    async def drain(self, *, grace: float, limit: float) -> None:
        """Take nothing new, wait ``grace`` seconds for open requests, end their streams, wait ``limit`` more."""
        self.draining = True
        if not await self._wait(grace):
            self.ending = True
            for tell in tuple(self._listeners):
                tell()
            await self._wait(limit)

    async def _wait(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._none_open.wait()
        except TimeoutError:
            return False
        return True
