"""What the wire does to a streamed answer, whatever protocol it speaks: each is an answer or one clear error."""

from __future__ import annotations

import asyncio
import json
import zlib
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import pytest

from ragpilot.adapters import streaming
from ragpilot.adapters.ollama_chat import OllamaChat
from ragpilot.adapters.openai_chat import OpenAiChat
from ragpilot.adapters.streaming import StreamLimits
from ragpilot.errors import ChatModelError, ChatModelTimeoutError, ChatModelUnavailableError, RagPilotError
from ragpilot.types import ModelUsage, Prompt
from tests.protocol.http_server import Reply, Request
from tests.protocol.ollama_server import OllamaServer, line
from tests.protocol.openai_server import OpenAiServer, event

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(30)]

PROMPT = Prompt("system", (), "question", tokens=10)
TEXT = "na\u00efve \u5b57 \U0001f600"

Chat = OllamaChat | OpenAiChat
Server = OllamaServer | OpenAiServer
Fault = Callable[[Request, Reply], Awaitable[None]]


@dataclass(frozen=True)
class Protocol:
    server: Callable[[], Server]
    chat: Callable[..., Chat]
    path: str
    kind: str
    piece: bytes
    """A piece of an answer, ``TEXT``, unescaped where the protocol allows."""
    last: bytes
    """What ends an answer."""


PROTOCOLS = {
    "ollama": Protocol(
        OllamaServer,
        OllamaChat,
        "/api/chat",
        "application/x-ndjson",
        json.dumps({"message": {"content": TEXT}, "done": False}, ensure_ascii=False).encode() + b"\n",
        line(done=True, done_reason="stop", prompt_eval_count=9, eval_count=4),
    ),
    "openai": Protocol(
        OpenAiServer,
        OpenAiChat,
        "/v1/chat/completions",
        "text/event-stream",
        b"data: " + json.dumps({"choices": [{"delta": {"content": TEXT}}]}, ensure_ascii=False).encode() + b"\n\n",
        event(choices=[{"delta": {}, "finish_reason": "stop"}]) + b"data: [DONE]\n\n",
    ),
}


@pytest.fixture(params=PROTOCOLS)
def protocol(request: pytest.FixtureRequest) -> Protocol:
    return PROTOCOLS[request.param]


async def answer(protocol: Protocol, fault: Fault, **given: Any) -> str:
    """The answer of a server that does ``fault``; nothing may be open afterwards."""
    async with protocol.server() as server:
        server.chat_fault = fault
        async with aclosing(protocol.chat(server.url, "qwen", **given)) as chat:
            await chat.prepare()
            async with asyncio.timeout(10):
                stream = chat.stream(PROMPT, temperature=0.1, max_tokens=64)
                text = "".join([piece async for piece in stream])
            await server.all_closed(but=1)
        await server.all_closed()
    return text


async def test_one_byte_at_a_time(protocol: Protocol) -> None:
    async def dribble(_: Request, reply: Reply) -> None:
        await reply.start(protocol.kind)
        for byte in protocol.piece + protocol.last:
            await reply.chunk(bytes([byte]))
        await reply.end()

    assert await answer(protocol, dribble) == TEXT


async def test_lines_that_end_as_on_windows(protocol: Protocol) -> None:
    async def windows(_: Request, reply: Reply) -> None:
        await reply.start(protocol.kind)
        await reply.chunk((protocol.piece + protocol.last).replace(b"\n", b"\r\n"))
        await reply.end()

    assert await answer(protocol, windows) == TEXT


async def test_headers_that_dribble_in(protocol: Protocol) -> None:
    body = protocol.piece + protocol.last

    async def slow(_: Request, reply: Reply) -> None:
        for byte in b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body):
            await reply.raw(bytes([byte]))
            await asyncio.sleep(0)
        await reply.raw(body)

    async def stuck(_: Request, reply: Reply) -> None:
        await reply.raw(b"HTTP/1.1 200 OK\r\nContent-Le")
        await reply.gone()

    assert await answer(protocol, slow) == TEXT
    with pytest.raises(ChatModelTimeoutError, match=r"no first token within 0\.2 s"):
        await answer(protocol, stuck, limits=StreamLimits(first_token=0.2, idle=5, total=10))


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
async def test_an_answer_that_comes_packed_is_read_and_none_is_asked_for(protocol: Protocol, coding: str) -> None:
    asked: list[str] = []

    async def packed(request: Request, reply: Reply) -> None:
        asked.append(request.headers["accept-encoding"])
        packer = zlib.compressobj(wbits=31 if coding == "gzip" else 15)
        await reply.raw(f"HTTP/1.1 200 OK\r\nContent-Encoding: {coding}\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
        for part in (protocol.piece, protocol.last):
            await reply.chunk(packer.compress(part) + packer.flush(zlib.Z_SYNC_FLUSH))
        await reply.chunk(packer.flush())
        await reply.end()

    assert await answer(protocol, packed) == TEXT
    assert asked == ["identity"]


def whole(status: int, body: bytes, kind: str, **headers: str) -> Fault:
    async def fault(_: Request, reply: Reply) -> None:
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        await reply.whole(status, body, kind, fields)

    return fault


FAULTS: list[tuple[Fault, type[RagPilotError], str]] = [
    (whole(200, b"", "text/plain"), ChatModelUnavailableError, "broke off before"),
    (whole(200, b"<html>sign in</html>", "text/html; charset=utf-8"), ChatModelUnavailableError, "a web page"),
    (whole(200, b"no gzip", "text/plain", content_encoding="gzip"), ChatModelUnavailableError, "broke off"),
    (whole(500, b"<h1>Internal\x1b[2J error</h1>", "text/html"), ChatModelError, r"\(500\): Internal\ufffd\[2J error"),
    (whole(500, b"[" * 10**5, "application/json"), ChatModelError, r"\(500\): \[{400}…"),
    (whole(500, b"", "text/plain"), ChatModelError, r"\(500\): status 500"),
    (whole(500, b"x" * 10**6, "text/plain"), ChatModelError, "x{400}…"),
    (whole(502, b"<h1>Bad Gateway</h1>", "text/html"), ChatModelUnavailableError, r"\(502\): Bad Gateway"),
    (whole(302, b"", "text/html", location="/login"), ChatModelUnavailableError, "redirects to /login"),
    (
        whole(400, b'{"error": {"message": "the request exceeds the available context size (4096 tokens)"}}', "a/b"),
        ChatModelError,
        "longer than qwen reads",
    ),
]


@pytest.mark.parametrize(("fault", "kind", "words"), FAULTS)
async def test_each_answer_that_is_none_is_one_clear_error(
    protocol: Protocol, fault: Fault, kind: type[RagPilotError], words: str
) -> None:
    with pytest.raises(kind, match=words):
        await answer(protocol, fault)


async def test_a_line_without_end_is_given_up(protocol: Protocol, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "LONGEST_LINE", 100_000)

    async def huge(_: Request, reply: Reply) -> None:
        await reply.start(protocol.kind)
        while True:
            await reply.chunk(b"x" * 30_000)

    with pytest.raises(ChatModelError, match="a line of more than 100000 bytes"):
        await answer(protocol, huge)


async def test_a_long_line_that_ends_is_read(protocol: Protocol) -> None:
    text = "word " * 200_000

    async def long(_: Request, reply: Reply) -> None:
        await reply.start(protocol.kind)
        await reply.chunk(protocol.piece.replace(TEXT.encode(), text.encode()))
        await reply.chunk(protocol.last)
        await reply.end()

    assert await answer(protocol, long) == text


# --- of the OpenAI protocol alone

OPENAI = PROTOCOLS["openai"]
SAID = event(choices=[{"delta": {"content": "It is [1]."}}])
STOPPED = event(choices=[{"delta": {}, "finish_reason": "stop"}])


def sends(*chunks: bytes, then: Callable[[Reply], Awaitable[None]] | None = None) -> Fault:
    async def fault(_: Request, reply: Reply) -> None:
        await reply.start("text/event-stream")
        for chunk in chunks:
            await reply.chunk(chunk)
        await (then(reply) if then else reply.end())

    return fault


async def test_events_that_hold_no_text_change_nothing() -> None:
    call = {"tool_calls": [{"index": 0, "function": {"name": "look", "arguments": "{}"}}], "content": None}
    said = sends(
        b": keep-alive\n\n",
        b"retry: 10\nid: 7\n\n",
        event(choices=[], usage=None),
        event(choices=[{"delta": call}]),
        event(choices=[{"delta": None}]),
        event(choices=[{"delta": "odd"}]),
        event(choices=[{"delta": {"reasoning_content": "hm"}}]),
        b"event: message\n" + SAID,
        b": keep-alive\n\n",
        STOPPED,
        event(choices=[], usage={"prompt_tokens": 9, "completion_tokens": 4}),
        b"data: [DONE]\n\n",
    )
    usages: list[ModelUsage] = []
    async with OpenAiServer() as server, aclosing(OpenAiChat(server.url, "qwen")) as chat:
        server.chat_fault = said
        stream = chat.stream(PROMPT, temperature=0.1, max_tokens=64, report=usages.append)
        assert [piece async for piece in stream] == ["It is [1]."]
    assert usages == [ModelUsage(9, 4, ())]


async def test_content_in_parts_is_the_text_of_its_text_parts() -> None:
    parts = [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "It is."}]
    assert await answer(OPENAI, sends(event(choices=[{"delta": {"content": parts}}]), STOPPED)) == "It is."


async def test_one_json_object_instead_of_a_stream_is_an_answer_or_its_error() -> None:
    message = {"choices": [{"message": {"content": "all at once"}, "finish_reason": "stop"}]}
    body = json.dumps(message, indent=2).encode()
    assert await answer(OPENAI, whole(200, body, "application/json")) == "all at once"
    error = json.dumps({"error": {"message": "no slot"}}).encode()
    with pytest.raises(ChatModelError, match="no slot"):
        await answer(OPENAI, whole(200, error, "application/json"))


async def test_an_error_as_an_event_of_its_own() -> None:
    said = sends(SAID, b'event: error\ndata: {"object": "error", "message": "out of memory", "code": 500}\n\n')
    with pytest.raises(ChatModelError, match="failed while it was writing: out of memory"):
        await answer(OPENAI, said)


async def test_after_its_reason_an_answer_is_whole_whatever_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "EPILOGUE_SECONDS", 0.2)

    async def silent(reply: Reply) -> None:
        await reply.gone()

    async def chatters(reply: Reply) -> None:
        while True:
            await reply.chunk(b": keep-alive\n\n")
            await asyncio.sleep(0.01)

    async def hangs_up(reply: Reply) -> None:
        reply.hang_up()

    for then in (None, silent, chatters, hangs_up):
        assert await answer(OPENAI, sends(SAID, STOPPED, then=then)) == "It is [1]."


async def test_comments_do_not_put_off_the_first_token() -> None:
    async def chatters(_: Request, reply: Reply) -> None:
        await reply.start("text/event-stream")
        while True:
            await reply.chunk(b": keep-alive\n\n")
            await asyncio.sleep(0.01)

    with pytest.raises(ChatModelTimeoutError, match=r"no first token within 0\.3 s"):
        await answer(OPENAI, chatters, limits=StreamLimits(first_token=0.3, idle=0.1, total=10))
