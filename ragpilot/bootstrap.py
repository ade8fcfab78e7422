"""The composition root: from settings to parts. The one module, beside the adapters, that names a vendor.

Every part can be given instead; what is not given is made from the settings, one registry a port.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from ragpilot.adapters.edge_store import EdgeStore
from ragpilot.adapters.extractive import ExtractiveModel
from ragpilot.adapters.minilm import MiniLmEmbedder
from ragpilot.adapters.tokens import TiktokenCounter
from ragpilot.answering import AskService
from ragpilot.config import Environment, Settings
from ragpilot.errors import ConfigError
from ragpilot.freshness import Freshness
from ragpilot.ingest.pipeline import IngestService
from ragpilot.ports import ChatModel, ChunkStore, Embedder, TokenCounter
from ragpilot.retrieval import Retriever
from ragpilot.searching import SearchService
from ragpilot.status import StatusService

_Part = TypeVar("_Part")


@dataclass(frozen=True, slots=True)
class Application:
    """All parts, put together. An async context manager: leaving it closes what it holds, in reverse order."""

    settings: Settings
    state: Path
    store: ChunkStore
    embedder: Embedder
    chat: ChatModel
    counter: TokenCounter
    retriever: Retriever
    asker: AskService
    searcher: SearchService
    ingestion: IngestService
    status: StatusService

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close chat model, embedder and store; each, even where another fails. Idempotent."""
        async with AsyncExitStack() as stack:
            for part in (self.store, self.embedder, self.chat):
                stack.push_async_callback(part.aclose)


def _embedded_store(environment: Environment) -> ChunkStore:
    path = environment.settings.store.path
    return EdgeStore(Path(path) if path else environment.state / "store")


STORES: dict[str, Callable[[Environment], ChunkStore]] = {"embedded": _embedded_store}
EMBEDDERS: dict[str, Callable[[Environment], Embedder]] = {"minilm": lambda _: MiniLmEmbedder()}
CHAT_MODELS: dict[str, Callable[[Environment], ChatModel]] = {
    "auto": lambda _: ExtractiveModel(),
    "extractive": lambda _: ExtractiveModel(),
}


def _make(registry: dict[str, Callable[[Environment], _Part]], key: str, kind: str, environment: Environment) -> _Part:
    if kind not in registry:
        raise ConfigError(
            f"{key} = {kind!r} is not available in this version of RagPilot.",
            hint=f"Available: {', '.join(sorted(registry))}.",
        )
    return registry[kind](environment)


def build(
    environment: Environment,
    *,
    store: ChunkStore | None = None,
    embedder: Embedder | None = None,
    chat: ChatModel | None = None,
    counter: TokenCounter | None = None,
) -> Application:
    """Put the parts together. Opens nothing: store and models open at their first use."""
    settings = environment.settings
    store = store or _make(STORES, "store.kind", settings.store.kind, environment)
    embedder = embedder or _make(EMBEDDERS, "embedder.kind", settings.embedder.kind, environment)
    chat = chat or _make(CHAT_MODELS, "chat.kind", settings.chat.kind, environment)
    counter = counter or TiktokenCounter()
    ingestion = IngestService(store, embedder, settings.ingest, environment.state, corpora=settings.corpora)
    retriever = Retriever(store, embedder, settings.retrieval, identity=ingestion.identity)
    freshness = Freshness(ingestion.locate)
    return Application(
        settings=settings,
        state=environment.state,
        store=store,
        embedder=embedder,
        chat=chat,
        counter=counter,
        retriever=retriever,
        asker=AskService(retriever, chat, counter, settings, freshness),
        ingestion=ingestion,
        searcher=SearchService(retriever, settings, freshness),
        status=StatusService(store, embedder, chat, retriever, settings, freshness, ingestion.read_text),
    )
