"""The state folder between processes: owner lock, server record, local token."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest
from filelock import FileLock

from ragpilot.errors import StateError, StateFullError, StoreInUseError
from ragpilot.runtime import OWNER_LOCK, OwnerLock, existing_token, find_server, local_token, owner, server_record
from tests.protocol.listening import listening

HOLD = """
import sys
from pathlib import Path
from ragpilot.runtime import OwnerLock
with OwnerLock(Path(sys.argv[1]), sys.argv[2]) as lock:
    if len(sys.argv) > 3:
        lock.announce(sys.argv[3])
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def holder(state: Path, role: str, *address: str) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the owner lock."""
    arguments = [sys.executable, "-c", HOLD, str(state), role, *address]
    with subprocess.Popen(  # noqa: S603 - our own interpreter
        arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


@asynccontextmanager
async def answering(body: bytes, *, status: str = "200 OK") -> AsyncIterator[tuple[str, list[bytes]]]:
    """A tiny HTTP server on loopback: its address, and what it was asked."""
    asked: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        writer.write(head.encode() + body)
        await writer.drain()

    async with listening(answer) as port:
        yield f"http://127.0.0.1:{port}", asked


def test_a_free_folder_has_no_owner_and_looking_makes_nothing(tmp_path: Path) -> None:
    assert owner(tmp_path / "state") is None
    assert not (tmp_path / "state").exists()


def test_the_owner_is_described_and_gone_after_release(tmp_path: Path) -> None:
    state = tmp_path / "home" / "state"
    with OwnerLock(state, "index"):
        assert state.stat().st_mode & 0o777 == 0o700
        assert state.parent.stat().st_mode & 0o777 == 0o700
        held = owner(state)
        assert held is not None
        assert (held.pid, held.role, held.address) == (os.getpid(), "index", None)
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", held.started)
    assert owner(state) is None
    assert not (state / "owner.json").exists()
    with OwnerLock(state, "ask"):
        pass


def test_on_a_full_disk_the_lock_is_held_and_the_owner_has_no_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_room(handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    (tmp_path / "owner.json").write_text('{"pid": 1, "role": "serve", "started": "then"}')
    (tmp_path / "owner.json").chmod(0o600)
    monkeypatch.setattr(os, "fsync", no_room)
    with OwnerLock(tmp_path, "serve") as lock:
        lock.announce("http://127.0.0.1:5200")
        with server_record(tmp_path, "http://127.0.0.1:5200"):
            held = owner(tmp_path)
        assert held is not None
        # Not the one before it, whose record still lay there.
        assert held.pid == 0
        assert not (tmp_path / "server.json").exists()
    assert owner(tmp_path) is None


def test_a_private_file_without_room_names_folder_and_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_room(handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("ragpilot.files.free_bytes", lambda _: 12)
    monkeypatch.setattr(os, "fsync", no_room)
    with pytest.raises(StateFullError) as caught:
        local_token(tmp_path)
    assert f"{tmp_path / 'token'} cannot be written: the disk of {tmp_path} is full, 12 bytes" in caught.value.message
    assert list(tmp_path.iterdir()) == []


def test_a_store_in_use_says_who_holds_it(tmp_path: Path) -> None:
    with holder(tmp_path, "serve", "http://127.0.0.1:5200") as process:
        held = owner(tmp_path)
        assert held is not None
        assert held.pid == process.pid
        with pytest.raises(StoreInUseError) as caught:
            OwnerLock(tmp_path, "index").acquire()
        message = caught.value.message
        assert str(process.pid) in message
        assert "`ragpilot serve` at http://127.0.0.1:5200" in message
        assert held.started in message
        assert (tmp_path / "owner.json").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("idle_exit", "said"),
    [
        (600.0, "It was started in the background and leaves 10 minutes after its last question; `kill {}` ends it"),
        (None, "Ctrl-C where it runs, or `kill {}`, ends it."),
    ],
)
def test_a_server_in_the_way_is_ended_by_the_command_that_is_named(
    tmp_path: Path, idle_exit: float | None, said: str
) -> None:
    with holder(tmp_path, "serve", "http://127.0.0.1:5200") as process:
        record = {"address": "http://127.0.0.1:5200", "pid": process.pid, "started": "x", "idle_exit": idle_exit}
        (tmp_path / "server.json").write_text(json.dumps(record))
        (tmp_path / "server.json").chmod(0o600)
        with pytest.raises(StoreInUseError) as caught:
            OwnerLock(tmp_path, "index").acquire()
    assert said.format(process.pid) in caught.value.hint


@pytest.mark.parametrize("code", [errno.EROFS, errno.EACCES])
def test_a_folder_that_may_only_be_read_is_nobodys_and_its_index_cannot_be_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def refuse(self: FileLock, *_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code))

    (tmp_path / OWNER_LOCK).touch()
    monkeypatch.setattr(FileLock, "acquire", refuse)

    assert owner(tmp_path) is None
    with pytest.raises(StateError, match=os.strerror(code)) as caught:
        OwnerLock(tmp_path, "ask").acquire()
    assert str(tmp_path.parent) in (caught.value.hint or "")


def test_a_killed_owner_leaves_a_record_and_no_claim(tmp_path: Path) -> None:
    with holder(tmp_path, "serve") as process:
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=10)
    assert (tmp_path / "owner.json").exists()
    assert owner(tmp_path) is None
    with OwnerLock(tmp_path, "ask"):
        held = owner(tmp_path)
        assert held is not None
        assert held.pid == os.getpid()


def test_looking_does_not_keep_an_owner_out(tmp_path: Path) -> None:
    for _ in range(20):
        assert owner(tmp_path) is None
        with OwnerLock(tmp_path, "ask"):
            pass


def test_a_damaged_record_of_a_live_owner(tmp_path: Path) -> None:
    with holder(tmp_path, "serve"):
        (tmp_path / "owner.json").write_text("{")
        held = owner(tmp_path)
        assert held is not None
        assert str(held) == "a process that is just starting"
        with pytest.raises(StoreInUseError, match="another process"):
            OwnerLock(tmp_path, "ask").acquire()


def test_a_state_folder_that_lets_others_in_is_closed(tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir(mode=0o755)
    with OwnerLock(state, "ask"):
        assert state.stat().st_mode & 0o777 == 0o700


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StateError, match="RAGPILOT_HOME"):
        OwnerLock(tmp_path / "file" / "state", "ask").acquire()
    with pytest.raises(StateError, match="is no folder"):
        OwnerLock(tmp_path / "file", "ask").acquire()


@pytest.mark.asyncio
async def test_a_running_server_is_found(tmp_path: Path) -> None:
    async with asyncio.timeout(20), answering(b'{"status": "degraded"}', status="503 X") as (address, asked):
        with OwnerLock(tmp_path, "serve") as lock:
            lock.announce(address)
            with server_record(tmp_path, address) as record:
                assert (tmp_path / "server.json").stat().st_mode & 0o777 == 0o600
                assert await find_server(tmp_path) == record
                assert record.address == address
        assert b"authorization" not in asked[0].lower()
        assert not (tmp_path / "server.json").exists()
        assert await find_server(tmp_path) is None


@pytest.mark.asyncio
async def test_a_run_of_ingestion_is_found_by_who_only_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragpilot.runtime.SHARED_SECONDS", 0.3)
    async with asyncio.timeout(20), answering(b'{"status": "ok"}') as (address, _):
        with OwnerLock(tmp_path, "index") as lock:
            assert await find_server(tmp_path, indexing=True) is None  # it does not say where, and is not waited for
            lock.announce(address)
            with server_record(tmp_path, address) as record:
                assert await find_server(tmp_path, indexing=True) == record
                assert await find_server(tmp_path) is None
            assert address not in str(owner(tmp_path))


@pytest.mark.asyncio
async def test_a_record_without_a_live_owner_is_stale_and_its_address_is_not_asked(tmp_path: Path) -> None:
    async with asyncio.timeout(20), answering(b'{"status": "ok"}') as (address, asked):
        record = {"address": address, "pid": os.getpid(), "started": "2026-01-01T00:00:00Z"}
        (tmp_path / "server.json").write_text(json.dumps(record))
        (tmp_path / "server.json").chmod(0o600)
        assert await find_server(tmp_path) is None
        with OwnerLock(tmp_path, "index"):
            assert await find_server(tmp_path) is None
        assert asked == []


@pytest.mark.asyncio
@pytest.mark.parametrize("body", [b"<html>", b"[]", b'{"other": 1}'])
async def test_an_address_where_something_else_answers_is_stale(tmp_path: Path, body: bytes) -> None:
    async with asyncio.timeout(20), answering(body) as (address, _):
        with OwnerLock(tmp_path, "serve"), server_record(tmp_path, address):
            assert await find_server(tmp_path, wait=0) is None


@pytest.mark.asyncio
async def test_a_dead_address_is_stale(tmp_path: Path) -> None:
    async with answering(b"{}") as (address, _):
        pass
    with OwnerLock(tmp_path, "serve"), server_record(tmp_path, address):
        async with asyncio.timeout(20):
            assert await find_server(tmp_path, wait=0) is None


@pytest.mark.asyncio
async def test_a_starting_server_is_waited_for(tmp_path: Path) -> None:
    async with asyncio.timeout(20), answering(b'{"status": "ok"}') as (address, _):
        with OwnerLock(tmp_path, "serve"):
            looking = asyncio.create_task(find_server(tmp_path, wait=15))
            await asyncio.sleep(0)
            with server_record(tmp_path, address) as record:
                assert await looking == record


def test_a_server_record_of_another_process_is_left_alone(tmp_path: Path) -> None:
    with server_record(tmp_path, "http://127.0.0.1:1"):
        (tmp_path / "server.json").write_text('{"pid": 1}')
    assert (tmp_path / "server.json").exists()


def test_the_local_token_is_made_once_and_private(tmp_path: Path) -> None:
    state = tmp_path / "state"
    assert existing_token(state) is None
    assert not state.exists()
    token = local_token(state)
    assert re.fullmatch(r"[A-Za-z0-9_-]{43}", token)
    assert local_token(state) == existing_token(state) == token
    assert (state / "token").stat().st_mode & 0o777 == 0o600
    assert state.stat().st_mode & 0o777 == 0o700
    assert [entry.name for entry in state.iterdir()] == ["token"]
    assert local_token(tmp_path / "other") != token


def test_processes_that_race_for_the_token_get_the_same(tmp_path: Path) -> None:
    code = "import sys; from pathlib import Path; from ragpilot.runtime import local_token; "
    code += "sys.stdin.read(1); print(local_token(Path(sys.argv[1])))"
    processes = [
        subprocess.Popen(  # noqa: S603 - our own interpreter
            [sys.executable, "-c", code, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(4)
    ]
    tokens = {process.communicate("x", timeout=60)[0].strip() for process in processes}
    assert tokens == {existing_token(tmp_path)}


@pytest.mark.parametrize("content", ["", "short", "x" * 44, "y" * 42 + "\n"])
def test_a_token_file_with_something_else_in_it(tmp_path: Path, content: str) -> None:
    (tmp_path / "token").write_text(content)
    (tmp_path / "token").chmod(0o600)
    with pytest.raises(StateError, match="Remove it"):
        local_token(tmp_path)


def test_a_token_that_others_could_read_is_refused(tmp_path: Path) -> None:
    local_token(tmp_path)
    (tmp_path / "token").chmod(0o644)
    with pytest.raises(StateError, match="can be read by others"):
        existing_token(tmp_path)


def test_a_token_behind_a_link_or_pipe_is_refused(tmp_path: Path) -> None:
    local_token(tmp_path / "real")
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "token").symlink_to(tmp_path / "real" / "token")
    with pytest.raises(StateError):
        local_token(tmp_path / "linked")
    (tmp_path / "piped").mkdir()
    os.mkfifo(tmp_path / "piped" / "token", 0o600)
    with pytest.raises(StateError, match="no regular file"):
        local_token(tmp_path / "piped")
