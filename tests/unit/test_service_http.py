from __future__ import annotations

import asyncio

import httpx
import pytest

from ragpilot.adapters.http import Reply, Service, fetch, is_loopback_url, new_client, plain
from ragpilot.errors import ChatModelError, ChatModelUnavailableError, EmbedderError
from tests.protocol.http_server import ProtocolServer, Request
from tests.protocol.http_server import Reply as ServerReply
from tests.protocol.listening import listening

CHAT = Service("Ollama", "http://models.example:11434", "chat")
EMBEDDER = Service("Ollama", "http://models.example:11434", "embedder")


def subclasses(kind: type[httpx.HTTPError]) -> list[type[httpx.HTTPError]]:
    """``kind`` and all below it that are httpx's own: other packages derive theirs from them."""
    own = [found for found in kind.__subclasses__() if found.__module__.startswith("httpx")]
    return [kind, *(deeper for found in own for deeper in subclasses(found))]


@pytest.mark.parametrize("kind", subclasses(httpx.HTTPError))
def test_every_failure_of_the_transport_is_an_error_of_ours(kind: type[httpx.HTTPError]) -> None:
    if kind is httpx.HTTPStatusError:
        error: httpx.HTTPError = httpx.HTTPStatusError(
            "no", request=httpx.Request("GET", "http://h"), response=httpx.Response(500)
        )
    else:
        error = kind("went wrong")
    assert isinstance(CHAT.lost(error), ChatModelError)
    assert isinstance(EMBEDDER.lost(error), EmbedderError)
    assert CHAT.url in str(CHAT.lost(error))


@pytest.mark.parametrize(
    ("url", "loopback"),
    [
        ("http://127.0.0.1:1", True),
        ("http://127.9.9.9", True),
        ("http://[::1]:1", True),
        ("http://localhost:1/v1", True),
        ("http://ollama.localhost", True),
        ("http://LOCALHOST.", True),
        ("http://localhost.example", False),
        ("http://10.0.0.1", False),
        ("http://0.example", False),
    ],
)
def test_loopback_is_known_by_its_address(url: str, loopback: bool) -> None:
    assert is_loopback_url(url) is loopback


@pytest.mark.asyncio
async def test_a_socks_proxy_is_used_for_others_and_never_for_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bytes] = []

    async def socks(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(3)
        writer.write(b"\x05\x00")
        _, _, _, _, length = await reader.readexactly(5)
        asked.append(await reader.readexactly(length + 2))
        writer.write(b"\x05\x00\x00\x01" + bytes(6))
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")

    async with asyncio.timeout(10), listening(socks) as port:
        monkeypatch.setenv("ALL_PROXY", f"socks5://127.0.0.1:{port}")
        async with new_client(CHAT) as client:
            assert (await fetch(CHAT, client, "GET", "/", seconds=5)).body == {}
        assert asked == [b"models.example" + (11434).to_bytes(2, "big")]
        async with ProtocolServer(nothing) as server:
            local = Service("Ollama", server.url, "chat")
            async with new_client(local) as client:
                assert (await fetch(local, client, "GET", "/", seconds=5)).status == 204
    assert len(asked) == 1


async def nothing(_: Request, reply: ServerReply) -> None:
    await reply.whole(204, b"", "text/plain")


def test_a_proxy_that_is_no_address_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "gopher://x:1")
    with pytest.raises(ChatModelUnavailableError, match="proxy that cannot be used"):
        new_client(CHAT)


def test_a_services_words_are_made_harmless() -> None:
    assert plain("a\x1b[31mb\x07\u202ec  \n d.") == "a\ufffd[31mb\ufffd\ufffdc d"
    assert plain("x" * 1000) == "x" * 400 + "…"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"error": "plain"}', "plain"),
        ('{"error": {"message": "nested", "code": 1}}', "nested"),
        ('{"object": "error", "message": "flat"}', "flat"),
        ('{"detail": [{"msg": "listed"}]}', '[{"msg": "listed"}]'),
        ("<html><body><h1>502 Bad Gateway</h1></body></html>", "502 Bad Gateway"),
        ("", "status 502"),
        ("[]", "[]"),
    ],
)
def test_the_complaint_is_found_in_every_shape(text: str, words: str) -> None:
    assert Reply.of(502, text, {}).complaint() == words
