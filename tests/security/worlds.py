"""Stores and indexes for tests of scope: the embedded engine without its process, actors, small documents."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ragpilot.adapters.edge_collections import Collections
from ragpilot.adapters.edge_owner import answer
from ragpilot.adapters.edge_store import EdgeStore
from ragpilot.config import RetrievalSettings
from ragpilot.lexical import question_terms, question_vector, term_id
from ragpilot.ports import ChunkStore
from ragpilot.retrieval import Retriever
from ragpilot.types import Actor, Chunk, GateCalibration, IndexIdentity, IngestScope, StoreQuery, VectorName
from tests.builders import indexed
from tests.fakes import OPERATOR, VECTOR_NAMES, FakeEmbedder

ANN = Actor("ann", frozenset({"user:ann", "team:core"}))
BOB = Actor("bob", frozenset({"user:bob"}))
CORE = Actor("core", frozenset({"team:core"}))
BOTH = Actor("both", frozenset({"user:ann", "user:bob", "team:core", "team:ops"}))
NOBODY = Actor("nobody", frozenset())
ADMIN = Actor("admin", frozenset({"team:ops"}), frozenset({"ask", "ingest", "admin"}))
ACTORS = (ANN, BOB, CORE, BOTH, NOBODY, ADMIN)
PRINCIPALS = ("user:ann", "user:bob", "team:core", "team:ops")


def memory_folder() -> str | None:
    """Where folders are kept in memory, where the system has that: a store flushes to disk at every write."""
    memory = Path("/dev/shm")  # noqa: S108 - only folders that tempfile makes for this user alone
    return str(memory) if memory.is_dir() and shutil.disk_usage(memory).free > 2**29 else None


class InlineCalls:
    """The queue of an EdgeStore without the process behind it: every call is done at once, as the process does it."""

    owner_pid = None

    def __init__(self, root: Path) -> None:
        self._collections = Collections(root)

    def read(self, work: Callable[..., Any], *args: Any, **kwargs: Any) -> Future[Any]:
        ((succeeded, value),) = answer(self._collections, [(work, args, kwargs)])
        done: Future[Any] = Future()
        if succeeded:
            done.set_result(value)
        else:
            done.set_exception(value)
        return done

    write = read

    def close(self) -> None:
        self._collections.close()


def inline_edge(folder: Path) -> EdgeStore:
    """An EdgeStore in this process: starting another one takes longer than a test of a few hundred steps."""
    store = EdgeStore(folder)
    store._calls = InlineCalls(store.path)  # type: ignore[assignment]
    return store


def gated_embedder(dimensions: int = 16) -> FakeEmbedder:
    """Few dimensions, so that unlike texts come near each other, and a gate that depends on what is readable."""
    embedder = FakeEmbedder(dimensions)
    embedder.gate = GateCalibration(threshold=0.45, per_decade=0.1, reference_chunks=10)
    return embedder


@dataclass
class Held:
    """One document as a test knows it: its chunks, and which of them have which vector."""

    chunks: list[Chunk]
    having: dict[VectorName, set[str]] = field(default_factory=lambda: {"header": set(), "body": set()})

    @property
    def readers(self) -> frozenset[str]:
        return self.chunks[0].readers


class Index:
    """One corpus in a store, written through the port as ingestion writes it."""

    def __init__(self, store: ChunkStore, embedder: FakeEmbedder, corpus: str = "default") -> None:
        self.store = store
        self.embedder = embedder
        self.corpus = corpus
        self.identity = IndexIdentity(embedder.identity, "test")
        self.scope = IngestScope(OPERATOR, corpus)

    async def open(self) -> None:
        await self.store.ensure(self.scope, self.identity)

    async def put(self, document: Held) -> None:
        """Make the document's chunks what the store holds of it, with the vectors that it is to have."""
        first = document.chunks[0]
        await self.store.upsert(self.scope, first.document_id, [indexed(item) for item in document.chunks])
        for name in document.having:
            await self.fill(document, name)

    async def fill(self, document: Held, name: VectorName) -> None:
        wanted = [item for item in document.chunks if item.id in document.having[name]]
        texts = [item.header if name == "header" else f"{item.header}\n{item.text}" for item in wanted]
        vectors = {item.id: self.embedder.vector(text) for item, text in zip(wanted, texts, strict=True)}
        if vectors:
            await self.store.set_vectors(self.scope, name, vectors)

    async def reads(self, actor: Actor, asked: str, limit: int, every: list[Chunk]) -> dict[str, Any]:
        """What every read of the port gives, scores unrounded."""
        store, corpus = self.store, self.corpus
        terms = sorted({term_id(term) for term in question_terms(asked)})
        vector, lexical = self.embedder.vector(asked), question_vector(asked)
        return {
            "search": await store.search(actor, StoreQuery(corpus, vector, lexical)),
            "best": await store.search(actor, StoreQuery(corpus, vector, lexical, limit, limit)),
            "dense": await store.search(actor, StoreQuery(corpus, vector, lexical, limit, 0)),
            "lexical": await store.search(actor, StoreQuery(corpus, vector, lexical, 0, limit)),
            "count": await store.count(actor, corpus),
            "having": [await store.count(actor, corpus, having=name) for name in VECTOR_NAMES],
            "paths": await store.facets(actor, corpus, "path"),
            "types": await store.facets(actor, corpus, "source_type"),
            "terms": await store.term_statistics(actor, corpus, terms),
            "newest": await store.last_indexed(actor, corpus),
            "single": [await store.get(actor, corpus, item.id) for item in every],
        }

    def retriever(self, **given: Any) -> Retriever:
        return Retriever(self.store, self.embedder, RetrievalSettings(**given), identity=self.identity)


def readable(documents: Mapping[str, Held], actor: Actor) -> list[Held]:
    """What of ``documents`` the actor may read, by their names: said here once more, apart from any store."""
    return [held for _, held in sorted(documents.items()) if held.readers & actor.principals]


def whole(chunks: Iterable[Chunk]) -> Held:
    """A document whose vectors are all in."""
    items = list(chunks)
    ids = {item.id for item in items}
    return Held(items, {"header": set(ids), "body": set(ids)})
