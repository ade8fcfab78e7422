"""Stores, by ``store.kind``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ragpilot.bootstrap.required import secret
from ragpilot.config import Environment
from ragpilot.ports import ChunkStore


def store_of(environment: Environment) -> ChunkStore:
    """The configured store, not connected yet; who asks closes it. Raises ConfigError."""
    return STORES[environment.settings.store.kind](environment)


def _embedded_store(environment: Environment) -> ChunkStore:
    from ragpilot.adapters.edge_store import EdgeStore

    path = environment.settings.store.path
    return EdgeStore(Path(path) if path else environment.state / "store")


def _qdrant_store(environment: Environment) -> ChunkStore:
    from ragpilot.adapters.qdrant_layout import Layout
    from ragpilot.adapters.qdrant_store import QdrantStore

    store = environment.settings.store
    layout = Layout(
        shards=store.shards,
        replicas=store.replicas,
        write_consistency=store.write_consistency,
        on_disk=store.on_disk,
        quantization=store.quantization,
        prefix=store.collection_prefix,
    )
    return QdrantStore(
        store.url or "http://localhost:6333",
        api_key=secret("store.api_key_env", store.api_key_env),
        layout=layout,
        grpc_port=store.grpc_port,
        seconds=store.timeout_seconds,
    )


STORES: dict[str, Callable[[Environment], ChunkStore]] = {"embedded": _embedded_store, "qdrant": _qdrant_store}
