"""What the adapters of HTTP services share: one kind of client, and one way to say that a service failed."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import re
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar
from urllib.parse import urlsplit

import httpx

from ragpilot.errors import (
    ChatModelError,
    ChatModelTimeoutError,
    ChatModelUnavailableError,
    EmbedderError,
    EmbedderUnavailableError,
    RagPilotError,
)

_E = TypeVar("_E", bound=RagPilotError)

CONNECT_SECONDS = 5.0
CERTIFICATE_HINT = "Name a file with the certificate of its authority in SSL_CERT_FILE."
SHOWN_CHARS = 400
"""The most of a service's own words that goes into a message."""

_NO_TLS = frozenset({"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST", "UNKNOWN_PROTOCOL"})
# Terminal controls and bidirectional overrides: a service's words end up in terminals and logs.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Service:
    """A service as messages speak of it, and the errors of the port that it stands behind."""

    vendor: str
    url: str
    section: Literal["chat", "embedder"]
    """The table of the configuration whose keys hints name."""

    @property
    def failed(self) -> type[RagPilotError]:
        """The error for a service that answers, but not as it should."""
        return ChatModelError if self.section == "chat" else EmbedderError

    @property
    def unavailable(self) -> type[RagPilotError]:
        """The error for a service that cannot be reached, or lacks the model."""
        return ChatModelUnavailableError if self.section == "chat" else EmbedderUnavailableError

    @property
    def late(self) -> type[RagPilotError]:
        """The error for a service that takes too long."""
        return ChatModelTimeoutError if self.section == "chat" else EmbedderUnavailableError

    def lost(self, error: httpx.HTTPError) -> RagPilotError:
        """What a failure of the transport means, in words that name the address tried and the next step."""
        words = plain(str(error)) or type(error).__name__
        if isinstance(error, httpx.ProxyError):
            return self.unavailable(
                f"The proxy on the way to {self.vendor} at {self.url} failed: {words}.",
                hint="Check HTTP_PROXY and HTTPS_PROXY, or name the host in NO_PROXY.",
            )
        if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.UnsupportedProtocol):
            return self.unavailable(
                f"{self.vendor} cannot be reached at {self.url}: {connect_words(error, words)}.",
                hint=connect_hint(error, f"{self.section}.url", self.url),
            )
        if isinstance(error, httpx.TimeoutException):
            return self.late(f"{self.vendor} at {self.url} took too long: {words}.")
        return self.unavailable(f"{self.vendor} at {self.url} broke off: {words}.", hint="Ask again; see its log.")

    def foreign(self, what: str) -> RagPilotError:
        """Something answers at the address, but not this service."""
        return self.unavailable(
            f"What answers at {self.url} is no {self.vendor.removeprefix('The ')}: {what}.",
            hint=f"Check {self.section}.url in config.toml.",
        )


def connect_words(error: httpx.HTTPError, words: str) -> str:
    """Why there is no connection; ``words`` where the transport's own say it best."""
    if isinstance(error, httpx.ConnectTimeout):
        return f"no connection within {CONNECT_SECONDS:g} s"
    for cause in _causes(error):
        if isinstance(cause, ConnectionRefusedError):
            return "connection refused"
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"its certificate was not accepted ({cause.verify_message})"
    return "it speaks http, not https" if _speaks_no_tls(error) else words


def connect_hint(error: httpx.HTTPError, key: str, url: str) -> str:
    """The next step; ``key`` is the setting that holds the address, ``url``."""
    if _speaks_no_tls(error):
        return f"Write http://{url.partition('://')[2]} for {key} in config.toml."
    if any(isinstance(cause, ssl.SSLCertVerificationError) for cause in _causes(error)):
        return CERTIFICATE_HINT
    return f"Start it, or set {key} in config.toml."


def _speaks_no_tls(error: httpx.HTTPError) -> bool:
    """Whether the handshake met something that is no TLS at all; its name depends on the version of OpenSSL."""
    return any(isinstance(cause, ssl.SSLError) and cause.reason in _NO_TLS for cause in _causes(error))


def _causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__


def is_loopback_url(url: str) -> bool:
    """Whether ``url`` points to this very machine."""
    host = (urlsplit(url).hostname or "").rstrip(".").lower()
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def new_client(service: Service, headers: Mapping[str, str] | None = None) -> httpx.AsyncClient:
    """A client for one service: no redirect is followed (it would turn a POST into a GET and could carry a key away).

    Loopback never goes through a proxy; other addresses go as the environment says. Waiting is bounded by the
    callers, who alone know what a wait is for; only connecting is bounded here.
    """
    local = is_loopback_url(service.url)
    try:
        return httpx.AsyncClient(
            base_url=service.url,
            headers={"User-Agent": "ragpilot", **(headers or {})},
            trust_env=not local,
            verify=certificates_for(service.url),
            follow_redirects=False,
            timeout=httpx.Timeout(None, connect=CONNECT_SECONDS),
            # Some servers close idle connections after five seconds: a request must not meet one that is closing.
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=8, keepalive_expiry=4.0),
        )
    except OSError as error:
        raise unreadable_certificates(service.unavailable, error) from error
    except ValueError as error:  # a proxy address that httpx cannot read
        raise service.unavailable(
            f"The environment names a proxy that cannot be used: {plain(str(error))}.",
            hint="Check HTTP_PROXY, HTTPS_PROXY and ALL_PROXY.",
        ) from error


def certificates_for(url: str) -> ssl.SSLContext | bool:
    """What httpx checks an https address by: the authorities that SSL_CERT_FILE or SSL_CERT_DIR names, else the usual.

    httpx reads these variables only where it also takes proxies from the environment, which is never so for loopback.
    """
    return httpx.create_ssl_context() if url.lower().startswith("https:") else True


def unreadable_certificates(kind: type[_E], error: OSError) -> _E:
    """The error for a file of certificates that cannot be used."""
    message = f"The certificates that the environment names cannot be read: {plain(str(error))}."
    return kind(message, hint="Check SSL_CERT_FILE and SSL_CERT_DIR.")


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole answer of a service. ``body`` is its JSON, None where it is none."""

    status: int
    text: str
    body: Any
    headers: Mapping[str, str]

    @classmethod
    def of(cls, status: int, text: str, headers: Mapping[str, str]) -> Reply:
        """Read ``text`` as JSON if it is."""
        try:
            return cls(status, text, json.loads(text), headers)
        except (ValueError, RecursionError):
            return cls(status, text, None, headers)

    def complaint(self) -> str:
        """The service's own words about what went wrong, short and without controls."""
        if isinstance(self.body, dict) and isinstance(message := self.body.get("message"), str):
            return plain(message)
        return complaint(self.body) or plain(re.sub(r"<[^>]*>|\s+", " ", self.text)) or f"status {self.status}"


def complaint(body: Any) -> str:
    """The error text in a JSON body: ``{"error": "…"}``, ``{"error": {"message": "…"}}`` or ``{"detail": …}``."""
    if not isinstance(body, dict):
        return ""
    found = body.get("error") or body.get("detail")
    if isinstance(found, dict):
        found = found.get("message") or found.get("error") or json.dumps(found)
    return plain(found if isinstance(found, str) else json.dumps(found)) if found else ""


def plain(text: str, limit: int = SHOWN_CHARS) -> str:
    """``text`` on one line, without controls, at most ``limit`` characters, without a full stop at its end."""
    flat = _CONTROLS.sub("\ufffd", re.sub(r"\s+", " ", text)).strip()
    return flat[:limit].rstrip(" .") + ("…" if len(flat) > limit else "")


async def fetch(
    service: Service, client: httpx.AsyncClient, method: str, path: str, *, seconds: float, body: Any = None
) -> Reply:
    """One whole request, whatever its status. Raises the service's errors for what the transport does.

    Raises:
        TimeoutError: There was no whole answer within ``seconds``; the caller knows which setting that is.
    """
    try:
        async with asyncio.timeout(seconds):
            response = await client.request(method, path, json=body)
    except httpx.HTTPError as error:
        raise service.lost(error) from error
    if response.is_redirect:
        raise redirected(service, response.headers)
    return Reply.of(response.status_code, response.text, response.headers)


def redirected(service: Service, headers: Mapping[str, str]) -> RagPilotError:
    """A service that sends us elsewhere: following could lose the method or give a key away."""
    target = plain(headers.get("location", "another address"))
    return service.unavailable(
        f"{service.vendor} at {service.url} redirects to {target}.",
        hint=f"Set {service.section}.url in config.toml to the address that answers itself.",
    )
