"""The owner process: that it dies when it must, only then, and that nothing is lost or left waiting."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
import pytest_asyncio

from ragpilot.adapters import edge_collections
from ragpilot.adapters.edge_process import Limits
from ragpilot.adapters.edge_queue import WRITES_TOGETHER, CallQueue
from ragpilot.adapters.edge_store import EdgeStore
from ragpilot.errors import StoreInUseError, StoreUnavailableError
from ragpilot.types import EmbedderIdentity, IndexedChunk, IndexIdentity, IngestScope, StoreQuery
from tests.builders import chunk
from tests.contract.folders import quick_folder
from tests.fakes import ANN, OPERATOR, sparse

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="watches processes as Linux can")

IDENTITY = IndexIdentity(EmbedderIdentity("fake", 4), "chunker")
SCOPE = IngestScope(OPERATOR, "default")
QUERY = StoreQuery("default", np.ones(4, dtype=np.float32), sparse({1: 1.0}))


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with quick_folder(tmp_path_factory) as made:
        yield made


@pytest_asyncio.fixture
async def store(folder: Path) -> AsyncIterator[EdgeStore]:
    opened = EdgeStore(folder / "store", limits=Limits(start=30, call=10, close=10))
    yield opened
    await opened.aclose()


async def fill(store: EdgeStore, count: int = 3) -> None:
    await store.ensure(SCOPE, IDENTITY)
    items = [chunk(text=f"text {number}", start=number) for number in range(count)]
    await store.upsert(SCOPE, items[0].document_id, [IndexedChunk(item, sparse({1: 1.0})) for item in items])


async def found(store: EdgeStore) -> int:
    return len(await store.search(ANN, QUERY))


def pid_of(store: EdgeStore) -> int:
    assert store.owner_pid is not None
    return store.owner_pid


def has_ended(pid: int, *, within: float = 0.0) -> bool:
    """Whether the process ends within some seconds; one that only waits to be reaped has ended."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], within)[0])
    finally:
        os.close(descriptor)


class Deadly:
    """Ends whatever process unpickles it."""

    def __reduce__(self) -> tuple[Callable[[int], None], tuple[int]]:
        return os._exit, (3,)


# --- its death


@pytest.mark.asyncio
async def test_reads_and_writes_go_on_after_the_owner_was_killed(store: EdgeStore) -> None:
    await fill(store)
    for _ in range(2):
        before = await store.describe("default")
        killed = pid_of(store)
        os.kill(killed, signal.SIGKILL)
        assert await found(store) == 3
        assert pid_of(store) != killed
        after = await store.describe("default")
        assert before is not None
        assert after is not None
        # A manifest may have been ahead of the store or behind it; it must not agree by chance.
        assert after.revision > before.revision
        os.kill(pid_of(store), signal.SIGKILL)
        await fill(store)
    assert await found(store) == 3


@pytest.mark.asyncio
async def test_an_owner_that_dies_twice_under_a_call_is_reported(store: EdgeStore) -> None:
    await fill(store)
    with pytest.raises(StoreUnavailableError, match="ended with status 3") as caught:
        await store.count(Deadly(), "default")  # type: ignore[arg-type]
    assert "disk" in caught.value.hint
    assert await found(store) == 3


@pytest.mark.asyncio
async def test_an_owner_that_hangs_is_replaced(folder: Path) -> None:
    store = EdgeStore(folder, limits=Limits(start=30, call=1, close=5))
    await fill(store)
    stopped = pid_of(store)
    os.kill(stopped, signal.SIGSTOP)
    # More than a pipe holds, so that it cannot even be sent.
    big = [chunk(text=f"{number} " + "x" * 100_000) for number in range(10)]
    async with asyncio.timeout(20):
        with pytest.raises(StoreUnavailableError, match="no answer within 1 s"):
            await store.upsert(SCOPE, big[0].document_id, [IndexedChunk(item, sparse({})) for item in big])
        assert await found(store) == 3
    assert has_ended(stopped)
    await store.aclose()


@pytest.mark.asyncio
async def test_check_does_not_wait_for_an_owner_that_hangs(store: EdgeStore) -> None:
    await fill(store)
    os.kill(pid_of(store), signal.SIGSTOP)
    async with asyncio.timeout(6):
        health = await store.check()
    os.kill(pid_of(store), signal.SIGCONT)
    assert not health.ok
    assert "busy" in health.detail
    assert (await store.check()).ok


@pytest.mark.asyncio
async def test_an_owner_that_cannot_start_is_reported(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = EdgeStore(folder)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "executable", str(folder / "no-python"))
        with pytest.raises(StoreUnavailableError, match="cannot be started"):
            await store.count(ANN, "default")
        patch.setattr(sys, "executable", "/bin/false")
        with pytest.raises(StoreUnavailableError, match="ended with status 1"):
            await store.count(ANN, "default")
        assert not (await store.check()).ok
    assert await store.count(ANN, "default") == 0
    await store.aclose()


# --- its life


@pytest.mark.asyncio
async def test_signals_of_the_group_leave_the_owner_alone(store: EdgeStore) -> None:
    await fill(store)
    owner = pid_of(store)
    assert os.getpgid(owner) != os.getpgid(0)
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        os.kill(owner, signum)
    assert await found(store) == 3
    assert pid_of(store) == owner


@pytest.mark.asyncio
async def test_reads_of_nothing_create_nothing(store: EdgeStore) -> None:
    assert await store.count(ANN, "default") == 0
    assert await store.describe("default") is None
    await store.drop(SCOPE)
    assert not store.path.exists()


@pytest.mark.asyncio
async def test_nothing_starts_before_it_is_asked(folder: Path) -> None:
    store = EdgeStore(folder / "store")
    assert store.owner_pid is None
    await store.aclose()
    assert not store.path.exists()


@pytest.mark.asyncio
async def test_closing_serves_what_waits_then_ends_the_owner(store: EdgeStore) -> None:
    await fill(store)
    owner = pid_of(store)
    waiting = [asyncio.ensure_future(found(store)) for _ in range(5)]
    await asyncio.sleep(0)
    await asyncio.gather(store.aclose(), store.aclose())
    assert await asyncio.gather(*waiting) == [3] * 5
    assert has_ended(owner)
    assert store.owner_pid is None
    with pytest.raises(StoreUnavailableError, match="closed"):
        await found(store)
    assert not (await store.check()).ok


@pytest.mark.asyncio
async def test_closing_is_bounded_when_the_owner_hangs(folder: Path) -> None:
    store = EdgeStore(folder, limits=Limits(start=30, call=60, close=0.5))
    await fill(store)
    os.kill(pid_of(store), signal.SIGSTOP)
    waiting = [asyncio.ensure_future(found(store)) for _ in range(3)]
    await asyncio.sleep(0)
    async with asyncio.timeout(10):
        await store.aclose()
        outcomes = await asyncio.gather(*waiting, return_exceptions=True)
    assert all(isinstance(outcome, StoreUnavailableError) for outcome in outcomes)


@pytest.mark.asyncio
async def test_a_cancelled_caller_disturbs_nobody(store: EdgeStore) -> None:
    await fill(store)
    impatient = [asyncio.ensure_future(found(store)) for _ in range(6)]
    await asyncio.sleep(0)
    for call in impatient[::2]:
        call.cancel()
    outcomes = await asyncio.gather(*impatient, return_exceptions=True)
    assert outcomes[1::2] == [3, 3, 3]
    assert await found(store) == 3


def test_one_store_serves_several_event_loops(folder: Path) -> None:
    store = EdgeStore(folder)
    asyncio.run(fill(store))
    assert [asyncio.run(found(store)) for _ in range(2)] == [3, 3]
    asyncio.run(store.aclose())


# --- one owner


@pytest.mark.asyncio
async def test_a_second_store_on_the_folder_is_told_who_has_it(store: EdgeStore) -> None:
    await fill(store)
    second = EdgeStore(store.path)
    # The removal first: it is the one that must not go on under another's feet.
    with pytest.raises(StoreInUseError, match=f"in use by process {os.getpid()}"):
        await second.drop(SCOPE)
    assert await found(store) == 3
    await store.aclose()
    assert await found(second) == 3
    await second.aclose()


PARENT = """
import asyncio, sys
from pathlib import Path
from ragpilot.adapters.edge_store import EdgeStore
from tests.unit.test_edge_process import fill, found

print("main is imported", file=sys.stderr, flush=True)

async def main():
    store = EdgeStore(Path(sys.argv[1]))
    await fill(store)
    revision = (await store.describe("default")).revision
    print(store.owner_pid, revision, flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


@pytest.mark.asyncio
async def test_a_killed_parent_leaves_no_orphan_and_the_store_opens_again(folder: Path) -> None:
    script = folder / "parent.py"
    script.write_text(PARENT, encoding="utf-8")
    search_path = os.pathsep.join([str(Path(__file__).parents[2]), *sys.path])
    parent = subprocess.Popen(  # noqa: ASYNC220, S603 - a script of this test
        [sys.executable, str(script), str(folder / "store")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": search_path},
    )
    assert parent.stdout
    assert parent.stderr
    owner, revision = map(int, parent.stdout.readline().split())
    parent.kill()
    # Once, by the parent alone: an owner process that ran the caller's main module would start all of it again.
    assert parent.stderr.read().count("main is imported") == 1
    parent.communicate()
    assert has_ended(owner, within=30)
    store = EdgeStore(folder / "store")
    assert await found(store) == 3
    info = await store.describe("default")
    assert info is not None
    assert info.revision >= revision
    await store.aclose()


@pytest.mark.asyncio
async def test_the_owner_imports_nothing_from_the_working_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("json", "pickle", "numpy", "qdrant_edge"):
        (folder / f"{name}.py").write_text("raise SystemExit(7)", encoding="utf-8")
    monkeypatch.chdir(folder)
    store = EdgeStore(folder / "store")
    assert await store.count(ANN, "default") == 0
    await store.aclose()


# --- writes together


def test_writes_that_stand_together_go_together_and_order_is_kept(folder: Path) -> None:
    queue = CallQueue(folder, Limits())
    queue._courier = object()  # type: ignore[assignment]  # takes nothing out of the queue
    work = edge_collections.Collections.flush
    for kind in "wwwrrw" + "w" * (WRITES_TOGETHER + 8):
        queue.read(work) if kind == "r" else queue.write(work)
    sizes = [len(queue._take()) for _ in range(5)]
    assert sizes == [3, 1, 1, WRITES_TOGETHER, 9]


@pytest.mark.asyncio
async def test_many_writes_under_way_are_each_acknowledged_and_kept(store: EdgeStore) -> None:
    await store.ensure(SCOPE, IDENTITY)
    documents = [[chunk(path=f"{number}.py", text=str(number))] for number in range(100)]
    writes = [
        store.upsert(SCOPE, items[0].document_id, [IndexedChunk(item, sparse({1: 1.0})) for item in items])
        for items in documents
    ]
    async with asyncio.timeout(60):
        await asyncio.gather(*writes)
    os.kill(pid_of(store), signal.SIGKILL)
    assert await found(store) == 100


@pytest.mark.asyncio
async def test_one_refused_write_does_not_refuse_its_neighbours(store: EdgeStore) -> None:
    await fill(store)
    ended = datetime.now(UTC)
    outcomes = await asyncio.gather(
        store.record_ingestion(SCOPE, ended),
        store.set_vectors(SCOPE, "header", {str(uuid.uuid4()): np.ones(9, dtype=np.float32)}),
        store.record_ingestion(SCOPE, ended),
        return_exceptions=True,
    )
    assert [isinstance(outcome, BaseException) for outcome in outcomes] == [False, True, False]
