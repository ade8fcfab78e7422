"""Where a run stands: counted by the work, told to whoever watches."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import Literal

from ragpilot.types import IngestProgress

Stage = Literal["scan", "chunks", "headers", "bodies"]

INTERVAL = 0.5
"""The longest silence while a run goes on, in seconds."""
_WINDOW = 8.0
"""Seconds over which speed is measured."""


class Progress:
    """Counts. The work calls ``begin`` and ``advance``; the watcher reads ``news`` until it gets None."""

    def __init__(self) -> None:
        self.files = 0
        self.chunks = 0
        self.note = ""
        """What whoever watches should know while the run lasts."""
        self._stage: Stage = "scan"
        self._done = 0
        self._total = 0
        self._samples: deque[tuple[float, int]] = deque([(time.monotonic(), 0)])
        self._news: asyncio.Queue[IngestProgress | None] = asyncio.Queue()

    def begin(self, stage: Stage, total: int) -> None:
        """A stage begins; watchers are told at once."""
        self._stage, self._done, self._total = stage, 0, total
        self._samples = deque([(time.monotonic(), 0)])
        self._news.put_nowait(self.snapshot())

    def advance(self, done: int, total: int | None = None) -> None:
        """``done`` in all of this stage; the total is corrected where it turns out to be another."""
        self._done = done
        self._total = max(done, self._total if total is None else total)
        now = time.monotonic()
        self._samples.append((now, done))
        while len(self._samples) > 2 and self._samples[0][0] < now - _WINDOW:
            self._samples.popleft()

    def end(self) -> None:
        """No more news."""
        self._news.put_nowait(None)

    async def news(self) -> IngestProgress | None:
        """The next change of stage, or where things stand after ``INTERVAL``; None at the end."""
        try:
            async with asyncio.timeout(INTERVAL):
                return await self._news.get()
        except TimeoutError:
            return self.snapshot()

    def snapshot(self) -> IngestProgress:
        """Where the run stands now."""
        first_time, first_done = self._samples[0]
        elapsed = time.monotonic() - first_time
        speed = (self._done - first_done) / elapsed if elapsed > 0 else 0.0
        left = (self._total - self._done) / speed if speed > 0 else None
        counts = (self._stage, self._done, self._total, self.files, self.chunks)
        return IngestProgress(*counts, round(speed, 1), left, self.note)
