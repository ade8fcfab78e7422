from __future__ import annotations

import importlib.util

import httpx
import pytest

from ragpilot.adapters.http import Reply, Service, is_loopback_url, new_client, plain
from ragpilot.errors import ChatModelError, ChatModelUnavailableError, EmbedderError

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
@pytest.mark.skipif(importlib.util.find_spec("socksio") is not None, reason="socksio is installed")
async def test_a_socks_proxy_without_its_package_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:9")
    with pytest.raises(ChatModelUnavailableError, match="socksio"):
        new_client(CHAT)
    await new_client(Service("Ollama", "http://localhost:1", "chat")).aclose()


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
