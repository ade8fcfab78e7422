"""The server as a process: signals, ports, the state folder, idleness."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from ragpilot.config import Environment
from ragpilot.errors import ConfigError, StoreInUseError
from ragpilot.runtime import existing_token, find_server, owner
from server.__main__ import main
from server.listener import Listener
from server.run import serve
from tests.server.support import Connection, bearer, events_of, server_settings, settings_of

ROOT = Path(__file__).parents[2]


@dataclass
class Child:
    """A server in a process of its own."""

    process: asyncio.subprocess.Process
    port: int = 0
    connections: list[Connection] = field(default_factory=list)

    async def connect(self) -> Connection:
        self.connections.append(await Connection.open(self.port))
        return self.connections[-1]

    async def end(self, number: signal.Signals | None = None) -> tuple[int, str, str]:
        """Exit code, output and log, after the signal."""
        if number is not None:
            self.process.send_signal(number)
        async with asyncio.timeout(10):
            out, err = await self.process.communicate()
        return self.process.returncode or 0, out.decode(), err.decode()


@asynccontextmanager
async def child(state: Path, *arguments: str) -> AsyncIterator[Child]:
    command = [sys.executable, "-m", "tests.server.child", str(state), *arguments]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=pipe, stderr=pipe)
    started = Child(process)
    try:
        yield started
    finally:
        for connection in started.connections:
            connection.writer.transport.abort()
        if process.returncode is None:
            process.kill()
            await process.communicate()


async def ready(started: Child) -> str:
    """Its address, once it listens."""
    assert started.process.stdout is not None
    async with asyncio.timeout(20):
        line = await started.process.stdout.readline()
    address: str = json.loads(line)["address"]
    started.port = int(address.rpartition(":")[2])
    return address


def left_behind(state: Path) -> set[str]:
    return {path.name for path in state.iterdir()} - {"owner.lock", "token"}


@pytest.mark.asyncio
@pytest.mark.parametrize("signals", [[signal.SIGTERM], [signal.SIGINT, signal.SIGINT]], ids=["term", "int twice"])
async def test_a_signal_ends_the_server_cleanly_with_open_requests(
    tmp_path: Path, signals: list[signal.Signals]
) -> None:
    async with child(tmp_path) as server:
        await ready(server)
        idle, stream, unsent = await server.connect(), await server.connect(), await server.connect()
        await unsent.send("POST", "/ask", headers={"Content-Type": "application/json", "Content-Length": "99"})
        await idle.send("GET", "/health")
        assert (await idle.read()).status == 200
        await stream.ask()
        await stream.read_head()
        await stream.read_chunk()
        assert {"owner.json", "server.json"} <= left_behind(tmp_path)
        for number in signals:
            server.process.send_signal(number)
        code, out, log = await server.end()
        (name, failed) = events_of(await stream.read_chunk())[0]
        assert (code, name, failed["code"]) == (0, "error", "shutting_down")
        assert json.loads(out) == {"closed": True}
        assert "Traceback" not in log
        assert "POST /ask 200" in log
        assert left_behind(tmp_path) == set()
        assert owner(tmp_path) is None


@pytest.mark.asyncio
async def test_the_server_of_a_state_folder_is_the_only_one_and_can_be_found(tmp_path: Path) -> None:
    async with child(tmp_path) as server:
        address = await ready(server)
        record = await find_server(tmp_path)
        assert record is not None
        assert (record.address, record.pid) == (address, server.process.pid)
        token = existing_token(tmp_path)
        assert token is not None
        for headers, status in (({}, 403), (bearer(token), 200)):
            connection = await server.connect()
            await connection.send("POST", "/index", b"{}", headers)
            assert (await connection.read()).status == status
        with pytest.raises(StoreInUseError) as caught:
            await asyncio.to_thread(serve, Environment(settings=settings_of(), state=tmp_path), port=0)
        assert address in caught.value.message
        assert str(server.process.pid) in caught.value.message
        _, _, log = await server.end(signal.SIGTERM)
        assert token not in log
        assert await find_server(tmp_path) is None


@pytest.mark.asyncio
async def test_an_idle_server_leaves_and_a_watched_one_stays(tmp_path: Path) -> None:
    async with child(tmp_path, "--idle-exit", "2") as server:
        await ready(server)
        stream = await server.connect()
        await stream.ask()
        await stream.read_head()
        await stream.read_chunk()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(3):
                await server.process.wait()
        await stream.close()
        code, out, log = await server.end()
        assert (code, json.loads(out)["closed"], "Traceback" in log) == (0, True, False)
        assert left_behind(tmp_path) == set()


def test_a_port_in_use_is_named_with_a_way_out_and_leaves_nothing(tmp_path: Path) -> None:
    with closing(Listener.bound("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=f"Port {port} .* `--port N`"):
            serve(Environment(settings=settings_of(), state=tmp_path), port=port)
        assert left_behind(tmp_path) == set()
        with closing(Listener.bound("127.0.0.1", port, any_port=True)) as other:
            assert other.getsockname()[1] not in {0, port}


def test_other_interfaces_need_actors(tmp_path: Path) -> None:
    environment = Environment(settings=server_settings(host="192.168.0.1"), state=tmp_path / "state")
    with pytest.raises(ConfigError, match=r"192\.168\.0\.1.*server\.allowed_hosts names what others call this machine"):
        serve(environment, port=0)
    assert not environment.state.exists()


def test_an_address_that_is_none_of_this_machine() -> None:
    for host, words in (("no.such.host.invalid", "server.host"), ("192.0.2.1", "192.0.2.1")):
        with pytest.raises(ConfigError, match=words):
            Listener.bound(host, 0)


@pytest.mark.parametrize(
    ("host", "address"),
    [("127.0.0.1", "http://127.0.0.1:"), ("0.0.0.0", "http://127.0.0.1:"), ("::1", "http://[::1]:")],  # noqa: S104
)
def test_where_a_listener_is_reached(host: str, address: str) -> None:
    try:
        listener = Listener.bound(host, 0)
    except ConfigError:
        assert ":" in host, "only IPv6 may be missing"
        pytest.skip("no IPv6 here")
    with closing(listener):
        assert listener.address.startswith(address)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--port", "70000"], "0 to 65535"),
        (["--port", "x"], "0 to 65535"),
        (["--nonsense"], "unrecognized"),
        (["--config", "absent.toml"], "absent.toml"),
    ],
)
def test_wrong_use_of_the_program(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        code = main(arguments)
    except SystemExit as stopped:  # how argparse refuses
        code = int(stopped.code or 0)
    assert code == 2
    assert words in capsys.readouterr().err


def test_the_program_serves_what_it_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[Environment, dict[str, object]]] = []
    monkeypatch.setattr("server.__main__.serve", lambda environment, **given: calls.append((environment, given)))
    (tmp_path / "repo").mkdir()
    assert main(["--directory", str(tmp_path / "repo"), "--state", str(tmp_path / "state"), "--idle-exit", "600"]) == 0
    assert main(["--directory", str(tmp_path / "repo"), "--port", "5300", "--idle-exit", "600"]) == 0
    (first, given), (second, named) = calls
    assert (first.state, first.settings.corpora[0].roots) == (tmp_path / "state", [str(tmp_path / "repo")])
    assert given == {"port": None, "any_port": True, "idle_exit": 600.0}
    assert named == {"port": 5300, "any_port": False, "idle_exit": 600.0}
    assert second.state != first.state
