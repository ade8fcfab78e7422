from __future__ import annotations

import os
import signal
from contextlib import aclosing
from pathlib import Path

import pytest

from ragpilot.adapters import llamacpp, llamacpp_process
from ragpilot.adapters.llamacpp import LlamaCppChat
from ragpilot.adapters.streaming import StreamLimits
from ragpilot.errors import ChatModelTimeoutError, ChatModelUnavailableError
from ragpilot.types import ModelUsage, Prompt
from tests.protocol.http_server import Reply, Request
from tests.protocol.openai_server import OpenAiServer, event

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(30)]

PROMPT = Prompt("Answer from the blocks.", (), "where is it?", tokens=20)

# Stand-ins for the process that loads a model: they read the order and answer it.
SERVES = """
import json, sys
sys.stdin.readline()
print(json.dumps({{"url": "{url}"}}), flush=True)
sys.stdin.read()
"""
REFUSES = "import sys, json; sys.stdin.readline(); print(json.dumps({'error': 'bad magic'}), flush=True)"
DIES = "import sys; sys.stdin.readline(); print('ggml: out of memory', file=sys.stderr); sys.exit(1)"
HANGS = "import sys, time; sys.stdin.readline(); time.sleep(60)"


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(llamacpp, "PACKAGE", "json")  # installed, whatever extras are
    file = tmp_path / "small.Q4.gguf"
    file.write_bytes(b"GGUF and so on")
    return file


def runs(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    monkeypatch.setattr(llamacpp_process, "_BOOT", code)


async def test_the_model_is_loaded_by_the_first_question_and_answers(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usages: list[ModelUsage] = []
    async with OpenAiServer() as server, aclosing(LlamaCppChat(model, context_window=4096)) as chat:
        runs(monkeypatch, SERVES.format(url=server.url))
        server.models[0].update(owned_by="llamacpp", meta={"n_ctx": 2048})
        assert "loaded by the first question" in (await chat.check()).detail
        stream = chat.stream(PROMPT, temperature=0.0, max_tokens=9, report=usages.append)
        assert "".join([piece async for piece in stream]) == "The answer is [1]."
        assert chat.pid is not None
        assert chat.identity.name == "small.Q4"
        [body] = server.sent_to("/v1/chat/completions")
        assert body["model"] == "small.Q4"
        assert server.requests[-1].headers["authorization"].startswith("Bearer ")
    assert usages[0].answer_tokens == 2
    assert "loaded by the first question" in (await chat.check()).detail


async def breaks_off(request: Request, reply: Reply) -> None:
    await reply.start("text/event-stream")
    await reply.chunk(event(choices=[{"delta": {"content": "The "}}]))
    reply.hang_up()


async def test_a_dead_process_is_said_and_started_again(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with OpenAiServer() as server, aclosing(LlamaCppChat(model)) as chat:
        runs(monkeypatch, SERVES.format(url=server.url))
        server.chat_fault = breaks_off
        stream = chat.stream(PROMPT, temperature=0.0, max_tokens=9)
        await anext(stream)
        first = chat.pid
        assert first is not None
        os.kill(first, signal.SIGKILL)
        with pytest.raises(ChatModelUnavailableError, match="killed by signal 9"):
            await anext(stream)
        server.chat_fault = None
        pieces = [piece async for piece in chat.stream(PROMPT, temperature=0.0, max_tokens=9)]
        assert "".join(pieces) == "The answer is [1]."
        assert chat.pid not in {None, first}


@pytest.mark.parametrize(("code", "words"), [(REFUSES, "bad magic"), (DIES, "it printed: ggml: out of memory")])
async def test_a_model_that_cannot_be_loaded_is_said(
    model: Path, monkeypatch: pytest.MonkeyPatch, code: str, words: str
) -> None:
    runs(monkeypatch, code)
    async with aclosing(LlamaCppChat(model)) as chat:
        with pytest.raises(ChatModelUnavailableError, match=words):
            await chat.prepare()
        assert chat.pid is None


async def test_loading_ends_at_the_first_tokens_limit(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs(monkeypatch, HANGS)
    async with aclosing(LlamaCppChat(model, limits=StreamLimits(first_token=0.3))) as chat:
        with pytest.raises(ChatModelTimeoutError, match=r"not loaded within 0\.3 s"):
            await chat.prepare()
        assert chat.pid is None


async def test_what_is_no_model_is_said_without_starting_anything(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "text.gguf").write_text("hello")
    for path, words in (
        (tmp_path / "absent.gguf", "cannot be read: No such file"),
        (tmp_path, "cannot be read: Is a directory"),
        (tmp_path / "text.gguf", "is no GGUF model"),
    ):
        async with aclosing(LlamaCppChat(path)) as chat:
            health = await chat.check()
            assert not health.ok
            assert words in health.detail
            with pytest.raises(ChatModelUnavailableError, match=words):
                await anext(chat.stream(PROMPT, temperature=0.0, max_tokens=9))
    monkeypatch.setattr(llamacpp, "PACKAGE", "no_such_package_here")
    async with aclosing(LlamaCppChat(model)) as chat:
        assert "ragpilot[llamacpp]" in (await chat.check()).detail
