"""What could be used: which services answer on this machine or at the configured addresses, and what they have."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass

import httpx

from ragpilot.adapters import ollama_service, openai_service
from ragpilot.adapters.http import Service, new_client
from ragpilot.adapters.ollama_host import ollama_url
from ragpilot.adapters.qdrant_connection import QdrantConnection
from ragpilot.errors import RagPilotError
from ragpilot.types import Finding

SECONDS = 3.0
"""The longest wait for one service."""
NAMED = 12
COMPATIBLE_PORTS = {8080: "llama.cpp's server", 8000: "vLLM", 1234: "LM Studio"}
"""Where such servers listen unless told otherwise."""
EMBEDS = "embedding"
CHATS = "completion"


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where to look; None: where such a service usually is on this machine."""

    ollama: str | None = None
    compatible: str | None = None
    compatible_key: str | None = None
    qdrant: str | None = None
    qdrant_key: str | None = None


async def survey(addresses: Addresses, *, chat_is_open: bool) -> list[Finding]:
    """What answers, at once and each within three seconds. Never raises for what a service does.

    Args:
        addresses: Where to look.
        chat_is_open: No chat model is configured, so that what is found may be advised.
    """
    compatible = [addresses.compatible] if addresses.compatible else [_local(port) for port in COMPATIBLE_PORTS]
    looked: list[Awaitable[Finding | None]] = [
        _ollama(addresses.ollama, advise=chat_is_open),
        *(_compatible(url, addresses.compatible_key, advise=chat_is_open) for url in compatible),
        _qdrant(addresses.qdrant or "http://127.0.0.1:6333", addresses.qdrant_key),
    ]
    return [finding for finding in await asyncio.gather(*looked) if finding is not None]


def _local(port: int) -> str:
    return f"http://127.0.0.1:{port}"


async def _ollama(url: str | None, *, advise: bool) -> Finding:
    try:
        service = Service("Ollama", ollama_url(url), "chat")
        client = new_client(service)
    except RagPilotError as error:
        return Finding("services", "bad", str(error))
    try:
        async with asyncio.timeout(SECONDS):
            found = await _offers(service, client)
    except TimeoutError:
        return Finding("services", "note", f"Ollama at {service.url} did not answer within {SECONDS:g} s.")
    except RagPilotError as error:
        return Finding("services", "note", error.message)
    finally:
        await client.aclose()
    chats = [name for name, kinds in found.items() if CHATS in kinds or not kinds]
    named = [f"{name} ({', '.join(kinds) or 'kind not said'})" for name, kinds in found.items()]
    text = f"Ollama at {service.url} has {_listed(named) or 'no models'}."
    if not advise:
        return Finding("services", "ok", text)
    if not chats:
        return Finding("services", "ok", text, "Get a language model: ollama pull qwen2.5-coder:1.5b")
    return Finding(
        "services", "ok", text, f"To let it answer, set chat.model = {chats[0]!r}.", {"chat.model": chats[0]}
    )


async def _offers(service: Service, client: httpx.AsyncClient) -> dict[str, list[str]]:
    """Model -> what it can do, as far as the server says."""
    names = sorted(await ollama_service.model_names(service, client))[:NAMED]
    models = await asyncio.gather(*(ollama_service.describe(service, client, name) for name in names))
    return {model.name: sorted({CHATS, EMBEDS} & model.capabilities) for model in models}


async def _compatible(url: str, key: str | None, *, advise: bool) -> Finding | None:
    """A server that speaks the OpenAI protocol; None where nothing does."""
    try:
        service = Service("The OpenAI-compatible server", openai_service.base_url(url), "chat")
        client = new_client(service, {"Authorization": f"Bearer {key}"} if key else {})
    except RagPilotError as error:
        return Finding("services", "bad", str(error))
    try:
        async with asyncio.timeout(SECONDS):
            names = sorted(await openai_service.models(service, client))
    except (TimeoutError, RagPilotError):
        return None
    finally:
        await client.aclose()
    text = f"A server at {service.url} speaks the OpenAI protocol and has {_listed(names) or 'no models'}."
    if not advise or not names:
        return Finding("services", "ok", text)
    settings = {"chat.kind": "openai", "chat.url": service.url, "chat.model": names[0]}
    words = ", ".join(f"{key} = {value!r}" for key, value in settings.items())
    return Finding("services", "ok", text, f"To let it answer, set {words}.", settings)


async def _qdrant(url: str, key: str | None) -> Finding:
    connection = QdrantConnection(url, api_key=key, seconds=SECONDS)
    try:
        return Finding("services", "ok", f"Qdrant {await connection.version()} at {url}.")
    except RagPilotError as error:
        return Finding("services", "note", error.message)
    finally:
        await connection.aclose()


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more
