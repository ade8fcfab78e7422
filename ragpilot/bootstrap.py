"""The composition root: from settings to parts. The one module, beside the adapters, that names a vendor.

Every part can be given instead; what is not given is made from the settings, by one registry a port. Adapters of
services that are not configured are never imported.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from ragpilot.actors import OWNER
from ragpilot.adapters.extractive import ExtractiveModel
from ragpilot.adapters.tokens import TiktokenCounter
from ragpilot.answering import AskService
from ragpilot.calibrations import recall as recall_calibration
from ragpilot.config import ChatSettings, EmbedderSettings, Environment, Settings
from ragpilot.errors import ChatModelError, ConfigError, StoreError, StoreFullError
from ragpilot.freshness import Freshness
from ragpilot.ingest.pipeline import IngestService
from ragpilot.ports import ChatModel, ChunkStore, Embedder, TokenCounter
from ragpilot.rag_sources import load_sources
from ragpilot.retrieval import Retriever
from ragpilot.searching import SearchService
from ragpilot.status import StatusService
from ragpilot.types import Finding

if TYPE_CHECKING:
    from ragpilot.adapters.ollama_chat import OllamaChat
    from ragpilot.adapters.openai_chat import OpenAiChat
    from ragpilot.adapters.streaming import StreamLimits

_Part = TypeVar("_Part")
_Ollama = TypeVar("_Ollama", bound="OllamaChat")


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


@dataclass(frozen=True, slots=True)
class ChosenChat:
    """A chat model, and why it is this one."""

    chat: ChatModel
    reason: str = ""


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


# --- stores -----------------------------------------------------------------------------------------


def store_of(environment: Environment) -> ChunkStore:
    """The configured store, not connected yet; who asks closes it. Raises as ``build`` does."""
    return _registered(STORES, "store.kind", environment.settings.store.kind)(environment)


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
        api_key=_secret("store.api_key_env", store.api_key_env),
        layout=layout,
        grpc_port=store.grpc_port,
        seconds=store.timeout_seconds,
    )


STORES: dict[str, Callable[[Environment], ChunkStore]] = {"embedded": _embedded_store, "qdrant": _qdrant_store}


# --- embedders --------------------------------------------------------------------------------------


async def embedder_of(environment: Environment) -> Embedder:
    """The configured embedder, prepared; who asks closes it. Raises as ``build`` does."""
    kind = environment.settings.embedder.kind
    return await _registered(EMBEDDERS, "embedder.kind", kind)(environment)


DEFAULT_MODELS = {"ollama": "nomic-embed-text"}
"""Embedding models of kinds that serve many, where none is configured."""
WITHOUT = {"minilm": ("model", "url"), "fastembed": ("url",)}
"""Settings that a kind of embedder does not read: one is what it is, and a model of files has no address."""


def usual_embedders(configured: EmbedderSettings) -> list[EmbedderSettings]:
    """What is worth comparing: the embedded one, the configured one, and two that an Ollama may have."""
    at = configured.url if configured.kind == "ollama" else None
    names = (DEFAULT_MODELS["ollama"], "embeddinggemma")
    return [EmbedderSettings(), configured, *(EmbedderSettings(kind="ollama", model=name, url=at) for name in names)]


async def _minilm(_: Environment) -> Embedder:
    from ragpilot.adapters.minilm import MiniLmEmbedder

    return MiniLmEmbedder()


async def _fastembed(environment: Environment) -> Embedder:
    from ragpilot.adapters.fastembed_models import FastembedEmbedder

    chosen = environment.settings.embedder
    model = _needed("embedder.model", chosen.model, "BAAI/bge-small-en-v1.5")
    # A download happens because this very configuration names the model (DESIGN section 8).
    folder = Path(chosen.path) if chosen.path else None
    embedder = FastembedEmbedder(model, folder=folder, cache=environment.state / "models", download=folder is None)
    return await _closed_on_failure(embedder, embedder.prepare())


async def _ollama_embedder(environment: Environment) -> Embedder:
    from ragpilot.adapters.ollama_embedder import OllamaEmbedder
    from ragpilot.adapters.remembered import prepare_remembered, recall

    chosen = environment.settings.embedder
    model = chosen.model or DEFAULT_MODELS["ollama"]
    file, source = environment.state / "embedder.json", f"ollama {chosen.url} {model}"
    key = _secret("embedder.api_key_env", chosen.api_key_env)
    url = chosen.url or os.environ.get("OLLAMA_HOST")
    embedder = OllamaEmbedder(
        url,
        model,
        keep_alive=chosen.keep_alive,
        seconds=chosen.timeout_seconds,
        api_key=key,
        remembered=recall(file, source),
    )
    return await _closed_on_failure(embedder, prepare_remembered(embedder, file, source))


async def _openai_embedder(environment: Environment) -> Embedder:
    from ragpilot.adapters.openai_embedder import OpenAiEmbedder
    from ragpilot.adapters.remembered import prepare_remembered, recall

    chosen = environment.settings.embedder
    url = _needed("embedder.url", chosen.url, "http://localhost:8080")
    file, source = environment.state / "embedder.json", f"openai {url} {chosen.model}"
    key = _secret("embedder.api_key_env", chosen.api_key_env)
    embedder = OpenAiEmbedder(
        url, chosen.model, seconds=chosen.timeout_seconds, api_key=key, remembered=recall(file, source)
    )
    return await _closed_on_failure(embedder, prepare_remembered(embedder, file, source))


async def _closed_on_failure(embedder: Embedder, preparing: Awaitable[object]) -> Embedder:
    try:
        await preparing
    except BaseException:
        await embedder.aclose()
        raise
    return embedder


EMBEDDERS: dict[str, Callable[[Environment], Awaitable[Embedder]]] = {
    "minilm": _minilm,
    "fastembed": _fastembed,
    "ollama": _ollama_embedder,
    "openai": _openai_embedder,
}


# --- chat models ------------------------------------------------------------------------------------


async def chat_of(environment: Environment) -> ChosenChat:
    """The configured chat model, and why it is this one; who asks closes it. Raises as ``build`` does."""
    chat = environment.settings.chat
    return await _registered(CHAT_MODELS, "chat.kind", chat.kind)(chat)


async def _extractive(chat: ChatSettings) -> ChosenChat:
    # Whoever named a model is told which setting keeps it from answering.
    because = 'chat.kind is "extractive", whatever chat.model names' if chat.model else None
    return ChosenChat(ExtractiveModel(because))


async def _auto(chat: ChatSettings) -> ChosenChat:
    from ragpilot.adapters.ollama_choice import ChosenAtStart, choose_chat

    chosen = await choose_chat(
        chat.url or os.environ.get("OLLAMA_HOST"),
        chat.model,
        ExtractiveModel,
        make=lambda model: _ollama(ChosenAtStart, chat, model),
    )
    return ChosenChat(chosen.model, chosen.reason)


async def _ollama_chat(chat: ChatSettings) -> ChosenChat:
    from ragpilot.adapters.ollama_chat import OllamaChat

    model = _needed("chat.model", chat.model, "qwen2.5-coder:1.5b")
    return await _prepared(_ollama(OllamaChat, chat, model))


async def _openai_chat(chat: ChatSettings) -> ChosenChat:
    from ragpilot.adapters.openai_chat import OpenAiChat

    url = _needed("chat.url", chat.url, "http://localhost:8080")
    key = _secret("chat.api_key_env", chat.api_key_env)
    limits = _limits(chat)
    return await _prepared(OpenAiChat(url, chat.model, context_window=chat.context_window, limits=limits, api_key=key))


async def _llamacpp(chat: ChatSettings) -> ChosenChat:
    from ragpilot.adapters.llamacpp import LlamaCppChat

    path = Path(_needed("chat.model", chat.model, "models/qwen2.5-coder-1.5b-q4_k_m.gguf"))
    return ChosenChat(LlamaCppChat(path, context_window=chat.context_window, limits=_limits(chat)))


CHAT_MODELS: dict[str, Callable[[ChatSettings], Awaitable[ChosenChat]]] = {
    "auto": _auto,
    "extractive": _extractive,
    "ollama": _ollama_chat,
    "openai": _openai_chat,
    "llamacpp": _llamacpp,
}


def _ollama(kind: type[_Ollama], chat: ChatSettings, model: str) -> _Ollama:
    return kind(
        chat.url or os.environ.get("OLLAMA_HOST"),
        model,
        context_window=chat.context_window,
        keep_alive=chat.keep_alive,
        limits=_limits(chat),
        api_key=_secret("chat.api_key_env", chat.api_key_env),
    )


async def _prepared(model: OllamaChat | OpenAiChat) -> ChosenChat:
    """``model`` with its window and name known, if its service is there; while it is away, health says so."""
    try:
        await model.prepare()
    except ChatModelError as error:
        return ChosenChat(model, str(error))
    return ChosenChat(model)


def _limits(chat: ChatSettings) -> StreamLimits:
    from ragpilot.adapters.streaming import StreamLimits

    return StreamLimits(first_token=chat.first_token_seconds, idle=chat.idle_seconds, total=chat.total_seconds)


# --- what there is to use ---------------------------------------------------------------------------


async def survey_services(environment: Environment) -> list[Finding]:
    """Which services answer at the configured addresses, or else where such services usually are on this machine."""
    from ragpilot.adapters.survey import Addresses, survey

    settings = environment.settings
    chat, embedder, store = settings.chat, settings.embedder, settings.store
    compatible = chat.url if chat.kind == "openai" else None
    ollamas = [part.url for part in (chat, embedder) if part.kind == "ollama" or (part is chat and part.kind == "auto")]
    addresses = Addresses(
        ollama=next(filter(None, ollamas), None) or os.environ.get("OLLAMA_HOST"),
        compatible=compatible,
        compatible_key=os.environ.get(chat.api_key_env or "") if compatible else None,
        qdrant=store.url,
        qdrant_key=os.environ.get(store.api_key_env or ""),
        needed=frozenset({chat.kind, embedder.kind, store.kind} & {"ollama", "qdrant"}),
    )
    return await survey(addresses, chat_is_open=chat.kind == "auto" and chat.model is None)


# --- helpers ----------------------------------------------------------------------------------------


def _registered(registry: dict[str, _Part], key: str, kind: str) -> _Part:
    if kind not in registry:
        raise ConfigError(f"{key} = {kind!r} is not known.", hint=f"Known: {', '.join(sorted(registry))}.")
    return registry[kind]


def _needed(key: str, value: str | None, example: str) -> str:
    if not value:
        raise ConfigError(f"{key} is not set, and this kind needs it.", hint=f"For example: {key} = {example!r}.")
    return value


def _secret(key: str, variable: str | None) -> str | None:
    """The key that the environment variable holds; None where none is configured."""
    if variable is None:
        return None
    value = os.environ.get(variable)
    if not value:
        raise ConfigError(f"{key} names the environment variable {variable}, which is not set.")
    return value
