"""The composition root: from settings to parts. The one package, beside the adapters, that names a vendor.

Every part can be given instead; what is not given is made from the settings, by one registry a port. Adapters of
services that are not configured are never imported.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from ragpilot.actors import OWNER
from ragpilot.adapters.tokens import TiktokenCounter
from ragpilot.answering import AskService
from ragpilot.bootstrap.chat_models import ChosenChat, chat_of
from ragpilot.bootstrap.embedders import embedder_of
from ragpilot.bootstrap.stores import store_of
from ragpilot.calibrations import recall as recall_calibration
from ragpilot.config import Environment, Settings
from ragpilot.errors import StoreError, StoreFullError
from ragpilot.freshness import Freshness
from ragpilot.ingest.pipeline import IngestService
from ragpilot.ports import ChatModel, ChunkStore, Embedder, TokenCounter
from ragpilot.rag_sources import load_sources
from ragpilot.retrieval import Retriever
from ragpilot.searching import SearchService
from ragpilot.status import StatusService


@dataclass(frozen=True, slots=True)
class Application:
    """All parts, put together and open."""

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

    def with_settings(self, settings: Settings) -> Application:
        """The same parts, open as they are, with the actors and grants of ``settings``."""
        return replace(
            self,
            settings=settings,
            asker=self.asker.with_settings(settings),
            searcher=self.searcher.with_settings(settings),
            status=self.status.with_settings(settings),
        )

    async def put_grants_in_force(self) -> None:
        """Have every document readable by whom the configuration says, before anything is answered.

        For a process that owns the store; a server sees to it by itself. Raises StateError, and StoreFullError where
        the index could be read by the grants of yesterday.
        """
        for corpus in self.settings.corpora:
            try:
                await self.ingestion.apply_grants(OWNER, corpus)
            except StoreFullError:
                raise
            except StoreError:
                continue  # nothing is answered from it either, and whoever asks is told why


@asynccontextmanager
async def build(
    environment: Environment,
    *,
    store: ChunkStore | None = None,
    embedder: Embedder | None = None,
    chat: ChatModel | None = None,
    counter: TokenCounter | None = None,
    wrap_chat: Callable[[ChatModel], ChatModel] = lambda chat: chat,
) -> AsyncIterator[Application]:
    """Put the parts together; leaving closes what was opened, in reverse order, each even where another fails.

    Args:
        environment: Settings and state folder.
        store: Instead of the configured one, as the following.
        embedder: Makes vectors.
        chat: Answers.
        counter: Counts tokens of prompts.
        wrap_chat: Laid around the chat model, such as a queue.

    Raises:
        ConfigError: A kind lacks a setting that it needs.
        EmbedderUnavailableError: The embedder's service is away and was never reached before.
    """
    async with AsyncExitStack() as opened:
        if store is None:
            store = store_of(environment)
        opened.push_async_callback(store.aclose)
        if embedder is None:
            embedder = await embedder_of(environment)
        opened.push_async_callback(embedder.aclose)
        made = ChosenChat(chat) if chat else await chat_of(environment)
        opened.push_async_callback(made.chat.aclose)
        yield _put_together(environment, store, embedder, wrap_chat(made.chat), made.reason, counter)


def _put_together(
    environment: Environment,
    store: ChunkStore,
    embedder: Embedder,
    chat: ChatModel,
    chat_reason: str,
    counter: TokenCounter | None,
) -> Application:
    settings = environment.settings
    counter = counter or TiktokenCounter()
    ingestion = IngestService(store, embedder, settings.ingest, environment.state, corpora=settings.corpora)
    retriever = Retriever(
        store,
        embedder,
        settings.retrieval,
        identity=ingestion.identity,
        sources=load_sources(settings.sources),
        calibration=None if embedder.gate else recall_calibration(environment.shared, embedder.identity),
    )
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
        searcher=SearchService(retriever, settings, freshness),
        ingestion=ingestion,
        status=StatusService(
            store,
            embedder,
            chat,
            retriever,
            settings,
            freshness,
            ingestion.read_text,
            identity=ingestion.identity,
            chat_reason=chat_reason,
            left_out=ingestion.left_out,
        ),
    )
