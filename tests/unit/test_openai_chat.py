from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing

import pytest

from ragpilot.adapters.openai_chat import OpenAiChat
from ragpilot.adapters.openai_service import base_url
from ragpilot.adapters.streaming import StreamLimits
from ragpilot.errors import ChatModelError, ChatModelTimeoutError, ChatModelUnavailableError, ConfigError, RagPilotError
from ragpilot.types import ModelUsage, Prompt
from tests.protocol.asking import PROMPT, answer
from tests.protocol.http_server import ProtocolServer, Reply, Request, plain_server
from tests.protocol.openai_server import OpenAiServer, event

pytestmark = pytest.mark.timeout(20)


@pytest.mark.asyncio
async def test_an_answer_arrives_byte_for_byte_and_is_counted() -> None:
    pieces = ["", "a", "\n", "\n\n", "\r\n", "  two", "\u0085", "\u2028", "data: x", "event: y", "\U0001f600", "[1]"]
    usages: list[ModelUsage] = []
    async with OpenAiServer(pieces) as server, aclosing(OpenAiChat(server.url, "qwen")) as chat:
        assert await answer(chat, report=usages.append) == "".join(pieces)
    assert usages[0].answer_tokens == len(pieces)
    assert usages[0].prompt_tokens is not None
    assert usages[0].warnings == ()


@pytest.mark.asyncio
async def test_the_only_model_of_a_server_need_not_be_named() -> None:
    async with OpenAiServer() as server, aclosing(OpenAiChat(server.url, None)) as chat:
        assert await answer(chat) == "The answer is [1]."
        assert chat.identity.name == "qwen"
        [body] = server.sent_to("/v1/chat/completions")
    assert body["model"] == "qwen"
    assert (body["stream"], body["temperature"], body["max_tokens"]) == (True, 0.1, 64)


@pytest.mark.asyncio
async def test_of_several_models_one_must_be_named() -> None:
    async with OpenAiServer() as server, aclosing(OpenAiChat(server.url, None)) as chat:
        server.models.append({"id": "llama"})
        with pytest.raises(ChatModelUnavailableError, match=r"llama, qwen.*chat\.model"):
            await answer(chat)


@pytest.mark.asyncio
@pytest.mark.parametrize(("listed", "window"), [({"max_model_len": 4096}, 4096), ({"owned_by": "llamacpp"}, 2048)])
async def test_the_window_is_lowered_to_what_the_server_gives(listed: dict[str, object], window: int) -> None:
    async with OpenAiServer() as server, aclosing(OpenAiChat(server.url, "qwen")) as chat:
        server.models[0].update(listed)
        assert (await chat.check()).ok
        assert chat.context_window == window


@pytest.mark.asyncio
async def test_a_prompt_that_was_not_read_whole_is_a_warning() -> None:
    usages: list[ModelUsage] = []
    async with OpenAiServer() as server, aclosing(OpenAiChat(server.url, "qwen")) as chat:
        server.prompt_tokens = 2050
        await answer(chat, Prompt("system", (), "question", tokens=7900), report=usages.append)
    assert "Context truncated" in usages[0].warnings[0]


@pytest.mark.asyncio
async def test_reasoning_is_no_answer_text_wherever_it_stands() -> None:
    async with OpenAiServer(["<think>", "hm", "</think>\n", "It is [1]."]) as server:
        server.thoughts = ["Let me see."]
        async with aclosing(OpenAiChat(server.url, "qwen")) as chat:
            assert await answer(chat) == "It is [1]."


@pytest.mark.asyncio
async def test_reasoning_that_ate_the_whole_limit_is_said() -> None:
    async with OpenAiServer([]) as server, aclosing(OpenAiChat(server.url, "qwen")) as chat:
        server.thoughts, server.finish_reason = ["hm"], "length"
        with pytest.raises(ChatModelError, match="spent all 64 tokens on reasoning"):
            await answer(chat)


@pytest.mark.asyncio
async def test_fields_that_a_server_does_not_know_are_left_out() -> None:
    async with OpenAiServer() as server, aclosing(OpenAiChat(server.url, "qwen")) as chat:
        server.unknown_fields = ("stream_options", "max_tokens", "temperature")
        assert await answer(chat) == "The answer is [1]."
        assert await answer(chat) == "The answer is [1]."
        bodies = server.sent_to("/v1/chat/completions")
    assert len(bodies) == 5
    assert bodies[-1]["max_completion_tokens"] == 64
    assert not {"stream_options", "max_tokens", "temperature"} & set(bodies[-1])


@pytest.mark.asyncio
async def test_a_server_that_does_not_stream_is_understood() -> None:
    async def whole(request: Request, reply: Reply) -> None:
        await reply.start("text/event-stream")
        message = {"role": "assistant", "content": "all at once"}
        await reply.chunk(event(choices=[{"message": message, "finish_reason": "stop"}]))
        await reply.end()

    async with OpenAiServer() as server, aclosing(OpenAiChat(server.url, "qwen")) as chat:
        server.chat_fault = whole
        assert await answer(chat) == "all at once"


@pytest.mark.asyncio
@pytest.mark.parametrize("when", ["before the headers", "after the first piece"])
async def test_closing_the_stream_closes_the_connection_within_a_second(when: str) -> None:
    async with OpenAiServer() as server, aclosing(OpenAiChat(server.url, "qwen")) as chat:
        server.gate = asyncio.Semaphore(0)
        stream = chat.stream(PROMPT, temperature=0.1, max_tokens=64)
        if when == "before the headers":
            server.before_headers = asyncio.Event()
            first = asyncio.ensure_future(anext(stream))
            await server.until(lambda: bool(server.sent_to("/v1/chat/completions")))
            first.cancel()
            with pytest.raises(asyncio.CancelledError):
                await first
        else:
            assert await anext(stream) == "The answer "
            await stream.aclose()
        await server.all_closed(but=1)


@pytest.mark.asyncio
async def test_a_wrong_key_is_said_and_not_shown() -> None:
    async with OpenAiServer() as server:
        server.key = "right"
        async with aclosing(OpenAiChat(server.url, "qwen", api_key="wr0ng")) as chat:
            with pytest.raises(ChatModelUnavailableError, match=r"Invalid API Key.*chat\.api_key_env") as caught:
                await answer(chat)
            assert "wr0ng" not in str(caught.value)
            assert not (await chat.check()).ok
        async with aclosing(OpenAiChat(server.url, "qwen", api_key="right")) as chat:
            assert await answer(chat) == "The answer is [1]."


@pytest.mark.asyncio
async def test_no_server_and_another_program_are_said(unused_tcp_port: int) -> None:
    async with aclosing(OpenAiChat(f"http://127.0.0.1:{unused_tcp_port}", "qwen")) as chat:
        with pytest.raises(ChatModelUnavailableError, match=f"127.0.0.1:{unused_tcp_port}/v1: connection refused"):
            await answer(chat)

    async def website(request: Request, reply: Reply) -> None:
        await reply.whole(200, b"<html>hello</html>", "text/html")

    async with ProtocolServer(website) as server, aclosing(OpenAiChat(server.url, "qwen")) as chat:
        with pytest.raises(ChatModelUnavailableError, match="is no OpenAI-compatible server: /models gave no list"):
            await answer(chat)


@pytest.mark.asyncio
async def test_a_wrong_address_says_what_was_asked() -> None:
    async def nowhere(request: Request, reply: Reply) -> None:
        await reply.whole(404, b"<h1>Not here</h1>", "text/html")

    async with ProtocolServer(nowhere) as server, aclosing(OpenAiChat(f"{server.url}/api", "qwen")) as chat:
        with pytest.raises(ChatModelUnavailableError, match=f"{server.url}/api/v1/[a-z/]+ answered 404") as raised:
            await answer(chat)
        assert "/v1 is added" in raised.value.hint

    async with plain_server() as port, aclosing(OpenAiChat(f"https://127.0.0.1:{port}", "qwen")) as chat:
        with pytest.raises(ChatModelUnavailableError, match="it speaks http, not https") as raised:
            await answer(chat)
    assert raised.value.hint == f"Write http://127.0.0.1:{port}/v1 for chat.url in config.toml."


# --- faults of the wire

Fault = Callable[[Request, Reply], Awaitable[None]]


def begins_then(last: bytes | None, how: str = "end") -> Fault:
    async def fault(request: Request, reply: Reply) -> None:
        await reply.start("text/event-stream")
        await reply.chunk(event(choices=[{"delta": {"content": "The "}}]))
        if last is not None:
            await reply.chunk(last)
        if how == "reset":
            reply.reset()
        elif how == "hang_up":
            reply.hang_up()
        else:
            await reply.end()

    return fault


def status(code: int, body: object, headers: dict[str, str] | None = None) -> Fault:
    async def fault(request: Request, reply: Reply) -> None:
        await reply.json(code, body, headers)

    return fault


TOO_LONG = {
    "error": {
        "message": "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens.",
        "code": 400,
    }
}

FAULTS: list[tuple[Fault, type[RagPilotError], str]] = [
    (
        begins_then(b'data: {"error": {"message": "slot \\u001b]0;x\\u0007 died", "code": 500}}\n\n'),
        ChatModelError,
        "slot \ufffd",
    ),
    (begins_then(b'error: {"message": "died", "error": "died"}\n\n'), ChatModelError, "died"),
    (begins_then(b"data: {broken\n\n"), ChatModelError, "no JSON object"),
    (begins_then(b"data: [1]\n\n"), ChatModelError, "no JSON object"),
    (begins_then(None), ChatModelUnavailableError, "broke off before it was done"),
    (begins_then(None, "reset"), ChatModelUnavailableError, "broke off"),
    (begins_then(None, "hang_up"), ChatModelUnavailableError, "broke off"),
    (status(500, {"error": {"message": "CUDA out of memory"}}), ChatModelError, r"\(500\): CUDA out of memory"),
    (status(503, {"error": {"message": "Loading model", "code": 503}}), ChatModelUnavailableError, "still loading"),
    (status(404, {"error": "model not found"}), ChatModelUnavailableError, "no such model or endpoint"),
    (status(400, TOO_LONG), ChatModelError, "4096.*chat.context_window"),
    (status(422, {"detail": [{"msg": "bad"}]}), ChatModelError, "bad"),
    (status(302, {}, {"Location": "https://other/login"}), ChatModelUnavailableError, "redirects to https://other"),
]


@pytest.mark.asyncio
@pytest.mark.parametrize(("fault", "kind", "words"), FAULTS)
async def test_each_fault_is_one_clear_error_and_leaks_nothing(
    fault: Fault, kind: type[RagPilotError], words: str
) -> None:
    async with OpenAiServer() as server:
        server.chat_fault = fault
        async with aclosing(OpenAiChat(server.url, "qwen")) as chat:
            with pytest.raises(kind, match=words):
                await answer(chat)
        await server.all_closed()


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("limits", "words"),
    [
        (StreamLimits(first_token=0.2, idle=5, total=10), "first token within 0.2 s"),
        (StreamLimits(first_token=5, idle=0.2, total=10), "silent for 0.2 s in mid-answer"),
        (StreamLimits(first_token=5, idle=5, total=0.3), "longer than 0.3 s"),
    ],
)
async def test_each_limit_ends_the_wait_and_is_named(limits: StreamLimits, words: str) -> None:
    async with OpenAiServer(["a"] * 10_000) as server:
        if limits.first_token == 0.2:
            server.before_headers = asyncio.Event()
        elif limits.idle == 0.2:
            server.gate = asyncio.Semaphore(0)
        else:
            server.interval = 0.01
        async with aclosing(OpenAiChat(server.url, "qwen", limits=limits)) as chat:
            await chat.prepare()
            with pytest.raises(ChatModelTimeoutError, match=words):
                await answer(chat)
        await server.all_closed()


@pytest.mark.parametrize(
    ("url", "base"),
    [
        ("http://localhost:8080", "http://localhost:8080/v1"),
        ("http://localhost:8080/", "http://localhost:8080/v1"),
        ("http://localhost:8080/v1/", "http://localhost:8080/v1"),
        ("http://localhost:8080//v1//", "http://localhost:8080/v1"),
        ("http://localhost:8080/v1/chat/completions", "http://localhost:8080/v1"),
        ("https://host/openai/v1", "https://host/openai/v1"),
        ("https://host/api/v3", "https://host/api/v3"),
        ("https://host/v1beta/openai", "https://host/v1beta/openai/v1"),
    ],
)
def test_an_address_in_its_spellings(url: str, base: str) -> None:
    assert base_url(url) == base


@pytest.mark.parametrize("url", ["localhost:8080", "ftp://h", "http://ann:secret@h/v1", "http://h/v1?key=1"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        base_url(url)
    assert "secret" not in str(caught.value)
