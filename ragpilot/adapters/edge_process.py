"""One life of the owner process, as its parent sees it: start, exchange, end, each of them bounded."""

from __future__ import annotations

import json
import logging
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, BinaryIO, cast

from ragpilot.adapters.edge_owner import READY, Reply, Work
from ragpilot.errors import StoreUnavailableError

_log = logging.getLogger(__name__)

# The parent's own search path, and no working folder before it (-P): that may be a repository with any module in it.
_BOOT = (
    "import sys, json; sys.path[:] = json.loads(sys.argv[1]); "
    "from ragpilot.adapters.edge_owner import main; main(sys.argv[2])"
)


@dataclass(frozen=True)
class Limits:
    """The longest waits, in seconds. They bound a hang; none is reached in use."""

    start: float = 60.0
    call: float = 120.0
    close: float = 30.0


class OwnerDiedError(Exception):
    """The process ended without an answer; how, stands here as the end of a sentence."""


class OwnerProcess:
    """The process that owns the store in ``root``, from its start to its end. For one thread at a time."""

    def __init__(self, root: Path, limits: Limits) -> None:
        self._limits = limits
        self._printed = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the process runs
        try:
            self._process = subprocess.Popen(  # noqa: S603 - this interpreter, on a module of this package
                [sys.executable, "-P", "-c", _BOOT, json.dumps(sys.path), str(root)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._printed,
                start_new_session=True,
            )
        except OSError:
            self._printed.close()
            raise
        self._requests = cast("BinaryIO", self._process.stdin)
        self._replies = cast("BinaryIO", self._process.stdout)
        self._leaving: SimpleQueue[bytes | None] = SimpleQueue()
        self._arrived: SimpleQueue[Any] = SimpleQueue()
        # A pipe can be neither written nor read with a time limit everywhere; a queue can.
        self._threads = [
            threading.Thread(target=self._write, name="store-requests", daemon=True),
            threading.Thread(target=self._read, name="store-replies", daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def await_ready(self) -> None:
        """Wait until it serves. Raises OwnerDiedError, or StoreUnavailableError past the limit."""
        if self._next(self._limits.start) != READY:
            raise OwnerDiedError("did not start as it should")

    def exchange(self, batch: list[Work]) -> list[Reply]:
        """Send a batch and wait for its replies. Raises OwnerDiedError, or StoreUnavailableError past the limit."""
        self._leaving.put(pickle.dumps(batch, protocol=pickle.HIGHEST_PROTOCOL))
        return cast("list[Reply]", self._next(self._limits.call))

    def kill(self) -> None:
        """End it at once; whoever waits for a reply gets OwnerDiedError. For any thread."""
        self._process.kill()

    def end(self) -> None:
        """Let it flush and leave, and free what it held here."""
        self._leaving.put(None)
        self._await_end()
        for thread in self._threads:
            thread.join()
        self._replies.close()
        self._printed.close()

    def _write(self) -> None:
        try:
            with self._requests:
                while (data := self._leaving.get()) is not None:
                    self._requests.write(data)
                    self._requests.flush()
        except OSError:
            _log.debug("the store's process reads no more; how it ended is told by the end of its replies")

    def _read(self) -> None:
        try:
            while True:
                self._arrived.put(pickle.load(self._replies))  # noqa: S301 - from the process started here
        except (EOFError, OSError, pickle.UnpicklingError):
            self._arrived.put(None)

    def _next(self, limit: float) -> Any:
        try:
            reply = self._arrived.get(timeout=limit)
        except Empty:
            self.kill()
            raise StoreUnavailableError(
                f"The store's process gave no answer within {limit:g} s and was stopped.",
                hint="The next call starts it again.",
            ) from None
        if reply is None:
            status = self._await_end()
            self._printed.seek(0)
            printed = self._printed.read()[-2000:].decode(errors="replace").strip()
            _log.warning("the store's process ended with status %d: %s", status, printed or "it printed nothing")
            raise OwnerDiedError(_in_words(status))
        return reply

    def _await_end(self) -> int:
        try:
            return self._process.wait(self._limits.close)
        except subprocess.TimeoutExpired:
            _log.warning("the store's process did not end within %g s and was killed", self._limits.close)
            self.kill()
            return self._process.wait()


def _in_words(status: int) -> str:
    if status >= 0:
        return f"ended with status {status}"
    try:
        return f"was ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"was ended by signal {-status}"
