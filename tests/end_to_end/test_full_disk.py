"""A disk that really is full: runs end with an error, what is indexed answers, and the next run does the rest."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from ragpilot.adapters.edge_room import HELD, HELD_WRITING
from ragpilot.adapters.edge_store import EdgeStore
from ragpilot.disk import NEEDED
from ragpilot.errors import StoreFullError
from ragpilot.types import DocumentState, EmbedderIdentity, IndexIdentity, IngestScope, StoreQuery
from tests.builders import chunk, indexed
from tests.fakes import ANN, OPERATOR, sparse
from tests.small_disk import SmallDisk, small_disk

IDENTITY = IndexIdentity(EmbedderIdentity("fake", 4), "chunker")
SCOPE = IngestScope(OPERATOR, "default")
QUERY = StoreQuery("default", np.ones(4, dtype=np.float32), sparse({1: 1.0}))
SECONDS = 60

# Writes as the owner does, but without looking at the disk; a line for every document that is acknowledged.
HEEDLESS = """
import os, sys
from pathlib import Path
from ragpilot.adapters import edge_writes
from ragpilot.adapters.chunk_rows import to_row
from ragpilot.adapters.edge_collections import Collections
from ragpilot.adapters.edge_room import Room
from ragpilot.types import EmbedderIdentity, IndexIdentity
from tests.builders import chunk

collections = Collections(Path(sys.argv[1]), Room(Path(sys.argv[1]), lambda _: None))
edge_writes.ensure(collections, "default", IndexIdentity(EmbedderIdentity("fake", 4), "chunker"))
for number in range(100_000):
    items = [chunk(path=f"{number}.py", text=f"{line} " + "x" * 1000, start=line) for line in range(20)]
    lexical = [([1], [1.0])] * len(items)
    edge_writes.upsert(collections, "default", items[0].document_id, [to_row(item) for item in items], lexical)
    collections.flush()
    os.write(1, b"acknowledged\\n")
    if number == 0:
        sys.stdin.readline()
"""


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    folder = tmp_path / "disk"
    folder.mkdir()
    with small_disk(200, folder) as made:
        yield made


def written_until_killed(disk: SmallDisk, root: Path) -> int:
    """How many documents were acknowledged to a writer that does not look at the disk, until that killed it."""
    with subprocess.Popen(  # noqa: S603 - this interpreter
        [sys.executable, "-c", HEEDLESS, str(root)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as heedless:
        assert heedless.stdout is not None
        assert heedless.stdout.readline() == b"acknowledged\n"
        disk.fill(leaving=3_000_000)
        told, _ = heedless.communicate(b"\n", timeout=SECONDS)
    assert heedless.returncode == -signal.SIGBUS
    return 1 + told.count(b"acknowledged\n")


@pytest.mark.asyncio
async def test_an_owner_that_a_full_disk_has_killed_loses_nothing_and_answers(disk: SmallDisk) -> None:
    root = disk.path / "store"
    acknowledged = written_until_killed(disk, root)
    assert acknowledged > 1
    disk.fill()
    items = [chunk(path="late.py")]
    documents: dict[str, DocumentState] = {}
    for _ in range(2):  # also once the reserve is spent
        store = EdgeStore(root)
        documents = {state.path: state for state in await store.documents(SCOPE)}
        assert {f"{number}.py" for number in range(acknowledged)} <= set(documents)
        assert all(documents[f"{number}.py"].chunk_count == 20 for number in range(acknowledged))
        assert len(await store.search(ANN, QUERY)) > 0
        with pytest.raises(StoreFullError, match="nothing is written to the index with less than"):
            await store.upsert(SCOPE, items[0].document_id, [indexed(item) for item in items])
        assert (await store.check()).ok
        await store.aclose()
        disk.fill()
    disk.make_room()
    store = EdgeStore(root)
    await store.upsert(SCOPE, items[0].document_id, [indexed(item) for item in items])
    assert await store.count(ANN, "default") == len(documents) * 20 + 1
    await store.aclose()
    assert (root / ".reserve").stat().st_size == HELD


@pytest.mark.asyncio
async def test_writing_ends_before_the_disk_does(disk: SmallDisk) -> None:
    disk.fill(leaving=NEEDED + 50_000_000)
    store = EdgeStore(disk.path / "store")
    await store.ensure(SCOPE, IDENTITY)
    owner, stored = store.owner_pid, 0

    async def write() -> None:
        nonlocal stored
        while True:
            items = [chunk(path=f"{stored}.py", text=f"{line} " + "x" * 1000, start=line) for line in range(100)]
            await store.upsert(SCOPE, items[0].document_id, [indexed(item) for item in items])
            stored += 1

    with pytest.raises(StoreFullError):
        await asyncio.wait_for(write(), SECONDS)
    assert stored > 0
    assert store.owner_pid == owner  # it was refused, not killed
    assert await store.count(ANN, "default") >= stored * 100
    assert NEEDED - HELD_WRITING - 10_000_000 < disk.free < NEEDED - HELD_WRITING
    await store.aclose()


def ragpilot(disk: SmallDisk, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("RAGPILOT_")}
    return subprocess.run(  # noqa: S603 - our own command
        [*disk.enter, sys.executable, "-P", "-m", "ragpilot", "--directory", str(folder), *arguments],
        env={**environ, "RAGPILOT_HOME": str(disk.inside / "home"), "RAGPILOT_CHAT__KIND": "extractive"},
        capture_output=True,
        encoding="utf-8",
        timeout=SECONDS,
        check=False,
    )


def test_the_commands_on_a_full_disk(disk: SmallDisk, tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "mail.py").write_text('def send_invoice_mail(address):\n    """Mail an invoice to a customer."""\n')
    indexed = ragpilot(disk, folder, "index")
    assert indexed.returncode == 0, indexed.stderr
    (folder / "scale.py").write_text('def weigh_pallet(scale):\n    """Weigh a pallet on the warehouse scale."""\n')
    disk.fill()
    refused = ragpilot(disk, folder, "index")
    assert refused.returncode == 1
    assert f"The disk of {disk.inside / 'home'}" in refused.stderr
    assert " are free" in refused.stderr
    assert "Make room" in refused.stderr
    assert "Traceback" not in refused.stderr
    disk.fill()
    question = "how is an invoice mailed to a customer"
    for command, told in (("search", "mail.py"), ("ask", "mail.py"), ("status", "is full"), ("doctor", "is full")):
        answered = ragpilot(disk, folder, command, *([question] if told == "mail.py" else []))
        assert answered.returncode == 0, answered.stderr
        assert told in answered.stdout
    disk.make_room()
    finished = ragpilot(disk, folder, "index")
    assert finished.returncode == 0, finished.stderr
    assert "1 new, 1 unchanged" in finished.stdout + finished.stderr
    assert "scale.py" in ragpilot(disk, folder, "search", "weigh a pallet").stdout
