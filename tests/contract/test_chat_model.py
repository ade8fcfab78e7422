"""What every ChatModel must do. A further model joins by one line in MODELS."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass

import pytest
import pytest_asyncio

from ragpilot.adapters.extractive import ExtractiveModel
from ragpilot.adapters.ollama_chat import OllamaChat
from ragpilot.adapters.openai_chat import OpenAiChat
from ragpilot.ports import ChatModel
from ragpilot.types import Prompt, Turn
from tests.builders import block, chunk, hit
from tests.fakes import ScriptedChatModel
from tests.protocol.background import in_background
from tests.protocol.ollama_server import OllamaServer
from tests.protocol.openai_server import OpenAiServer

PIECES = ["The ", "budget ", "is ", "enforced ", "in ", "`fill`", " [1]."]
OLLAMA = os.environ.get("RAGPILOT_TEST_OLLAMA_URL")
"""A real server, to run the suite over it as well; with RAGPILOT_TEST_OLLAMA_MODEL, a model that it has."""
REAL_SECONDS = 600
"""For one test over a real model, which has to be loaded and may run on a busy processor."""


def _ollama_server() -> OllamaServer:
    return OllamaServer(PIECES)


def _openai_server() -> OpenAiServer:
    return OpenAiServer(PIECES)


MODELS: dict[str, Callable[[], ChatModel]] = {
    "scripted": lambda: ScriptedChatModel(PIECES),
    "extractive": ExtractiveModel,
    "ollama protocol": lambda: OllamaChat(in_background(_ollama_server), "qwen"),
    "openai protocol": lambda: OpenAiChat(in_background(_openai_server), "qwen"),
}
if OLLAMA:
    _model = os.environ.get("RAGPILOT_TEST_OLLAMA_MODEL", "qwen2.5-coder:1.5b")
    MODELS["ollama"] = lambda: OllamaChat(OLLAMA, _model)

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(REAL_SECONDS)]

TEXT = "def fill(hits, budget):\n    '''Put hits in while the budget lasts.'''\n    return hits[:budget]"
PROMPT = Prompt(
    system="Use the context.",
    blocks=(block(1, hit(chunk("src/prompting.py", TEXT, symbol="fill"))),),
    question="Where is the budget enforced?",
    turns=(Turn("user", "Hello"), Turn("assistant", "Ask me.")),
    tokens=120,
)


@dataclass(frozen=True)
class Case:
    make: Callable[[], ChatModel]
    model: ChatModel


@pytest_asyncio.fixture(params=MODELS)
async def case(request: pytest.FixtureRequest) -> AsyncIterator[Case]:
    make = MODELS[request.param]
    model = make()
    async with asyncio.timeout(REAL_SECONDS if request.param == "ollama" else 30):
        yield Case(make, model)
    await model.aclose()


def opened(model: ChatModel) -> AsyncGenerator[str, None]:
    """A stream that can be closed: the port asks for a generator."""
    stream = model.stream(PROMPT, temperature=0.0, max_tokens=512)
    assert isinstance(stream, AsyncGenerator)
    return stream


async def answer(model: ChatModel, prompt: Prompt = PROMPT, *, max_tokens: int = 512) -> list[str]:
    return [piece async for piece in model.stream(prompt, temperature=0.0, max_tokens=max_tokens)]


async def test_an_answer_comes_in_pieces_of_text(case: Case) -> None:
    pieces = await answer(case.model)
    assert len(pieces) > 3
    assert all(isinstance(piece, str) for piece in pieces)
    assert "".join(pieces).strip()


async def test_the_same_prompt_has_the_same_answer_without_temperature(case: Case) -> None:
    assert "".join(await answer(case.model)) == "".join(await answer(case.model))


async def test_answers_at_once_do_not_mix(case: Case) -> None:
    alone = await answer(case.model)
    assert await asyncio.gather(*(answer(case.model) for _ in range(4))) == [alone] * 4


async def test_closing_the_iterator_ends_it_at_once(case: Case) -> None:
    stream = opened(case.model)
    assert await anext(stream)
    await stream.aclose()
    with pytest.raises(StopAsyncIteration):
        await anext(stream)
    assert await answer(case.model)


async def test_cancelling_the_reader_ends_it(case: Case) -> None:
    read: list[str] = []
    first = asyncio.Event()

    async def reader() -> None:
        async with aclosing(opened(case.model)) as stream:
            async for piece in stream:
                read.append(piece)
                first.set()
                await asyncio.Event().wait()

    task = asyncio.create_task(reader())
    await first.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(read) == 1


async def test_a_stream_that_nobody_reads_costs_nothing(case: Case) -> None:
    await opened(case.model).aclose()


async def test_an_answer_stays_near_its_limit(case: Case) -> None:
    assert len("".join(await answer(case.model, max_tokens=40))) < 400


async def test_the_identity_is_stable_and_complete(case: Case) -> None:
    identity = case.model.identity
    assert identity.name
    assert identity.provider
    await answer(case.model)
    assert case.model.identity == identity == case.make().identity
    assert case.model.context_window >= 2048


async def test_a_check_reports_and_never_raises(case: Case) -> None:
    health = await case.model.check()
    assert health.ok
    assert health.detail
    await case.model.aclose()
    await case.model.check()


async def test_closing_twice_is_harmless(case: Case) -> None:
    await answer(case.model)
    await case.model.aclose()
    await case.model.aclose()
