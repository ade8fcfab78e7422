"""The state folder at run time: who owns the embedded store, which server runs, and the local token.

Everything here holds between processes of one user. Whether an owner is alive is told by its lock, which the
system releases with the process; the records beside it only say who it is.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import os
import re
import secrets
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import httpx
from filelock import FileLock, Timeout

from ragpilot.errors import ServerUnreachableError, StateError, StateFullError, StoreInUseError
from ragpilot.files import create_private, private_folder, read_private, write_private

Role = Literal["serve", "index", "ask"]

OWNER_LOCK = "owner.lock"
OWNER_RECORD = "owner.json"
SERVER_RECORD = "server.json"
TOKEN = "token"  # noqa: S105 - the name of a file, not a token

IN_USE_HINT = "Wait until it ends; beside a running `ragpilot serve`, commands share the index."

ANSWER_SECONDS = 6.0
"""How long a server may take to say that it is there: its first check of health loads the embedder."""

NOTICE_SECONDS = 30.0
"""How long a server may take to look at its configuration and to begin to apply what has changed."""

SHARED_SECONDS = 5.0
"""How long a run of `ragpilot index` may take until it says where it can be asked."""

LOCK_SECONDS = 0.5
"""How long a free lock may seem taken: ``owner`` holds it for an instant to find out that it is free."""

_NOT_WRITABLE = (errno.EACCES, errno.EPERM, errno.EROFS)


@dataclass(frozen=True, slots=True)
class Owner:
    """The process that holds the owner lock, as it describes itself."""

    pid: int
    role: Role
    started: str
    """RFC 3339, UTC."""
    address: str | None = None
    """Where a server listens: ``http://127.0.0.1:5200``; None for commands."""

    def __str__(self) -> str:
        if not self.pid:
            return "a process that is just starting"
        where = f" at {self.address}" if self.address and self.role == "serve" else ""
        return f"`ragpilot {self.role}`{where} (process {self.pid}, since {self.started})"


@dataclass(frozen=True, slots=True)
class ServerRecord:
    """The running server of a state folder."""

    address: str
    pid: int
    started: str
    idle_exit: float | None = None
    """After how many idle seconds it leaves, and its address with it; None: it stays."""


class OwnerLock:
    """The right to open the embedded store of a state folder; one process at a time.

    Use as a context manager, around everything that touches the store. A server holds it whatever its store is,
    so that a state folder has one server.
    """

    def __init__(self, state: Path, role: Role) -> None:
        self._state = state
        self._owner = Owner(os.getpid(), role, _now())
        self._lock = FileLock(state / OWNER_LOCK, mode=0o600, thread_local=False)

    def acquire(self) -> Self:
        """Take the lock, making the state folder. Raises StoreInUseError, which says who holds it; StateError."""
        private_folder(self._state)
        try:
            self._lock.acquire(timeout=LOCK_SECONDS, poll_interval=0.02)
        except Timeout:
            holder = _owner_record(self._state) or "another process"
            hint = _served(self._state, holder) if isinstance(holder, Owner) and holder.pid else IN_USE_HINT
            raise StoreInUseError(f"The index in {self._state} is in use by {holder}.", hint=hint) from None
        except OSError as error:
            if error.errno in _NOT_WRITABLE:
                raise _not_writable(self._state, os.strerror(error.errno)) from None
            raise StateError(f"The lock {self._lock.lock_file} cannot be taken: {error}.") from None
        self._write()
        return self

    def announce(self, address: str) -> None:
        """Add the address at which this owner listens to its record."""
        self._owner = replace(self._owner, address=address)
        self._write()

    def release(self) -> None:
        """Remove the record, then let go. Idempotent."""
        if self._lock.is_locked:
            (self._state / OWNER_RECORD).unlink(missing_ok=True)
            self._lock.release()

    def _write(self) -> None:
        try:
            write_private(self._state / OWNER_RECORD, json.dumps(asdict(self._owner)).encode())
        except StateFullError:
            # The lock is what counts. On a full disk the owner is one that nobody can name, and not the one before it.
            if _read_record(self._state / OWNER_RECORD).get("pid") != self._owner.pid:
                (self._state / OWNER_RECORD).unlink(missing_ok=True)
        except StateError:
            self._lock.release()
            raise

    def __enter__(self) -> Self:
        return self.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.release()


def owner(state: Path) -> Owner | None:
    """Who holds the owner lock; None where nobody does, whatever record a dead process left behind.

    An owner that has not written its record yet is described as process 0. Of a folder in which this user may not
    write nothing can be told, nor need be: it is not this user's, and neither is its server.
    """
    path = state / OWNER_LOCK
    if not path.exists():
        return None
    try:
        with FileLock(path, mode=0o600, thread_local=False).acquire(blocking=False):
            return None
    except Timeout:
        return _owner_record(state) or Owner(0, "ask", "a moment ago")
    except OSError as error:
        if error.errno in _NOT_WRITABLE:
            return None
        raise StateError(f"The lock {path} cannot be looked at: {error}.") from None


def _served(state: Path, holder: Owner) -> str:
    """What to do about an index that is in use: of a server, how long it stays and what ends it."""
    if holder.role != "serve":
        return IN_USE_HINT
    record = _server_record(state)
    if record is not None and record.pid == holder.pid and record.idle_exit is not None:
        leaves = (
            f"It was started in the background and leaves {record.idle_exit / 60:.0f} minutes after its last question"
        )
        return f"That server can be asked. {leaves}; `kill {holder.pid}` ends it at once."
    return f"That server can be asked. Ctrl-C where it runs, or `kill {holder.pid}`, ends it."


def _not_writable(state: Path, reason: str) -> StateError:
    return StateError(
        f"The index in {state} cannot be opened: this user may not write there ({reason}), and the embedded engine"
        " opens an index for writing, also to read it.",
        hint=f"Copy {state.parent} to where you may write (cp -r --sparse=always) and name the copy in RAGPILOT_HOME;"
        " or let its owner run `ragpilot serve`, and ask that server.",
    )


@contextlib.contextmanager
def server_record(state: Path, address: str, *, idle_exit: float | None = None) -> Iterator[ServerRecord]:
    """Say that the server of ``state`` listens at ``address``, until the block ends. The caller holds the OwnerLock.

    On a full disk that cannot be said: the server answers whoever knows its address.
    """
    record = ServerRecord(address, os.getpid(), _now(), idle_exit)
    path = state / SERVER_RECORD
    with contextlib.suppress(StateFullError):
        write_private(path, json.dumps(asdict(record)).encode())
    try:
        yield record
    finally:
        if _read_record(path).get("pid") == record.pid:
            path.unlink(missing_ok=True)


async def find_server(state: Path, *, wait: float = 10.0, indexing: bool = False) -> ServerRecord | None:
    """The running server of ``state``; None where none answers.

    The record counts only while the process that wrote it holds the owner lock, so the local token never goes to
    a stranger who has taken over the port; and only if its address answers as a RagPilot server. A server that is
    still starting is waited for, at most ``wait`` seconds. With ``indexing`` a run of `ragpilot index` counts as well,
    which answers questions from soon after its start to its end.
    """
    loop = asyncio.get_running_loop()
    deadline, soon = loop.time() + wait, loop.time() + min(wait, SHARED_SECONDS)
    while True:
        holder = await asyncio.to_thread(owner, state)
        if holder is None or (holder.role not in ("serve", *(("index",) if indexing else ())) and holder.pid):
            return None
        if holder.role == "index" and not holder.address and loop.time() >= soon:
            return None
        record = _server_record(state)
        if record is not None and record.pid == holder.pid and await answers(record.address):
            return record
        if loop.time() >= deadline:
            return None
        await asyncio.sleep(0.1)


def changed_since(record: ServerRecord, files: Iterable[str]) -> list[str]:
    """A sentence for each configuration file that was changed after the server had started. Blocking."""
    try:
        started = datetime.fromisoformat(record.started).timestamp() + 1  # it is noted in whole seconds
    except ValueError:
        return []
    told = []
    for file in files:
        with contextlib.suppress(OSError):
            if Path(file).stat().st_mtime >= started:
                told.append(
                    f"configuration not in force: {file} was changed after the server started; of it, only actors and "
                    "grants count until the server is started anew."
                )
    return told


def local_token(state: Path) -> str:
    """The token of the state folder, made on first use: 32 random bytes, URL-safe, in a file that only we may read.

    Raises StateError for a file that others could have read or that holds something else.
    """
    existing = existing_token(state)
    if existing is not None:
        return existing
    private_folder(state)
    create_private(state / TOKEN, secrets.token_urlsafe(32).encode())
    created = existing_token(state)
    if created is None:
        raise StateError(f"{state / TOKEN} vanished while it was made.")
    return created


def existing_token(state: Path) -> str | None:
    """The token of the state folder; None where none was made yet. Raises StateError like ``local_token``."""
    content = read_private(state / TOKEN)
    if content is None:
        return None
    if not re.fullmatch(rb"[A-Za-z0-9_-]{43}", content):
        raise StateError(f"{state / TOKEN} does not hold a token.", hint="Remove it; it is made anew.")
    return content.decode()


def _owner_record(state: Path) -> Owner | None:
    data = _read_record(state / OWNER_RECORD)
    try:
        return Owner(int(data["pid"]), data["role"], str(data["started"]), data.get("address"))
    except (KeyError, TypeError, ValueError):
        return None


def _server_record(state: Path) -> ServerRecord | None:
    data = _read_record(state / SERVER_RECORD)
    try:
        leaves = data.get("idle_exit")
        return ServerRecord(
            str(data["address"]), int(data["pid"]), str(data["started"]), None if leaves is None else float(leaves)
        )
    except (KeyError, TypeError, ValueError):
        return None


def _read_record(path: Path) -> dict[str, Any]:
    """A record, or an empty one where it is missing or damaged: the lock is what counts."""
    try:
        data = json.loads(read_private(path) or b"{}")
    except (StateError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}


async def access_in_force(address: str) -> bool:
    """Have the server at ``address`` look at its configuration; whether actors and grants are then in force.

    Needs no token: what any request brings about is asked for, and the answer to it is not looked at.
    Raises ServerUnreachableError.
    """
    try:
        status, body = await _get(address, "/corpora", seconds=NOTICE_SECONDS)
    except (httpx.HTTPError, httpx.InvalidURL, ValueError):
        raise ServerUnreachableError(f"The server at {address} does not answer.") from None
    return status != 503 or not isinstance(body, dict) or body.get("code") != "grants_pending"


async def answers(address: str) -> bool:
    """Whether a RagPilot server answers at ``address``, healthy or not."""
    try:
        status, body = await _get(address, "/health", seconds=ANSWER_SECONDS)
    except (httpx.HTTPError, httpx.InvalidURL, ValueError):
        return False
    return status in {200, 503} and isinstance(body, dict) and "status" in body


async def _get(address: str, path: str, *, seconds: float) -> tuple[int, Any]:
    """Status and JSON of a GET. Raises httpx.HTTPError, httpx.InvalidURL, ValueError."""
    # The address is this machine's: no proxy of the environment, and no certificates to load.
    encrypted = address.startswith("https:")
    async with httpx.AsyncClient(base_url=address, trust_env=False, verify=encrypted, timeout=seconds) as client:
        response = await client.get(path)
        return response.status_code, response.json()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
