"""Five hundred answers in a row, nearly all of them broken in some way: nothing is left over."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing

import pytest

from ragpilot.adapters.ollama_chat import OllamaChat
from ragpilot.adapters.openai_chat import OpenAiChat
from ragpilot.adapters.qdrant_store import QdrantStore
from ragpilot.errors import ChatModelError, StoreError
from ragpilot.types import EmbedderIdentity, IndexIdentity, IngestScope, Prompt
from tests.fakes import ANN, OPERATOR
from tests.protocol.http_server import Reply, Request
from tests.protocol.ollama_server import OllamaServer, line
from tests.protocol.openai_server import OpenAiServer, event
from tests.protocol.qdrant_server import QdrantServer

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

    async def redirect(request: Request, reply: Reply) -> None:
        await reply.json(302, {}, {"Location": "/login"})

    async def too_long(request: Request, reply: Reply) -> None:
        await reply.json(400, {"error": "the prompt exceeds the context length"})

    async def web_page(request: Request, reply: Reply) -> None:
        await reply.whole(200, b"<html>", "text/html")

    async def half_of_the_headers(request: Request, reply: Reply) -> None:
        await reply.raw(b"HTTP/1.1 200 OK\r\nContent-Ty")
        reply.hang_up()

    async def no_gzip(request: Request, reply: Reply) -> None:
        await reply.whole(200, b"no gzip", kind, {"Content-Encoding": "gzip"})

    async def empty(request: Request, reply: Reply) -> None:
        await reply.whole(200, b"", kind)

    async def endless(request: Request, reply: Reply) -> None:
        await reply.start(kind)
        while True:
            await reply.chunk(piece)
            await asyncio.sleep(0)

    broken = [error_status, error_in_the_middle, reset, hang_up, redirect, too_long, web_page]
    return [*broken, half_of_the_headers, no_gzip, empty, endless]


async def rounds(server: OllamaServer | OpenAiServer, chat: OllamaChat | OpenAiChat, broken: Sequence[Fault]) -> None:
    before = len(asyncio.all_tasks())
    for number in range(ROUNDS):
        server.chat_fault = broken[number % len(broken)]
        endless = server.chat_fault is broken[-1]
        try:
            async with aclosing(chat.stream(PROMPT, temperature=0.0, max_tokens=9)) as stream:
                async for _ in stream:
                    if endless:  # the reader leaves it
                        break
        except ChatModelError:
            assert not endless
        else:
            assert endless
    await server.all_closed(but=1)
    # One task a connection that is still open, the server's own.
    assert len(asyncio.all_tasks()) <= before + 2


async def test_ollama_leaves_nothing_over() -> None:
    broken = faults("application/x-ndjson", line(message={"content": "a"}, done=False))
    async with OllamaServer() as server, aclosing(OllamaChat(server.url, "qwen")) as chat:
        await rounds(server, chat, broken)


async def test_a_compatible_server_leaves_nothing_over() -> None:
    broken = faults("text/event-stream", event(choices=[{"delta": {"content": "a"}}]))
    async with OpenAiServer() as server, aclosing(OpenAiChat(server.url, "qwen")) as chat:
        await rounds(server, chat, broken)


@pytest.mark.filterwarnings("ignore:Local mode performs exact")
@pytest.mark.filterwarnings("ignore:Payload indexes have no effect")
async def test_a_store_leaves_nothing_over() -> None:
    broken = faults("application/json", b"{")[:-1]  # an endless answer ends at the limit of the call, which takes long
    turn = 0

    async def fault(request: Request, reply: Reply) -> bool:
        if turn % (len(broken) + 1) == len(broken):
            return False
        await broken[turn % (len(broken) + 1)](request, reply)
        return True

    async with QdrantServer() as server, aclosing(QdrantStore(server.url, pause=0.0)) as store:
        await store.ensure(IngestScope(OPERATOR, "default"), IndexIdentity(EmbedderIdentity("fake", 4), "chunker-1"))
        before, server.fault = len(asyncio.all_tasks()), fault
        for turn in range(ROUNDS):
            try:
                assert await store.count(ANN, "default") == 0
            except StoreError:
                assert turn % (len(broken) + 1) != len(broken)
            else:
                assert turn % (len(broken) + 1) == len(broken)
        await server.all_closed(but=1)
        assert len(asyncio.all_tasks()) <= before + 2
