"""A small indexed corpus in memory, for tests of what stands above the store."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from pathlib import Path
from typing import Self

from ragpilot.answering import AskService
from ragpilot.config import CorpusSettings, RetrievalSettings, Settings
from ragpilot.freshness import Freshness
from ragpilot.ports import ChatModel, Embedder
from ragpilot.retrieval import Retriever
from ragpilot.searching import SearchService
from ragpilot.status import LeftOutOf, StatusService
from ragpilot.types import Chunk, IndexIdentity, IngestScope
from tests.builders import indexed
from tests.fakes import OPERATOR, FakeEmbedder, FakeTokenCounter, MemoryStore, ScriptedChatModel

CHUNKER = "test"


class Corpus:
    """Store, embedder, model and the services over them."""

    def __init__(
        self,
        *,
        settings: Settings | None = None,
        embedder: Embedder | None = None,
        chat: ChatModel | None = None,
        store: MemoryStore | None = None,
        files: dict[str, Path] | None = None,
        left_out: LeftOutOf | None = None,
    ) -> None:
        self.settings = settings or Settings(retrieval=RetrievalSettings(gate="off"))
        self.embedder = embedder or FakeEmbedder()
        self.chat = chat or ScriptedChatModel()
        self.store = store or MemoryStore()
        self.identity = IndexIdentity(self.embedder.identity, CHUNKER)
        self.retriever = Retriever(self.store, self.embedder, self.settings.retrieval, identity=self.identity)
        self.counter = FakeTokenCounter()
        located = files or {}
        self.freshness = Freshness(lambda _, path: located.get(path))
        self.asker = AskService(self.retriever, self.chat, self.counter, self.settings, self.freshness)
        self.searcher = SearchService(self.retriever, self.settings, self.freshness)
        self.status = StatusService(
            self.store,
            self.embedder,
            self.chat,
            self.retriever,
            self.settings,
            self.freshness,
            read_text=lambda _, path: located[path].read_text(encoding="utf-8") if path in located else None,
            identity=self.identity,
            left_out=left_out,
        )

    def with_settings(self, settings: Settings) -> Self:
        """The same parts, with other actors and grants."""
        other = copy(self)
        other.settings = settings
        other.asker = self.asker.with_settings(settings)
        other.searcher = self.searcher.with_settings(settings)
        other.status = self.status.with_settings(settings)
        return other

    async def put_grants_in_force(self) -> None:
        """Its chunks bring their readers with them."""

    async def index(self, chunks: Iterable[Chunk], *, headers: bool = True, bodies: bool = True) -> None:
        """Store chunks, with their vectors unless told otherwise."""
        by_document: dict[tuple[str, str], list[Chunk]] = {}
        for item in chunks:
            by_document.setdefault((item.corpus, item.document_id), []).append(item)
        for (corpus, document_id), items in by_document.items():
            scope = IngestScope(OPERATOR, corpus)
            await self.store.ensure(scope, self.identity)
            await self.store.upsert(scope, document_id, [indexed(item) for item in items])
            if headers:
                vectors = await self.embedder.embed_documents([item.header for item in items])
                await self.store.set_vectors(scope, "header", {i.id: v for i, v in zip(items, vectors, strict=True)})
            if bodies:
                vectors = await self.embedder.embed_documents([f"{item.header}\n{item.text}" for item in items])
                await self.store.set_vectors(scope, "body", {i.id: v for i, v in zip(items, vectors, strict=True)})


def two_corpora() -> Settings:
    """``open`` for everyone, ``secret`` for bob alone; gate off."""
    return Settings(
        retrieval=RetrievalSettings(gate="off"),
        corpora=[CorpusSettings(name="open"), CorpusSettings(name="secret", readers=["user:bob"])],
    )
