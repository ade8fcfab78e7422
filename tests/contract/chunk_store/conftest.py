"""What every ChunkStore does, over each adapter. MemoryStore is the model: the others must read like it."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from ragpilot.ports import ChunkStore
from ragpilot.types import IngestScope
from tests.contract.chunk_store.adapters import ADAPTERS
from tests.contract.folders import quick_folder
from tests.fakes import OPERATOR

_serial = itertools.count()


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=sorted(ADAPTERS))
async def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ChunkStore]:
    with quick_folder(tmp_path_factory) as folder:
        opened = ADAPTERS[request.param](folder)
        yield opened
        await opened.aclose()


@pytest_asyncio.fixture(loop_scope="module")
async def scope(store: ChunkStore) -> AsyncIterator[IngestScope]:
    """A corpus that no other test uses; nothing of it stays behind."""
    own = IngestScope(OPERATOR, f"corpus-{next(_serial)}")
    yield own
    await store.drop(own)
