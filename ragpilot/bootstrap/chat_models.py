"""Chat models, by ``chat.kind``."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from ragpilot.adapters.extractive import ExtractiveModel
from ragpilot.bootstrap.required import needed, secret
from ragpilot.config import ChatSettings, Environment
from ragpilot.errors import ChatModelError
from ragpilot.ports import ChatModel

if TYPE_CHECKING:
    from ragpilot.adapters.ollama_chat import OllamaChat
    from ragpilot.adapters.openai_chat import OpenAiChat
    from ragpilot.adapters.streaming import StreamLimits

_Ollama = TypeVar("_Ollama", bound="OllamaChat")


@dataclass(frozen=True, slots=True)
class ChosenChat:
    """A chat model, and why it is this one."""

    chat: ChatModel
    reason: str = ""


async def chat_of(environment: Environment) -> ChosenChat:
    """The configured chat model, and why it is this one; who asks closes it. Raises ConfigError."""
    chat = environment.settings.chat
    return await CHAT_MODELS[chat.kind](chat)


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

    model = needed("chat.model", chat.model, "qwen2.5-coder:1.5b")
    return await _prepared(_ollama(OllamaChat, chat, model))


async def _openai_chat(chat: ChatSettings) -> ChosenChat:
    from ragpilot.adapters.openai_chat import OpenAiChat

    url = needed("chat.url", chat.url, "http://localhost:8080")
    key = secret("chat.api_key_env", chat.api_key_env)
    limits = _limits(chat)
    return await _prepared(OpenAiChat(url, chat.model, context_window=chat.context_window, limits=limits, api_key=key))


async def _llamacpp(chat: ChatSettings) -> ChosenChat:
    from ragpilot.adapters.llamacpp import LlamaCppChat

    path = Path(needed("chat.model", chat.model, "models/qwen2.5-coder-1.5b-q4_k_m.gguf"))
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
        api_key=secret("chat.api_key_env", chat.api_key_env),
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
