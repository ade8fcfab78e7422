"""Who may speak to this server from where: host names, browser origins, and what CORS tells a browser about them."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable

from ragpilot.config import ServerSettings
from server.problems import Problem, ProblemError

logger = logging.getLogger(__name__)

RawHeaders = Iterable[tuple[bytes, bytes]]
"""Headers as ASGI has them: names in lower case, in the order they came."""

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")
ALLOWED_METHODS = "GET, HEAD, POST, DELETE, OPTIONS"
ALLOWED_HEADERS = "Accept, Authorization, Content-Type, Last-Event-ID, Mcp-Protocol-Version, Mcp-Session-Id"
EXPOSED_HEADERS = "Allow, Mcp-Session-Id, Retry-After, WWW-Authenticate, X-Request-Id"
PREFLIGHT_SECONDS = 600

_AUTHORITY = re.compile(r"(?P<host>\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:[0-9]{1,5})?")
_ORIGIN = re.compile(r"https?://(?P<authority>[^/?#@]+)", re.IGNORECASE)


def header_values(headers: RawHeaders, name: bytes) -> list[str]:
    """All values of one header, stripped, in the order they came."""
    return [value.decode("latin-1").strip() for key, value in headers if key == name]


class Origins:
    """Judges Host and Origin by ``[server]``: loopback names, ``host`` and ``allowed_hosts``; ``cors_origin``.

    A page that has made its own name point to this machine still sends that name as Host, and is refused with 421;
    any other page sends its Origin, and is refused with 403 unless it is the configured one or this server's own.
    """

    def __init__(self, settings: ServerSettings) -> None:
        self._cors_origin = settings.cors_origin
        own = f"[{settings.host}]" if ":" in settings.host else settings.host
        self._hosts = frozenset(host.lower() for host in (*LOOPBACK_NAMES, own, *settings.allowed_hosts))

    def check(self, headers: RawHeaders) -> None:
        """Raises ProblemError where this request must not be served."""
        hosts = header_values(headers, b"host")
        authority = hosts[0].lower() if len(hosts) == 1 else ""
        match = _AUTHORITY.fullmatch(authority)
        if match is None or not {match["host"], authority} & self._hosts:
            logger.warning("refused the host %.200r: the setting server.allowed_hosts adds host names", hosts)
            raise ProblemError(
                Problem(421, "unknown_host", "This server does not answer to that host name (server.allowed_hosts).")
            )
        for origin in header_values(headers, b"origin"):
            if not self._may_read(origin) and not _is_origin_of(origin, authority):
                logger.warning(
                    "refused the origin %.200r: the setting server.cors_origin names the one allowed", origin
                )
                raise ProblemError(
                    Problem(403, "foreign_origin", "Pages of that origin may not use this server (server.cors_origin).")
                )

    def _may_read(self, origin: str) -> bool:
        return bool(self._cors_origin) and origin == self._cors_origin

    def response_headers(self, headers: RawHeaders) -> list[tuple[bytes, bytes]]:
        """What every response carries: leave to read for the configured origin, none for any other."""
        vary = [(b"vary", b"Origin")]
        origins = header_values(headers, b"origin")
        if len(origins) != 1 or not self._may_read(origins[0]):
            return vary
        allowed = (b"access-control-allow-origin", self._cors_origin.encode())
        return [*vary, allowed, (b"access-control-expose-headers", EXPOSED_HEADERS.encode())]

    def preflight_headers(self) -> list[tuple[bytes, bytes]]:
        """What a preflight's response carries beside them."""
        return [
            (b"access-control-allow-methods", ALLOWED_METHODS.encode()),
            (b"access-control-allow-headers", ALLOWED_HEADERS.encode()),
            (b"access-control-max-age", str(PREFLIGHT_SECONDS).encode()),
        ]


def is_preflight(method: str, headers: RawHeaders) -> bool:
    """Whether a browser asks if it may ask."""
    return method == "OPTIONS" and bool(header_values(headers, b"access-control-request-method"))


def _is_origin_of(origin: str, authority: str) -> bool:
    """Whether a page of ``origin`` came from this very server. The scheme is left out: a proxy may add TLS."""
    match = _ORIGIN.fullmatch(origin)
    return match is not None and match["authority"].lower() == authority
