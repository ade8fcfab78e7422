from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing

import pytest

from ragpilot.adapters.ollama_chat import OllamaChat
from ragpilot.adapters.streaming import StreamLimits
from ragpilot.errors import ChatModelError, ChatModelTimeoutError, ChatModelUnavailableError, ConfigError, RagPilotError
from ragpilot.types import ModelUsage, Prompt
from tests.protocol.asking import PROMPT, answer
from tests.protocol.http_server import ProtocolServer, Reply, Request
from tests.protocol.ollama_server import Model, OllamaServer, line

pytestmark = pytest.mark.timeout(20)


@pytest.mark.asyncio
async def test_an_answer_arrives_byte_for_byte_and_is_counted() -> None:
    pieces = [
        "",
        "a",
        "\n",
        "\r\n",
        "  two",
        "\u0085",
        "\u2028",
        "data: x",
        "\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16"),
        "[1]",
    ]
    usages: list[ModelUsage] = []
    async with OllamaServer(pieces) as server, aclosing(OllamaChat(server.url, "qwen")) as chat:
        assert await answer(chat, report=usages.append) == "".join(pieces)
    [usage] = usages
    assert usage.prompt_tokens is not None
    assert usage.answer_tokens == len(pieces)
    assert usage.warnings == ()


@pytest.mark.asyncio
async def test_the_window_the_limit_and_keep_alive_always_go_out() -> None:
    async with OllamaServer() as server:
        async with aclosing(OllamaChat(server.url, "qwen", context_window=6000, keep_alive="-1")) as chat:
            await answer(chat)
        [body] = server.sent_to("/api/chat")
    assert body["options"] == {"num_ctx": 6000, "num_predict": 64, "temperature": 0.1}
    assert body["keep_alive"] == -1
    assert (body["truncate"], body["shift"], body["think"], body["stream"]) == (False, False, False, True)
    assert [message["role"] for message in body["messages"]] == ["system", "user"]


@pytest.mark.asyncio
async def test_the_window_is_lowered_to_what_the_model_was_made_for() -> None:
    async with OllamaServer(models={"qwen": Model(context_length=2048)}) as server:
        async with aclosing(OllamaChat(server.url, "qwen", context_window=8192)) as chat:
            assert (await chat.check()).ok
            assert chat.context_window == 2048
            await answer(chat)
        [body] = server.sent_to("/api/chat")
    assert body["options"]["num_ctx"] == 2048


@pytest.mark.asyncio
async def test_a_prompt_that_was_not_read_whole_is_a_warning() -> None:
    usages: list[ModelUsage] = []
    async with OllamaServer() as server, aclosing(OllamaChat(server.url, "qwen")) as chat:
        server.prompt_eval_count = 2050
        await answer(chat, Prompt("system", (), "question", tokens=7900), report=usages.append)
    assert usages[0].prompt_tokens == 2050
    assert "Context truncated" in usages[0].warnings[0]
    assert "2050 of about 7900" in usages[0].warnings[0]


@pytest.mark.asyncio
@pytest.mark.parametrize(("max_tokens", "words"), [(2, "generation limit of 2 tokens"), (64, "context window ended")])
async def test_an_answer_cut_short_is_a_warning_that_says_by_what(max_tokens: int, words: str) -> None:
    usages: list[ModelUsage] = []
    async with OllamaServer() as server, aclosing(OllamaChat(server.url, "qwen")) as chat:
        server.done_reason = "length"
        async for _ in chat.stream(PROMPT, temperature=0.1, max_tokens=max_tokens, report=usages.append):
            pass
    assert words in usages[0].warnings[0]


@pytest.mark.asyncio
async def test_reasoning_is_no_answer_text() -> None:
    async with OllamaServer(["<think>still", " hm</think>", "\n\nIt is ", "[1]."]) as server:
        server.thoughts = ["Let me ", "see."]
        async with aclosing(OllamaChat(server.url, "qwen")) as chat:
            assert await answer(chat) == "It is [1]."


@pytest.mark.asyncio
async def test_reasoning_that_ate_the_whole_limit_is_said() -> None:
    async with OllamaServer([]) as server, aclosing(OllamaChat(server.url, "qwen")) as chat:
        server.thoughts, server.done_reason = ["hm"], "length"
        with pytest.raises(ChatModelError, match="spent all 64 tokens on reasoning"):
            await answer(chat)


@pytest.mark.asyncio
@pytest.mark.parametrize("when", ["before the headers", "after the first piece"])
async def test_closing_the_stream_closes_the_connection_within_a_second(when: str) -> None:
    async with OllamaServer() as server:
        if when == "before the headers":
            server.before_headers = asyncio.Event()
        server.gate = asyncio.Semaphore(0)
        async with aclosing(OllamaChat(server.url, "qwen")) as chat:
            stream = chat.stream(PROMPT, temperature=0.1, max_tokens=64)
            if when == "before the headers":
                first = asyncio.ensure_future(anext(stream))
                await server.until(lambda: bool(server.sent_to("/api/chat")))
                first.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await first
            else:
                assert await anext(stream) == "The answer "
                await stream.aclose()
            # The connection that asked for the model is idle and may live on; the one of the answer may not.
            await server.all_closed(but=1)
        await server.all_closed()


@pytest.mark.asyncio
async def test_no_connection_leaks_over_many_abandoned_answers() -> None:
    async with OllamaServer() as server:
        server.gate = asyncio.Semaphore(0)
        async with aclosing(OllamaChat(server.url, "qwen")) as chat:
            for _ in range(100):
                async with aclosing(chat.stream(PROMPT, temperature=0.1, max_tokens=64)) as stream:
                    assert await anext(stream) == "The answer "
            await server.all_closed(but=1)
        await server.all_closed()


@pytest.mark.asyncio
async def test_a_missing_model_says_how_to_get_it() -> None:
    async with OllamaServer(models={"llama": Model()}) as server, aclosing(OllamaChat(server.url, "qwen3:4b")) as chat:
        with pytest.raises(ChatModelUnavailableError) as caught:
            await answer(chat)
        assert "ollama pull qwen3:4b" in caught.value.hint
        assert "llama:latest" in caught.value.message
        health = await chat.check()
    assert not health.ok
    assert "ollama pull qwen3:4b" in health.detail


@pytest.mark.asyncio
async def test_a_model_that_only_embeds_is_refused() -> None:
    nomic = Model(capabilities=["embedding"])
    async with OllamaServer(models={"nomic": nomic}) as server, aclosing(OllamaChat(server.url, "nomic")) as chat:
        with pytest.raises(ChatModelError, match="cannot chat"):
            await answer(chat)


@pytest.mark.asyncio
async def test_no_server_is_said_with_the_address_tried(unused_tcp_port: int) -> None:
    async with aclosing(OllamaChat(f":{unused_tcp_port}", "qwen")) as chat:
        with pytest.raises(ChatModelUnavailableError, match=f"127.0.0.1:{unused_tcp_port}: connection refused"):
            await answer(chat)
        assert not (await chat.check()).ok


# --- faults of the wire

Fault = Callable[[Request, Reply], Awaitable[None]]


async def error_in_mid_stream(request: Request, reply: Reply) -> None:
    await reply.start("application/x-ndjson")
    await reply.chunk(line(message={"content": "The "}, done=False))
    await reply.chunk(b'{"error":"an error was encountered while\\u001b[31m running the model"}\n')
    await reply.end()


async def reset(request: Request, reply: Reply) -> None:
    await reply.start("application/x-ndjson")
    await reply.chunk(line(message={"content": "The "}, done=False))
    reply.reset()


async def hang_up(request: Request, reply: Reply) -> None:
    await reply.start("application/x-ndjson")
    await reply.chunk(line(message={"content": "The "}, done=False))
    reply.hang_up()


async def ends_without_done(request: Request, reply: Reply) -> None:
    await reply.start("application/x-ndjson")
    await reply.chunk(line(message={"content": "The "}, done=False))
    await reply.end()


async def no_json(request: Request, reply: Reply) -> None:
    await reply.start("application/x-ndjson")
    await reply.chunk(b"<html>\n")
    await reply.end()


async def hang_up_before_the_headers(request: Request, reply: Reply) -> None:
    reply.hang_up()


def status(code: int, words: str, headers: dict[str, str] | None = None) -> Fault:
    async def fault(request: Request, reply: Reply) -> None:
        await reply.json(code, {"error": words}, headers)

    return fault


FAULTS: list[tuple[Fault, type[RagPilotError], str]] = [
    (error_in_mid_stream, ChatModelError, "error was encountered while\ufffd"),
    (reset, ChatModelUnavailableError, "broke off"),
    (hang_up, ChatModelUnavailableError, "broke off"),
    (ends_without_done, ChatModelUnavailableError, "broke off before the answer was done"),
    (no_json, ChatModelError, "no JSON object"),
    (hang_up_before_the_headers, ChatModelUnavailableError, "broke off"),
    (status(500, "llama runner process has terminated: exit status 2"), ChatModelError, r"\(500\): llama runner"),
    (status(503, "server busy, please try again"), ChatModelUnavailableError, "busy"),
    (status(404, "model 'qwen' not found"), ChatModelUnavailableError, "ollama pull qwen"),
    (status(401, "unauthorized"), ChatModelUnavailableError, "chat.api_key_env"),
    (status(400, "the prompt is longer than the context length (4096)"), ChatModelError, "4096.*chat.context_window"),
    (
        status(307, "", {"Location": "http://other:1/api/chat"}),
        ChatModelUnavailableError,
        "redirects to http://other:1",
    ),
]


@pytest.mark.asyncio
@pytest.mark.parametrize(("fault", "kind", "words"), FAULTS)
async def test_each_fault_is_one_clear_error_and_leaks_nothing(
    fault: Fault, kind: type[RagPilotError], words: str
) -> None:
    async with OllamaServer() as server:
        server.chat_fault = fault
        async with aclosing(OllamaChat(server.url, "qwen")) as chat:
            with pytest.raises(kind, match=words):
                await answer(chat)
        await server.all_closed()


@pytest.mark.asyncio
async def test_one_byte_at_a_time_is_an_answer_like_any_other() -> None:
    async def dribble(request: Request, reply: Reply) -> None:
        await reply.start("application/x-ndjson")
        for piece in ("na\u00efve ", "\u5b57"):
            text = line(message={"content": piece}, done=False).decode("unicode_escape").encode()
            for byte in text:
                await reply.chunk(bytes([byte]))
        await reply.chunk(line(done=True, done_reason="stop"))
        await reply.end()

    async with OllamaServer() as server, aclosing(OllamaChat(server.url, "qwen")) as chat:
        server.chat_fault = dribble
        assert await answer(chat) == "na\u00efve \u5b57"


# --- limits


async def assert_late(server: OllamaServer, limits: StreamLimits, words: str) -> None:
    async with asyncio.timeout(20), aclosing(OllamaChat(server.url, "qwen", limits=limits)) as chat:
        await chat.prepare()
        with pytest.raises(ChatModelTimeoutError, match=words):
            await answer(chat)


@pytest.mark.asyncio
async def test_no_first_token_ends_at_its_own_limit() -> None:
    async with OllamaServer() as server:
        server.before_headers = asyncio.Event()
        limits = StreamLimits(first_token=0.2, idle=5, total=10)
        await assert_late(server, limits, "first token within 0.2 s")
        await server.all_closed()


@pytest.mark.asyncio
async def test_silence_in_mid_answer_ends_at_its_own_limit() -> None:
    async with OllamaServer() as server:
        server.gate = asyncio.Semaphore(0)
        limits = StreamLimits(first_token=5, idle=0.2, total=10)
        await assert_late(server, limits, "silent for 0.2 s in mid-answer")
        await server.all_closed()


@pytest.mark.asyncio
async def test_an_endless_answer_ends_at_the_total_limit() -> None:
    async def endless(request: Request, reply: Reply) -> None:
        await reply.start("application/x-ndjson")
        while True:
            await reply.chunk(line(message={"content": "and "}, done=False))
            await asyncio.sleep(0.01)

    async with OllamaServer() as server:
        server.chat_fault = endless
        limits = StreamLimits(first_token=5, idle=5, total=0.3)
        await assert_late(server, limits, "longer than 0.3 s")
        await server.all_closed()


@pytest.mark.asyncio
async def test_a_slow_first_token_within_its_limit_is_no_silence() -> None:
    async with OllamaServer() as server:
        server.before_headers = asyncio.Event()
        limits = StreamLimits(first_token=5, idle=0.1, total=10)
        async with aclosing(OllamaChat(server.url, "qwen", limits=limits)) as chat:
            await chat.prepare()
            asyncio.get_running_loop().call_later(0.3, server.before_headers.set)
            assert await answer(chat) == "The answer is [1]."


# --- address, proxies, configuration


@pytest.mark.asyncio
@pytest.mark.parametrize("proxy", ["http://127.0.0.1:9", "socks5://127.0.0.1:9", "nonsense://x"])
async def test_loopback_never_goes_through_a_proxy(monkeypatch: pytest.MonkeyPatch, proxy: str) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, proxy)
    async with OllamaServer() as server, aclosing(OllamaChat(server.url, "qwen")) as chat:
        assert await answer(chat) == "The answer is [1]."


@pytest.mark.asyncio
async def test_other_addresses_go_through_the_proxy_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(request: Request, reply: Reply) -> None:
        await reply.whole(502, b"no way", "text/plain")

    async with ProtocolServer(refuse) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        async with aclosing(OllamaChat("http://models.example:11434", "qwen")) as chat:
            health = await chat.check()
        assert not health.ok
        assert proxy.requests[0].path == "http://models.example:11434/api/tags"


@pytest.mark.asyncio
async def test_another_program_at_the_address_is_named_as_such() -> None:
    async def website(request: Request, reply: Reply) -> None:
        await reply.whole(200, b"<html>hello</html>", "text/html")

    async with ProtocolServer(website) as server, aclosing(OllamaChat(server.url, "qwen")) as chat:
        with pytest.raises(ChatModelUnavailableError, match="is no Ollama"):
            await answer(chat)


@pytest.mark.asyncio
async def test_a_key_is_sent_and_stands_in_no_message() -> None:
    async with OllamaServer() as server:
        server.chat_fault = status(401, "bad token")
        async with aclosing(OllamaChat(server.url, "qwen", api_key="s3cret")) as chat:
            with pytest.raises(ChatModelUnavailableError) as caught:
                await answer(chat)
        assert server.requests[-1].headers["authorization"] == "Bearer s3cret"
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(("value", "sent"), [("30m", "30m"), ("1h30m", "1h30m"), ("0", 0), ("-1", -1), ("-1m", "-1m")])
def test_keep_alive_in_its_spellings(value: str, sent: str | int) -> None:
    chat = OllamaChat(None, "qwen", keep_alive=value)
    assert chat._body(PROMPT, 0.0, 1)["keep_alive"] == sent


def test_a_keep_alive_that_is_no_duration_is_refused() -> None:
    with pytest.raises(ConfigError, match="is no duration"):
        OllamaChat(None, "qwen", keep_alive="half an hour")
