"""Calls on their way to the owner process.

They come from any event loop and wait in one queue. A thread takes them out, writes that stand behind each other
together, and replaces the process when it dies. So no event loop ever blocks on a pipe, and whoever writes many
documents at once pays for few flushes.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from ragpilot.adapters.edge_collections import Collections
from ragpilot.adapters.edge_owner import Reply, Work
from ragpilot.adapters.edge_process import Limits, OwnerDiedError, OwnerProcess
from ragpilot.adapters.edge_room import shortage, unreadable
from ragpilot.disk import free_bytes
from ragpilot.errors import StoreUnavailableError

_P = ParamSpec("_P")
_T = TypeVar("_T")

WRITES_TOGETHER = 64
"""Writes that share a flush; more would make the reads behind them wait."""


@dataclass(frozen=True)
class _Call:
    work: Work
    is_write: bool
    result: Future[Any]


class CallQueue:
    """Runs functions of ``edge_reads`` and ``edge_writes`` in the owner process of the store in ``root``.

    Each of them may be done twice: when the process dies under a call, the call is made once more in a new one.
    """

    def __init__(self, root: Path, limits: Limits) -> None:
        self._root = root
        self._limits = limits
        self._waiting: deque[_Call] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._abandoned = False
        self._owner: OwnerProcess | None = None
        self._courier: threading.Thread | None = None

    @property
    def owner_pid(self) -> int | None:
        """The owner process's id; None while none runs."""
        owner = self._owner
        return owner.pid if owner else None

    def read(
        self, work: Callable[Concatenate[Collections, _P], _T], /, *args: _P.args, **kwargs: _P.kwargs
    ) -> Future[_T]:
        """Queue a read. The future gets its value, or a RagPilotError."""
        return self._submit((work, args, kwargs), is_write=False)

    def write(
        self, work: Callable[Concatenate[Collections, _P], _T], /, *args: _P.args, **kwargs: _P.kwargs
    ) -> Future[_T]:
        """Queue a write. Once the future has its value, the write is on disk."""
        return self._submit((work, args, kwargs), is_write=True)

    def close(self) -> None:
        """Serve what waits, flush, and end the process; past the limit, end it anyhow. Idempotent, for any thread."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            courier = self._courier
        if courier is None:
            return
        courier.join(self._limits.close)
        if courier.is_alive():
            self._abandoned = True
            if owner := self._owner:
                owner.kill()
            courier.join()

    def _submit(self, work: Work, *, is_write: bool) -> Future[Any]:
        call = _Call(work, is_write, Future())
        with self._changed:
            if self._closed:
                raise StoreUnavailableError("The store is closed.")
            if self._courier is None:
                self._courier = threading.Thread(target=self._serve, name="store-calls", daemon=True)
                self._courier.start()
            self._waiting.append(call)
            self._changed.notify_all()
        return call.result

    def _serve(self) -> None:
        while batch := self._take():
            if wanted := [call for call in batch if call.result.set_running_or_notify_cancel()]:
                self._deliver(wanted)
        self._let_go()

    def _take(self) -> list[_Call]:
        """The next call, with the writes behind it when it is one; nothing once the queue is closed and empty."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closed)
            batch = [self._waiting.popleft()] if self._waiting else []
            while batch and batch[0].is_write and self._waiting and self._waiting[0].is_write:
                if len(batch) == WRITES_TOGETHER:
                    break
                batch.append(self._waiting.popleft())
            return batch

    def _deliver(self, batch: list[_Call]) -> None:
        try:
            replies = self._ask([call.work for call in batch])
        except Exception as error:  # noqa: BLE001 - whatever it is, it belongs to those who wait
            replies = [(False, error)] * len(batch)
        for call, (succeeded, value) in zip(batch, replies, strict=True):
            if succeeded:
                call.result.set_result(value)
            else:
                call.result.set_exception(value)

    def _ask(self, works: list[Work]) -> list[Reply]:
        """The replies of the owner process, of a second one when the first dies."""
        try:
            return self._ask_once(works)
        except OwnerDiedError:
            pass
        try:
            return self._ask_once(works)
        except OwnerDiedError as death:
            if shortage(self._root):
                raise unreadable(self._root, free_bytes(self._root)) from death
            raise StoreUnavailableError(
                f"The store's process {death}.",
                hint=f"Is the disk of {self._root} full, or the memory? If neither, the files may be damaged: "
                "`ragpilot index --rebuild` builds them anew.",
            ) from death

    def _ask_once(self, works: list[Work]) -> list[Reply]:
        if self._abandoned:
            raise StoreUnavailableError("The store was closed before it could answer.")
        try:
            if self._owner is None:
                self._owner = OwnerProcess(self._root, self._limits)
                self._owner.await_ready()
            return self._owner.exchange(works)
        except OSError as error:
            raise StoreUnavailableError(f"The store's process cannot be started: {error}.") from error
        except (OwnerDiedError, StoreUnavailableError):
            self._let_go()
            raise

    def _let_go(self) -> None:
        owner, self._owner = self._owner, None
        if owner is not None:
            owner.end()
