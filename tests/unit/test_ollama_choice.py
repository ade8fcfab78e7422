from __future__ import annotations

from contextlib import aclosing

import pytest

from ragpilot.adapters.ollama_chat import OllamaChat
from ragpilot.adapters.ollama_choice import choose_chat
from tests.fakes import ScriptedChatModel
from tests.protocol.ollama_server import Model, OllamaServer

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(20)]

FALLBACK = ScriptedChatModel()


async def test_ollama_is_chosen_where_it_runs_and_has_the_model() -> None:
    async with OllamaServer() as server:
        choice = await choose_chat(server.url, "qwen", FALLBACK, make=lambda name: OllamaChat(server.url, name))
        assert isinstance(choice.model, OllamaChat)
        async with aclosing(choice.model):
            assert choice.reason == f"Ollama at {server.url} runs and has qwen."


async def test_a_missing_model_leaves_the_fallback_and_says_how_to_get_it() -> None:
    async with OllamaServer() as server:
        choice = await choose_chat(server.url, "llama", FALLBACK, make=lambda name: OllamaChat(server.url, name))
        await server.all_closed()
    assert choice.model is FALLBACK
    assert choice.reason.startswith("No language model writes the answers: Ollama at ")
    assert choice.reason.endswith("Get it with: ollama pull llama")


async def test_no_ollama_leaves_the_fallback(unused_tcp_port: int) -> None:
    url = f"http://127.0.0.1:{unused_tcp_port}"
    choice = await choose_chat(url, "qwen", FALLBACK, make=lambda name: OllamaChat(url, name))
    assert choice.model is FALLBACK
    assert url in choice.reason
    assert "connection refused" in choice.reason
    choice = await choose_chat(url, None, FALLBACK, make=lambda name: OllamaChat(url, name))
    assert choice.model is FALLBACK
    assert choice.reason == (
        f"No language model writes the answers: none is configured, and no Ollama answers at {url}."
    )


async def test_without_a_configured_model_those_on_the_server_are_named() -> None:
    models = {"qwen": Model(), "llama": Model(), "nomic": Model(capabilities=["embedding"])}
    async with OllamaServer(models=models) as server:
        choice = await choose_chat(server.url, None, FALLBACK, make=lambda name: OllamaChat(server.url, name))
        assert choice.reason.endswith("has llama:latest, qwen:latest: set chat.model in config.toml to one of them.")
        server.models.clear()
        choice = await choose_chat(server.url, None, FALLBACK, make=lambda name: OllamaChat(server.url, name))
        assert "ollama pull" in choice.reason
    assert choice.model is FALLBACK
