"""Embedders, by ``embedder.kind``, and which ones are worth comparing."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from pathlib import Path

from ragpilot.bootstrap.required import needed, secret
from ragpilot.config import EmbedderSettings, Environment
from ragpilot.ports import Embedder

DEFAULT_MODELS = {"ollama": "nomic-embed-text"}
"""Embedding models of kinds that serve many, where none is configured."""
WITHOUT = {"minilm": ("model", "url"), "fastembed": ("url",)}
"""Settings that a kind of embedder does not read: one is what it is, and a model of files has no address."""


async def embedder_of(environment: Environment) -> Embedder:
    """The configured embedder, prepared; who asks closes it. Raises ConfigError, EmbedderUnavailableError."""
    return await EMBEDDERS[environment.settings.embedder.kind](environment)


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
    model = needed("embedder.model", chosen.model, "BAAI/bge-small-en-v1.5")
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
    key = secret("embedder.api_key_env", chosen.api_key_env)
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
    url = needed("embedder.url", chosen.url, "http://localhost:8080")
    file, source = environment.state / "embedder.json", f"openai {url} {chosen.model}"
    key = secret("embedder.api_key_env", chosen.api_key_env)
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
