"""Finding a server, or starting one."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from ragpilot import cli_launch
from ragpilot.config import Environment, Settings
from ragpilot.errors import ServerUnreachableError, StoreInUseError
from ragpilot.runtime import OwnerLock, ServerRecord, local_token

CHILD = """
import sys
sys.stderr.write("line of the log\\n" * 30 + "the last words\\n")
sys.exit(3)
"""


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    return Environment(settings=Settings(), state=tmp_path / "home" / "state", directory=tmp_path)


def use_child(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, code: str) -> None:
    """Let ``code`` run in place of the server."""
    script = tmp_path / "interpreter"
    script.write_text(f"#!{sys.executable}\n{code}")
    script.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(script))


@pytest.mark.asyncio
async def test_a_child_that_ends_is_told_with_the_end_of_its_log(
    environment: Environment, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    use_child(monkeypatch, tmp_path, CHILD)
    with pytest.raises(ServerUnreachableError, match="could not be started") as caught:
        async with asyncio.timeout(30):
            await cli_launch.connect(environment, os.environ)
    log = environment.state / "server.log"
    assert str(log) in caught.value.hint
    assert caught.value.hint.endswith("the last words")
    assert len(caught.value.hint.splitlines()) == 16
    assert log.stat().st_mode & 0o777 == 0o600


@pytest.mark.asyncio
async def test_a_child_that_never_answers_is_ended(
    environment: Environment, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pid = tmp_path / "pid"
    use_child(
        monkeypatch, tmp_path, f"import os, time\nopen({str(pid)!r}, 'w').write(str(os.getpid()))\ntime.sleep(60)"
    )
    with pytest.raises(ServerUnreachableError, match="did not answer within 2 s"):
        async with asyncio.timeout(30):
            await cli_launch.start(environment, os.environ, ready_seconds=2)
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


@pytest.mark.asyncio
async def test_the_child_is_told_folder_state_and_configuration(
    environment: Environment, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    use_child(monkeypatch, tmp_path, "import os, sys\nprint(sys.argv[1:], os.environ['PYTHONSAFEPATH'], os.getcwd())")
    named = environment.model_copy(update={"config": "/etc/ragpilot.toml"})
    with pytest.raises(ServerUnreachableError) as caught:
        async with asyncio.timeout(30):
            await cli_launch.start(named, os.environ)
    arguments = ["-P", "-m", "server", "--directory", str(tmp_path), "--state", str(named.state)]
    arguments += ["--idle-exit", "600", "--config", "/etc/ragpilot.toml"]
    assert caught.value.hint.endswith(f"{arguments} 1 {named.state}")


@pytest.mark.asyncio
async def test_an_index_that_a_command_holds_is_not_waited_for(environment: Environment) -> None:
    with OwnerLock(environment.state, "index"), pytest.raises(StoreInUseError, match="`ragpilot index`"):
        async with asyncio.timeout(10):
            await cli_launch.connect(environment, os.environ)
    assert not (environment.state / "server.log").exists()


@pytest.mark.asyncio
async def test_a_running_server_is_used_and_given_the_right_token(
    environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def found(state: Path, **_: float) -> ServerRecord:
        return ServerRecord("http://127.0.0.1:5200", 1, "now")

    monkeypatch.setattr(cli_launch, "find_server", found)
    local = local_token(environment.state)
    for environ, token in (({}, local), ({"RAGPILOT_TOKEN": "mine"}, "mine"), ({"RAGPILOT_TOKEN": ""}, local)):
        backend = await cli_launch.connect(environment, environ)
        assert backend.base_url == "http://127.0.0.1:5200"
        assert backend._client.headers["authorization"] == f"Bearer {token}"
        await backend.aclose()
