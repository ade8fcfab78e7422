"""OLLAMA_HOST in all its spellings, as an address that a client can call."""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import urlsplit

from ragpilot.errors import ConfigError

DEFAULT_URL = "http://127.0.0.1:11434"
DEFAULT_PORT = 11434

_API_SUFFIX = re.compile(r"/(?:api|v1)(?:/(?:chat|embed|generate|tags))?$")


def ollama_url(value: str | None) -> str:
    """The address of Ollama's server, without a slash at its end.

    Reads it as Ollama does: no scheme means http and port 11434, a scheme without a port its own port, ``:8080`` and an
    empty value this machine. An address to listen on (``0.0.0.0``, ``::``) becomes the loopback of the same kind, and
    the path of an endpoint (``/v1``, ``/api/chat``) is taken off.

    Raises:
        ConfigError: The value is no address.
    """
    text = (value or "").strip().strip("\"'")
    scheme, found, rest = text.partition("://")
    if not found:
        scheme, rest = "http", text
    scheme = scheme.lower()
    address, slash, path = rest.partition("/")
    if address.count(":") > 1 and not address.startswith("["):
        address = f"[{address}]"  # an IPv6 address without brackets, and so without a port
    try:
        parts = urlsplit(f"{scheme}://{address}")
        host, port = parts.hostname or "127.0.0.1", parts.port
    except ValueError:
        raise _unreadable(text) from None
    if scheme not in {"http", "https"} or parts.username is not None or re.search(r"[\s\x00-\x1f?#]", rest):
        raise _unreadable(text)
    if port is None:
        port = {"http": 80, "https": 443}[scheme] if found else DEFAULT_PORT
    path = re.sub(r"/{2,}", "/", slash + path).rstrip("/")
    return f"{scheme}://{_connectable(host)}:{port}{_API_SUFFIX.sub('', path)}"


def _connectable(host: str) -> str:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if address.is_unspecified:
        address = ipaddress.ip_address("127.0.0.1" if address.version == 4 else "::1")
    return f"[{address}]" if address.version == 6 else str(address)


def _unreadable(text: str) -> ConfigError:
    # The value may hold a password: it is not quoted back where it holds one.
    shown = repr(text) if "@" not in text else "the value"
    return ConfigError(
        f"OLLAMA_HOST or the configured url: {shown} is no address such as {DEFAULT_URL}.",
        hint="Write host:port or http://host:port.",
    )
