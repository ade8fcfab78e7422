from __future__ import annotations

import pytest

from ragpilot.adapters.ollama_host import ollama_url
from ragpilot.errors import ConfigError

ANY = "0.0.0.0"  # noqa: S104 -- an address to listen on, given to a client


@pytest.mark.parametrize(
    ("value", "url"),
    [
        (None, "http://127.0.0.1:11434"),
        ("", "http://127.0.0.1:11434"),
        ("  ", "http://127.0.0.1:11434"),
        (ANY, "http://127.0.0.1:11434"),
        (f"{ANY}:8080", "http://127.0.0.1:8080"),
        (f"http://{ANY}:11434", "http://127.0.0.1:11434"),
        ("::", "http://[::1]:11434"),
        ("[::]", "http://[::1]:11434"),
        ("[::]:8080", "http://[::1]:8080"),
        ("::1", "http://[::1]:11434"),
        ("[0001:002:003:0004::1]:56789", "http://[1:2:3:4::1]:56789"),
        (":8080", "http://127.0.0.1:8080"),
        ("http://:8080", "http://127.0.0.1:8080"),
        ("localhost", "http://localhost:11434"),
        ("myhost", "http://myhost:11434"),
        ("MyHost:80", "http://myhost:80"),
        ("http://h:1/", "http://h:1"),
        ("http://h", "http://h:80"),
        ("https://h", "https://h:443"),
        ("HTTPS://h:8443", "https://h:8443"),
        ("'http://h:1'", "http://h:1"),
        ("http://h:1//ollama//", "http://h:1/ollama"),
        ("http://h:1/v1", "http://h:1"),
        ("http://h:1/api", "http://h:1"),
        ("http://h:1/ollama/api/chat", "http://h:1/ollama"),
    ],
)
def test_every_spelling_becomes_an_address_to_call(value: str | None, url: str) -> None:
    assert ollama_url(value) == url


@pytest.mark.parametrize("value", ["ftp://h", "h:port", "h:70000", "http://h:1/?a=1", "h h", "http://[::1"])
def test_what_is_no_address_is_refused(value: str) -> None:
    with pytest.raises(ConfigError, match="no address"):
        ollama_url(value)


def test_a_password_in_an_address_is_refused_and_not_quoted_back() -> None:
    with pytest.raises(ConfigError) as caught:
        ollama_url("http://ann:secret@h:1")
    assert "secret" not in str(caught.value)
