"""The default choice of a chat model: Ollama if it runs and has the model, else another one; and why."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass

from ragpilot.adapters import ollama_service
from ragpilot.adapters.http import Service, new_client
from ragpilot.adapters.ollama_chat import OllamaChat
from ragpilot.adapters.ollama_host import ollama_url
from ragpilot.errors import ChatModelUnavailableError, RagPilotError
from ragpilot.ports import ChatModel
from ragpilot.types import ModelUsage, Prompt

NAMED = 12
CHOICE_SECONDS = 3.0
"""The longest that a start waits for Ollama to say whether it is there."""

ANEW = "A restart of the server, or the next start of the terminal UI, makes this choice anew."


@dataclass(frozen=True, slots=True)
class ChatChoice:
    """The model that answers, and why it is this one, in words for the person who asks."""

    model: ChatModel
    reason: str


class ChosenAtStart(OllamaChat):
    """A model that nobody asked for by kind: where it goes away, its errors say that it was chosen, and when."""

    async def stream(
        self,
        prompt: Prompt,
        *,
        temperature: float,
        max_tokens: int,
        report: Callable[[ModelUsage], None] | None = None,
    ) -> AsyncGenerator[str, None]:
        """As of every Ollama; the hint of a ChatModelUnavailableError is longer."""
        pieces = super().stream(prompt, temperature=temperature, max_tokens=max_tokens, report=report)
        try:
            async with aclosing(pieces):
                async for piece in pieces:
                    yield piece
        except ChatModelUnavailableError as error:
            first = f"{error.hint.rstrip('.')}; " if error.hint else ""
            hint = f'{first}chat.kind = "auto" chose it at the start, when it answered. {ANEW}'
            raise ChatModelUnavailableError(error.message, hint=hint) from error


async def choose_chat(
    url: str | None,
    model: str | None,
    fallback: Callable[[str | None], ChatModel],
    *,
    make: Callable[[str], ChosenAtStart],
) -> ChatChoice:
    """Ollama's ``model`` if the server at ``url`` has it, else ``fallback``. Never raises for what Ollama does.

    Args:
        url: The server, in any spelling of OLLAMA_HOST; None: this machine, port 11434.
        model: The configured model; None: none was configured.
        fallback: Makes what answers otherwise, from why the configured model does not; None: none is configured.
        make: Builds the adapter for a model's name.

    Raises:
        ConfigError: ``url`` is no address.
    """
    address = ollama_url(url)
    if model is None:
        return ChatChoice(fallback(None), await _offered(address))
    chosen = make(model)
    try:
        async with asyncio.timeout(CHOICE_SECONDS):
            await chosen.prepare()
    except TimeoutError:
        because = f"Ollama did not say within {CHOICE_SECONDS:g} s whether it has {model}"
        seen = f"Asked was Ollama at {address}."
    except ChatModelUnavailableError as error:
        missing = ollama_service.is_missing(error)
        because = (
            f"{model} is not there: `ollama pull {model}`" if missing else f"no Ollama gives {model}: start Ollama"
        )
        seen = error.message
    except RagPilotError as error:
        because, seen = f"{model} cannot answer", str(error)
    else:
        return ChatChoice(chosen, f"Ollama at {address} runs and has {model}. {ANEW}")
    await chosen.aclose()
    return ChatChoice(fallback(because), f"{seen} {ANEW}")


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
