"""The default choice of a chat model: Ollama if it runs and has the model, else another one; and why."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from ragpilot.adapters import ollama_service
from ragpilot.adapters.http import Service, new_client
from ragpilot.adapters.ollama_chat import OllamaChat
from ragpilot.adapters.ollama_host import ollama_url
from ragpilot.errors import RagPilotError
from ragpilot.ports import ChatModel

NAMED = 12
CHOICE_SECONDS = 3.0
"""The longest that a start waits for Ollama to say whether it is there."""


@dataclass(frozen=True, slots=True)
class ChatChoice:
    """The model that answers, and why it is this one, in words for the person who asks."""

    model: ChatModel
    reason: str


async def choose_chat(
    url: str | None, model: str | None, fallback: ChatModel, *, make: Callable[[str], OllamaChat]
) -> ChatChoice:
    """Ollama's ``model`` if the server at ``url`` has it, else ``fallback``. Never raises for what Ollama does.

    Args:
        url: The server, in any spelling of OLLAMA_HOST; None: this machine, port 11434.
        model: The configured model; None: none was configured.
        fallback: What answers otherwise.
        make: Builds the adapter for a model's name.

    Raises:
        ConfigError: ``url`` is no address.
    """
    address = ollama_url(url)
    if model is None:
        return ChatChoice(fallback, await _offered(address))
    chosen = make(model)
    try:
        async with asyncio.timeout(CHOICE_SECONDS):
            await chosen.prepare()
    except TimeoutError:
        reason = f"Ollama at {address} did not answer within {CHOICE_SECONDS:g} s."
    except RagPilotError as error:
        reason = str(error)
    else:
        return ChatChoice(chosen, f"Ollama at {address} runs and has {model}.")
    await chosen.aclose()
    return ChatChoice(fallback, f"No language model writes the answers: {reason}")


async def _offered(address: str) -> str:
    """Why nothing of Ollama's was chosen where no model is configured: what could be."""
    service = Service("Ollama", address, "chat")
    client = new_client(service)
    try:
        async with asyncio.timeout(CHOICE_SECONDS):
            names = ollama_service.language_models(await ollama_service.offers(service, client, NAMED))
    except (TimeoutError, RagPilotError):
        return f"No language model writes the answers: none is configured, and no Ollama answers at {address}."
    finally:
        await client.aclose()
    if not names:
        return f"No language model writes the answers: Ollama at {address} has none. Get one: {ollama_service.GET_ONE}"
    return (
        "No language model writes the answers, because none is configured. "
        f"Ollama at {address} has {', '.join(names)}: set chat.model in config.toml to one of them."
    )
