from __future__ import annotations

from contextlib import aclosing

import pytest

from ragpilot.adapters.extractive import ExtractiveModel
from ragpilot.adapters.ollama_choice import ChosenAtStart, choose_chat
from ragpilot.errors import ChatModelUnavailableError
from tests.protocol.asking import answer
from tests.protocol.ollama_server import Model, OllamaServer

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(20)]

ANEW = "A restart of the server, or the next start of the terminal UI, makes this choice anew."


async def test_ollama_is_chosen_where_it_runs_and_has_the_model() -> None:
    async with OllamaServer() as server:
        choice = await choose_chat(
            server.url, "qwen", ExtractiveModel, make=lambda name: ChosenAtStart(server.url, name)
        )
        assert isinstance(choice.model, ChosenAtStart)
        async with aclosing(choice.model):
            assert choice.reason == f"Ollama at {server.url} runs and has qwen. {ANEW}"
            assert choice.model.identity.name == "qwen"


async def test_a_missing_model_leaves_the_fallback_and_says_how_to_get_it() -> None:
    async with OllamaServer() as server:
        choice = await choose_chat(
            server.url, "llama", ExtractiveModel, make=lambda name: ChosenAtStart(server.url, name)
        )
        await server.all_closed()
    assert isinstance(choice.model, ExtractiveModel)
    assert choice.reason.startswith(f"Ollama at {server.url} does not have the model llama.")
    assert choice.reason.endswith(ANEW)
    assert (await choice.model.check()).detail == "extracts, because llama is not there: `ollama pull llama`"
    first = (await answer(choice.model)).split("\n")[0]
    assert first == "*Extract: the best passages, quoted, because llama is not there: `ollama pull llama`.*"


async def test_no_ollama_leaves_the_fallback(unused_tcp_port: int) -> None:
    url = f"http://127.0.0.1:{unused_tcp_port}"
    choice = await choose_chat(url, "qwen", ExtractiveModel, make=lambda name: ChosenAtStart(url, name))
    assert isinstance(choice.model, ExtractiveModel)
    assert url in choice.reason
    assert "connection refused" in choice.reason
    assert (await choice.model.check()).detail == "extracts, because no Ollama gives qwen: start Ollama"
    choice = await choose_chat(url, None, ExtractiveModel, make=lambda name: ChosenAtStart(url, name))
    assert isinstance(choice.model, ExtractiveModel)
    assert choice.reason == (
        f"No language model writes the answers: none is configured, and no Ollama answers at {url}."
    )


async def test_without_a_configured_model_those_on_the_server_are_named() -> None:
    models = {"qwen": Model(), "llama": Model(), "nomic": Model(capabilities=["embedding"])}
    async with OllamaServer(models=models) as server:
        choice = await choose_chat(server.url, None, ExtractiveModel, make=lambda name: ChosenAtStart(server.url, name))
        assert choice.reason.endswith("has llama:latest, qwen:latest: set chat.model in config.toml to one of them.")
        server.models.clear()
        choice = await choose_chat(server.url, None, ExtractiveModel, make=lambda name: ChosenAtStart(server.url, name))
        assert "ollama pull" in choice.reason
    assert isinstance(choice.model, ExtractiveModel)


async def test_a_chosen_model_that_goes_away_says_that_it_was_chosen_at_the_start() -> None:
    async with OllamaServer() as server:
        choice = await choose_chat(
            server.url, "qwen", ExtractiveModel, make=lambda name: ChosenAtStart(server.url, name)
        )
        server.models.clear()
        async with aclosing(choice.model):
            with pytest.raises(ChatModelUnavailableError) as raised:
                await answer(choice.model)
    assert raised.value.hint == (
        f'Get it with: ollama pull qwen; chat.kind = "auto" chose it at the start, when it answered. {ANEW}'
    )
