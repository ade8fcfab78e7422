"""What could be used: which services answer on this machine or at the configured addresses, and what they have."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where to look; None: where such a service usually is on this machine."""

    ollama: str | None = None
    compatible: str | None = None
    compatible_key: str | None = None
    qdrant: str | None = None
    qdrant_key: str | None = None
    needed: frozenset[str] = frozenset()
    """Of ``ollama`` and ``qdrant``: what parts are configured to run on. Those say themselves that it is away."""


async def survey(addresses: Addresses, *, chat_is_open: bool) -> list[Finding]:
    """What answers, at once and each within three seconds. Never raises for what a service does.

    Args:
        addresses: Where to look.
        chat_is_open: No chat model is configured, so that what is found may be advised.
    """
    compatible = [addresses.compatible] if addresses.compatible else [_local(port) for port in COMPATIBLE_PORTS]
    looked: list[Awaitable[Finding | None]] = [
        _ollama(addresses.ollama, advise=chat_is_open, needed="ollama" in addresses.needed),
        *(_compatible(url, addresses.compatible_key, advise=chat_is_open) for url in compatible),
        _qdrant(addresses.qdrant or "http://127.0.0.1:6333", addresses.qdrant_key, needed="qdrant" in addresses.needed),
    ]
    return [finding for finding in await asyncio.gather(*looked) if finding is not None]


def _local(port: int) -> str:
    return f"http://127.0.0.1:{port}"


async def _ollama(url: str | None, *, advise: bool, needed: bool) -> Finding | None:
    try:
        service = Service("Ollama", ollama_url(url), "chat")
        client = new_client(service)
    except RagPilotError as error:
        return Finding("services", "bad", str(error))
    try:
        async with asyncio.timeout(SECONDS):
            found = await ollama_service.offers(service, client, NAMED)
    except TimeoutError:
        return _away(f"Ollama at {service.url} did not answer within {SECONDS:g} s", needed=needed)
    except RagPilotError as error:
        return _away(error.message, needed=needed)
    finally:
        await client.aclose()
    chats = ollama_service.language_models(found)
    named = [f"{name} ({', '.join(map(_kind, kinds)) or 'kind not said'})" for name, kinds in found.items()]
    text = f"Ollama at {service.url} has {_listed(named) or 'no models'}."
    if not advise:
        return Finding("services", "ok", text)
    if not chats:
        return Finding("services", "ok", text, f"Get a language model: {ollama_service.GET_ONE}")
    return Finding(
        "services",
        "ok",
        text,
        f'To let it write the answers, set chat.model = "{chats[0]}" in config.toml; `ragpilot doctor --fix` does.',
        {"chat.model": chats[0]},
    )


def _kind(capability: str) -> str:
    return "language model" if capability == ollama_service.CHATS else "embeds"


def _away(why: str, *, needed: bool) -> Finding | None:
    """A service that does not answer; None where a part needs it, and says so itself."""
    return None if needed else Finding("services", "note", f"{why.rstrip('.')}. Nothing here is configured to need it.")


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
    words = ", ".join(f'{key} = "{value}"' for key, value in settings.items())
    return Finding("services", "ok", text, f"To let it write the answers, set {words} in config.toml.", settings)


async def _qdrant(url: str, key: str | None, *, needed: bool) -> Finding | None:
    connection = QdrantConnection(url, api_key=key, seconds=SECONDS)
    try:
        return Finding("services", "ok", f"Qdrant {await connection.version()} at {url}.")
    except RagPilotError as error:
        return _away(error.message, needed=needed)
    finally:
        await connection.aclose()


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more
