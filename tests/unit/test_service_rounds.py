"""Five hundred answers in a row, nearly all of them broken in some way: nothing is left over."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing

import pytest

from ragpilot.adapters.ollama_chat import OllamaChat
from ragpilot.adapters.openai_chat import OpenAiChat
from ragpilot.errors import ChatModelError
from ragpilot.types import Prompt
from tests.protocol.http_server import ProtocolServer, Reply, Request
from tests.protocol.ollama_server import OllamaServer, line
from tests.protocol.openai_server import OpenAiServer, event

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(60)]

ROUNDS = 500
PROMPT = Prompt("system", (), "question", tokens=10)

Fault = Callable[[Request, Reply], Awaitable[None]]


def faults(kind: str, piece: bytes) -> list[Fault]:
    async def error_status(request: Request, reply: Reply) -> None:
        await reply.json(500, {"error": "broken"})

    async def error_in_the_middle(request: Request, reply: Reply) -> None:
        await reply.start(kind)
        await reply.chunk(piece)
        await reply.chunk(b'data: {"error": "broken"}\n\n' if b"data:" in piece else b'{"error": "broken"}\n')
        await reply.end()

    async def reset(request: Request, reply: Reply) -> None:
        await reply.start(kind)
        await reply.chunk(piece)
        reply.reset()

    async def hang_up(request: Request, reply: Reply) -> None:
        reply.hang_up()

    async def endless(request: Request, reply: Reply) -> None:
        await reply.start(kind)
        while True:
            await reply.chunk(piece)
            await asyncio.sleep(0)

    return [error_status, error_in_the_middle, reset, hang_up, endless]


async def rounds(server: ProtocolServer, chat: OllamaChat | OpenAiChat, choose: Callable[[int], None]) -> None:
    before = len(asyncio.all_tasks())
    for number in range(ROUNDS):
        choose(number)
        try:
            async with aclosing(chat.stream(PROMPT, temperature=0.0, max_tokens=9)) as stream:
                async for _ in stream:
                    if number % 5 == 4:  # an endless answer, which the reader leaves
                        break
        except ChatModelError:
            assert number % 5 != 4
        else:
            assert number % 5 == 4
    await server.all_closed(but=1)
    # One task a connection that is still open, the server's own.
    assert len(asyncio.all_tasks()) <= before + 2


async def test_ollama_leaves_nothing_over() -> None:
    broken = faults("application/x-ndjson", line(message={"content": "a"}, done=False))
    async with OllamaServer() as server, aclosing(OllamaChat(server.url, "qwen")) as chat:

        def choose(number: int) -> None:
            server.chat_fault = broken[number % 5]

        await rounds(server, chat, choose)


async def test_a_compatible_server_leaves_nothing_over() -> None:
    broken = faults("text/event-stream", event(choices=[{"delta": {"content": "a"}}]))
    async with OpenAiServer() as server, aclosing(OpenAiChat(server.url, "qwen")) as chat:

        def choose(number: int) -> None:
            server.chat_fault = broken[number % 5]

        await rounds(server, chat, choose)
