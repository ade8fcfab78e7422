"""Finding the server of a state folder, or starting one that outlives the program which needed it."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ragpilot.actors import command_token
from ragpilot.config import Environment
from ragpilot.errors import ServerUnreachableError, StoreInUseError
from ragpilot.files import private_folder
from ragpilot.runtime import ServerRecord, existing_token, find_server, owner
from tui.backend import Backend

IDLE_EXIT_SECONDS: Final = 600
READY_SECONDS: Final = 60.0
LOG: Final = "server.log"
LOG_MAX_BYTES: Final = 1_000_000
TAIL_LINES: Final = 15


async def connect(environment: Environment, environ: Mapping[str, str], *, indexing: bool = False) -> Backend:
    """The server of this state folder, started where none runs; with ``indexing``, a run of `ragpilot index` will do.

    Raises ServerUnreachableError with the end of the server's log, StoreInUseError where a command holds the index.
    """
    record = await find_server(environment.state, indexing=indexing) or await start(environment, environ)
    local = None if environment.settings.actors else existing_token(environment.state)
    return Backend(record.address, command_token(environ) or local)


async def start(
    environment: Environment, environ: Mapping[str, str], *, ready_seconds: float = READY_SECONDS
) -> ServerRecord:
    """Start a server that leaves after ten idle minutes, and wait until it answers. Raises as ``connect`` does."""
    holder = await asyncio.to_thread(owner, environment.state)
    if holder is not None and holder.role != "serve":
        raise StoreInUseError(f"The index in {environment.state} is in use by {holder}.", hint="Wait until it ends.")
    log = private_folder(environment.state) / LOG
    process = _spawn(environment, environ, log)
    try:
        async with asyncio.timeout(ready_seconds):
            record = await _await_ready(environment.state, process)
    except BaseException as error:
        await asyncio.shield(asyncio.to_thread(_end, process))
        if not isinstance(error, TimeoutError):
            raise
        raise ServerUnreachableError(
            f"The server did not answer within {ready_seconds:g} s.", hint=_tail(log)
        ) from None
    # It outlives this program: nobody here waits for it any more.
    process.returncode = process.poll() or 0
    if record is None:
        raise ServerUnreachableError("The server could not be started.", hint=_tail(log))
    return record


async def _await_ready(state: Path, process: subprocess.Popen[bytes]) -> ServerRecord | None:
    """The server once it answers; None where the child has ended and nobody else's answers either."""
    while process.poll() is None:
        if (record := await find_server(state, wait=0)) is not None:
            return record
        await asyncio.sleep(0.1)
    # Somebody else may have started one at the same moment: then ours has left to theirs.
    return await find_server(state)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(timeout=5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _spawn(environment: Environment, environ: Mapping[str, str], log: Path) -> subprocess.Popen[bytes]:
    # -P: the folder it starts in may be somebody's repository, and must not bring a module named `server`.
    arguments = [sys.executable, "-P", "-m", "server", "--directory", str(environment.directory)]
    arguments += ["--state", str(environment.state), "--idle-exit", str(IDLE_EXIT_SECONDS)]
    if environment.config is not None:
        arguments += ["--config", environment.config]
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
    handle = os.open(log, flags, 0o600)
    try:
        if os.fstat(handle).st_size > LOG_MAX_BYTES:
            os.ftruncate(handle, 0)
        return subprocess.Popen(  # noqa: S603 - our own interpreter and our own module
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=handle,
            stderr=handle,
            cwd=environment.state,
            env={**environ, "PYTHONSAFEPATH": "1"},
            start_new_session=True,
        )
    finally:
        os.close(handle)


def _tail(log: Path) -> str:
    """Where the log is, and how it ends."""
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-TAIL_LINES:]
    except OSError:
        lines = []
    return "\n".join([f"Its log is {log}:", *lines])
