"""The stores that the suite runs over; a further one joins by a line in ``ADAPTERS``."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
from qdrant_client import AsyncQdrantClient

from ragpilot.adapters.edge_store import EdgeStore
from ragpilot.adapters.qdrant_layout import Layout
from ragpilot.adapters.qdrant_store import QdrantStore
from ragpilot.ports import ChunkStore
from tests.fakes import MemoryStore

QDRANT = os.environ.get("RAGPILOT_TEST_QDRANT_URL")
"""A real server, to run the suite over it as well; its collections begin with ``test_``."""


def _qdrant_server(shards: int) -> ChunkStore:
    port = os.environ.get("RAGPILOT_TEST_QDRANT_GRPC_PORT")
    layout = Layout(prefix=f"test_{uuid.uuid4().hex[:8]}_", shards=shards)
    key = os.environ.get("RAGPILOT_TEST_QDRANT_API_KEY")
    return QdrantStore(QDRANT or "", api_key=key, layout=layout, grpc_port=int(port) if port else None)


def _qdrant_local(shards: int) -> ChunkStore:
    return QdrantStore("http://local-mode", layout=Layout(shards=shards), client=AsyncQdrantClient(":memory:"))


ADAPTERS: dict[str, Callable[[Path], ChunkStore]] = {
    "memory": lambda _: MemoryStore(),
    "edge": EdgeStore,
    "qdrant local mode": lambda _: _qdrant_local(1),
    # Local mode has no shards: what is under test is the layout that collections of several have.
    "qdrant local mode, shards": lambda _: _qdrant_local(3),
}
if QDRANT:
    ADAPTERS["qdrant"] = lambda _: _qdrant_server(1)
    ADAPTERS["qdrant, shards"] = lambda _: _qdrant_server(3)

LOCAL_MODE_WARNS = [
    pytest.mark.filterwarnings("ignore:Local mode performs exact"),
    pytest.mark.filterwarnings("ignore:Payload indexes have no effect"),
]
