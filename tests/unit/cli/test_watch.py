"""`ragpilot index --watch` over a server that answers as it is told, and real folders."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from ragpilot import cli, cli_watch
from ragpilot.adhoc import remembered
from ragpilot.cli_index import IndexOptions
from ragpilot.cli_session import IngestEvent
from ragpilot.config import Environment
from ragpilot.errors import (
    IndexMismatchError,
    IngestRunningError,
    InvalidRequestError,
    RagPilotError,
    RootError,
    ServerUnreachableError,
)
from ragpilot.settings_loader import load
from ragpilot.types import IngestProgress, IngestReport

SECONDS = 20
OPTIONS = IndexOptions(rebuild=False, quiet=False, bodies=True, broad=False, as_json=False)


def report(*, changed: int = 0, warnings: tuple[str, ...] = ()) -> IngestReport:
    return IngestReport("default", "complete", 0, changed, 7, 0, 99, 0, (), (), 0.1, 0.1, warnings)


class FakeServer:
    """Answers runs as scripted; once the script is over, with a report of one changed document."""

    base_url = "http://127.0.0.1:5200"

    def __init__(self) -> None:
        self.script: list[IngestReport | RagPilotError] = []
        self.asked: asyncio.Queue[tuple[str | None, str | None, bool]] = asyncio.Queue()
        self.closed = 0
        self.connected = 0

    async def connect(self, *_: object) -> FakeServer:
        self.connected += 1
        return self

    async def index(
        self, *, corpus: str | None = None, path: str | None = None, rebuild: bool = False, vectors: bool = True
    ) -> AsyncGenerator[IngestEvent, None]:
        assert not vectors, "what changes next would wait for them"
        self.asked.put_nowait((corpus, path, rebuild))
        step = self.script.pop(0) if self.script else report(changed=1)
        if isinstance(step, RagPilotError):
            raise step
        yield IngestProgress("scan", 0, 0, 0, 0, 0.0, None)
        yield step

    async def next(self) -> tuple[str | None, str | None, bool]:
        async with asyncio.timeout(SECONDS):
            return await self.asked.get()

    async def health(self) -> Any:
        return {}

    async def aclose(self) -> None:
        self.closed += 1


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeServer:
    fake = FakeServer()
    monkeypatch.setattr(cli_watch, "connect", fake.connect)
    monkeypatch.setattr(cli_watch, "RETRY_SECONDS", 0.05)
    monkeypatch.setattr(cli_watch, "TURN_SECONDS", 0.05)
    monkeypatch.setenv("RAGPILOT_HOME", str(tmp_path / "home"))
    return fake


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    write(folder / "src/a.py")
    return folder


def write(file: Path, text: str = "x = 1\n") -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def environment(root: Path) -> Environment:
    return load(config=None, directory=root, environ=os.environ)


@asynccontextmanager
async def watching(root: Path, *, path: Path | None = None, options: IndexOptions = OPTIONS) -> AsyncIterator[None]:
    task = asyncio.ensure_future(cli_watch.run_watch(environment(root), path, options))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task}, timeout=SECONDS)
        assert task.cancelled()


@pytest.mark.asyncio
async def test_everything_first_and_then_what_changes(
    server: FakeServer, root: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    server.script = [report(warnings=("careful",)), report(changed=1, warnings=("careful", "odd")), report()]
    async with watching(root):
        assert await server.next() == ("default", None, False)
        write(root / "src/a.py", "x = 2\n")
        assert await server.next() == ("default", str(root / "src/a.py"), False)
        write(root / "src/a.py", "x = 3\n")
        await server.next()
        write(root / "src/b.py")
        await server.next()
    stdout, stderr = capfd.readouterr()
    first, second, *rest = stdout.splitlines()
    assert first == "default: 7 unchanged; 99 chunks; 0.1 s."
    assert second == "default: 1 changed; 99 chunks; 0.1 s."
    assert len(rest) <= 1  # of a run that changed nothing, nothing is said
    assert stderr.count("careful") == 1
    assert "odd" in stderr
    assert "Ctrl-C ends it. The server at http://127.0.0.1:5200 answers meanwhile." in stderr
    assert stderr.endswith("No longer watching; what is indexed stays.\n")
    assert server.connected == server.closed == 1


@pytest.mark.asyncio
async def test_a_rebuild_happens_once(server: FakeServer, root: Path, capfd: pytest.CaptureFixture[str]) -> None:
    options = IndexOptions(rebuild=True, quiet=True, bodies=True, broad=False, as_json=True)
    async with watching(root, options=options):
        assert await server.next() == ("default", None, True)
        write(root / "src/a.py", "x = 2\n")
        assert (await server.next())[2] is False
    stdout, stderr = capfd.readouterr()
    assert json.loads(stdout.splitlines()[0])["corpus"] == "default"
    assert stderr == "No longer watching; what is indexed stays.\n"


@pytest.mark.asyncio
async def test_others_have_their_turn(server: FakeServer, root: Path, capfd: pytest.CaptureFixture[str]) -> None:
    server.script = [IngestRunningError("A run of ingestion is under way.", hint="Ask again.")] * 2
    async with watching(root):
        for _ in range(3):
            assert await server.next() == ("default", None, False)
    stderr = capfd.readouterr().err
    assert stderr.count("Another run is under way; what has changed is indexed after it.\n") == 1
    assert "Ask again" not in stderr


@pytest.mark.asyncio
async def test_a_server_that_goes_is_found_or_started_anew(
    server: FakeServer, root: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    server.script = [report(), ServerUnreachableError("It has gone."), ServerUnreachableError("It has gone.")]
    async with watching(root):
        await server.next()
        write(root / "src/a.py", "x = 2\n")
        assert (await server.next())[1] == str(root / "src/a.py")
        assert await server.next() == ("default", None, False)  # nobody knows how far that run came
        assert await server.next() == ("default", None, False)
    assert server.connected == 3
    assert capfd.readouterr().err.count("It has gone.") == 1


@pytest.mark.asyncio
async def test_what_goes_before_its_run_widens_it(server: FakeServer, root: Path) -> None:
    server.script = [report(), InvalidRequestError("'path' names nothing inside the roots.", field="path")]
    async with watching(root):
        await server.next()
        write(root / "src/a.py", "x = 2\n")
        await server.next()
        assert await server.next() == ("default", None, False)


@pytest.mark.asyncio
async def test_a_root_that_goes_before_its_run(server: FakeServer, root: Path) -> None:
    server.script = [report(), RootError("It is gone.")]
    async with watching(root):
        await server.next()
        write(root / "src/a.py", "x = 2\n")
        await server.next()
        write(root / "src/b.py")
        assert (await server.next())[1] == str(root / "src/b.py")


@pytest.mark.asyncio
async def test_a_failure_of_the_first_run_ends_it(server: FakeServer, root: Path) -> None:
    server.script = [IndexMismatchError("Another embedder built this.")]
    async with asyncio.timeout(SECONDS):
        with pytest.raises(IndexMismatchError):
            await cli_watch.run_watch(environment(root), None, OPTIONS)
    assert server.closed == 1


@pytest.mark.asyncio
async def test_a_part_that_goes_and_comes_back(server: FakeServer, root: Path) -> None:
    write(root / "docs/a.md")
    async with watching(root, path=root / "docs"):
        assert await server.next() == ("default", str(root / "docs"), False)
        (root / "docs/a.md").unlink()
        (root / "docs").rmdir()
        assert await server.next() == ("default", None, False)
        write(root / "docs/b.md")
        assert await server.next() == ("default", str(root / "docs"), False)


@pytest.mark.asyncio
async def test_a_folder_outside_is_remembered_before_its_server_starts(
    server: FakeServer, root: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    write(outside / "a.py")
    async with watching(root, path=outside):
        assert await server.next() == ("outside", None, False)
    (state,) = [folder for folder in (tmp_path / "home").iterdir() if folder.name.startswith("outside")]
    made = remembered(state)
    assert made is not None
    assert made.folder == str(outside)


@pytest.mark.asyncio
async def test_a_missing_or_too_broad_root_is_refused(
    server: FakeServer, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(root))
    with pytest.raises(RootError, match="home folder"):
        await cli_watch.run_watch(environment(root), None, OPTIONS)
    assert server.connected == 0


def test_a_home_folder_is_not_watched(capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["index", "--watch", "--yes"]) == 2
    assert "--yes does not go with --watch" in capfd.readouterr().err
