"""Starting, watching and ending the process that runs a GGUF model."""

from __future__ import annotations

import asyncio
import json
import secrets
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ragpilot.adapters.http import plain
from ragpilot.errors import ChatModelUnavailableError

# The parent's own search path, and no working folder before it (-P): that may be a repository with any module in it.
_BOOT = (
    "import sys, json; sys.path[:] = json.loads(sys.argv[1]); from ragpilot.adapters.llamacpp_child import main; main()"
)

END_SECONDS = 5.0
MOMENT_SECONDS = 1.0
LOG_BYTES = 2000


@dataclass(frozen=True, slots=True)
class Served:
    """Where the model is served, and the key without which nobody is answered."""

    url: str
    key: str


class LlamaCppProcess:
    """One process from its start to its end. Its parent's death ends it, too."""

    def __init__(self, process: asyncio.subprocess.Process, log: tempfile._TemporaryFileWrapper[bytes]) -> None:
        self._process = process
        self._log = log

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self._process.returncode is None

    @property
    def pid(self) -> int:
        """Its process id, for diagnosis."""
        return self._process.pid

    @classmethod
    async def start(
        cls, path: Path, *, name: str, context_window: int, threads: int | None
    ) -> tuple[LlamaCppProcess, Served]:
        """Start it and wait until the model is loaded. Cancelling ends the process.

        Raises:
            ChatModelUnavailableError: The model cannot be loaded.
        """
        log = tempfile.NamedTemporaryFile()  # noqa: SIM115 -- open as long as the process runs
        started = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            "-c",
            _BOOT,
            json.dumps(sys.path),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=log,
        )
        process = cls(started, log)
        key = secrets.token_urlsafe(24)
        order = {"path": str(path), "name": name, "context_window": context_window, "threads": threads, "key": key}
        try:
            answer = await process._exchange(order)
        except BaseException:
            # While it loads it hears nothing.
            process.kill()
            await process.end()
            raise
        if "url" not in answer:
            why = answer.get("error") or process.last_words()
            await process.end()
            raise ChatModelUnavailableError(
                f"The model {path} cannot be loaded: {plain(str(why))}.",
                hint="Is it a whole GGUF file of a language model, and is there memory for it?",
            )
        return process, Served(answer["url"], key)

    async def _exchange(self, order: dict[str, object]) -> dict[str, str]:
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None:
            raise RuntimeError("the process was started without pipes")
        try:
            stdin.write(json.dumps(order).encode() + b"\n")
            await stdin.drain()
            line = await stdout.readline()
        except (ConnectionError, OSError):
            line = b""
        return dict(json.loads(line)) if line else {}

    async def ended(self) -> bool:
        """Whether it has ended, or does so within a moment: its connections break before the system says so."""
        try:
            async with asyncio.timeout(MOMENT_SECONDS):
                await self._process.wait()
        except TimeoutError:
            return False
        return True

    def last_words(self) -> str:
        """How it ended, and what it printed last."""
        self._log.seek(0)
        printed = self._log.read()[-LOG_BYTES:].decode("utf-8", "replace").strip()
        code = self._process.returncode
        ended = f"its process was killed by signal {-code}" if code is not None and code < 0 else "its process ended"
        lines = [line for line in printed.splitlines() if line.strip()]
        return f"{ended}; it printed: {lines[-1]}" if lines else ended

    def kill(self) -> None:
        """End it at once, whatever it does."""
        if self.running:
            self._process.kill()

    async def end(self) -> None:
        """Ask it to end, then make it. Idempotent."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            async with asyncio.timeout(END_SECONDS):
                await self._process.wait()
        except TimeoutError:
            self.kill()
            await self._process.wait()
        finally:
            self.kill()  # if this was cancelled
            self._log.close()
