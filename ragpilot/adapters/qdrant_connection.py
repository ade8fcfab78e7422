"""One connection to a Qdrant server: opened at first use, its version checked, its failures in our words."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import warnings
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import grpc  # type: ignore[import-untyped]
import httpx
from pydantic import ValidationError
from qdrant_client import AsyncQdrantClient
from qdrant_client.common.client_exceptions import QdrantException, ResourceExhaustedResponse
from qdrant_client.http.exceptions import ApiException, ResponseHandlingException, UnexpectedResponse

from ragpilot.adapters.http import (
    CERTIFICATE_HINT,
    Reply,
    certificates_for,
    connect_hint,
    connect_words,
    is_loopback_url,
    plain,
    unreadable_certificates,
)
from ragpilot.errors import StoreError, StoreUnavailableError

logger = logging.getLogger(__name__)

_T = TypeVar("_T")

OLDEST = (1, 19)
"""Older servers ignore per-actor term statistics without a word, and so leak through scores."""
NEWEST_KNOWN = (1, 21)
"""One minor version ahead of the client, as its makers promise."""
DEFAULT_PORT = 6333
GRPC_PORT = 6334
PORTS_HINT = (
    f"If this is its gRPC port: store.url wants the one of REST ({DEFAULT_PORT}); "
    f"that of gRPC ({GRPC_PORT}) goes into store.grpc_port."
)
CONNECTIONS = httpx.Limits(max_connections=None, max_keepalive_connections=8, keepalive_expiry=4.0)
"""The client's own are closed after each request to this machine."""
RETRIES = 3
TRANSIENT = {429, 502, 503, 504}
_TRANSIENT_GRPC = {
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.ABORTED,
}
LONGEST_PAUSE = 10.0
CHECK_SECONDS = 3.0


class MissingError(Exception):
    """What was asked for is not on the server; the caller knows what that means."""


class ExistsError(Exception):
    """What was to be created is there already."""


class QdrantConnection:
    """Calls the server, again after a transient failure: every call is one that may be made twice."""

    def __init__(
        self,
        url: str,
        *,
        api_key: str | None = None,
        grpc_port: int | None = None,
        seconds: float = 60.0,
        pause: float = 0.5,
        client: AsyncQdrantClient | None = None,
    ) -> None:
        """Connects to nothing yet.

        Args:
            url: The server's REST address.
            api_key: Sent with every request.
            grpc_port: Use gRPC at this port for reads and writes; None: REST.
            seconds: The longest wait for one call.
            pause: Seconds before the first repetition; doubled before each further one.
            client: An open client to use instead, such as one in local mode.
        """
        self.url = url
        self._api_key = api_key
        self._grpc_port = grpc_port
        self._seconds = seconds
        self._pause = pause
        self._client = client
        self._version: str | None = None

    async def call(
        self,
        work: Callable[[AsyncQdrantClient], Awaitable[_T]],
        *,
        retries: int = RETRIES,
        seconds: float | None = None,
    ) -> _T:
        """The result of ``work`` with the client.

        Raises:
            MissingError: The server answered that the collection is not there.
            ExistsError: The server answered that the collection is there already.
            StoreUnavailableError: It cannot be reached, is too old, refuses the key, or stays busy.
            StoreError: It refused the request or failed.
        """
        limit = min(seconds or self._seconds, self._seconds)
        for attempt in range(retries + 1):
            try:
                async with asyncio.timeout(limit):
                    client = self._open()
                    if self._version is None:
                        self._version = self._accepted((await client.info()).version)
                    return await work(client)
            except TimeoutError:
                raise StoreUnavailableError(
                    f"Qdrant at {self.url} gave no answer within {limit:g} s.", hint="See the server's log."
                ) from None
            except (ApiException, QdrantException, grpc.RpcError, ValueError, RecursionError) as error:
                again = _transient(error)
                if again is None or attempt == retries:
                    raise self._translated(error) from error
                # Its words may repeat what it was sent.
                logger.info("Qdrant is asked again after: %s", type(error).__name__)
                logger.debug("%s", plain(str(error)))
                await asyncio.sleep(min(max(again, self._pause * 2**attempt), LONGEST_PAUSE))
        raise AssertionError("unreachable")

    async def version(self) -> str:
        """The server's version, if it lets us in: asked for now and once. Raises as ``call``."""
        return await self.call(_version_of, retries=0, seconds=CHECK_SECONDS)

    async def aclose(self) -> None:
        """Close the connection. Idempotent."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    def _open(self) -> AsyncQdrantClient:
        if self._client is None:
            self._client = self._connected()
        return self._client

    def _connected(self) -> AsyncQdrantClient:
        local = is_loopback_url(self.url)
        if self._api_key and self.url.startswith("http://") and not local:
            logger.warning("the key for Qdrant goes to %s unencrypted; use https", self.url)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # about the key, which was said above
                return AsyncQdrantClient(
                    url=self.url,
                    port=None if urlsplit(self.url).port else DEFAULT_PORT,
                    api_key=self._api_key,
                    timeout=max(1, int(self._seconds)),
                    check_compatibility=False,  # it would block, and only warn
                    trust_env=not local,
                    verify=certificates_for(self.url),
                    limits=CONNECTIONS,
                    **self._grpc(local=local),
                )
        except OSError as error:
            raise unreadable_certificates(StoreUnavailableError, error) from error

    def _grpc(self, *, local: bool) -> dict[str, Any]:
        if self._grpc_port is None:
            return {}
        options: dict[str, Any] = {"grpc.enable_http_proxy": 0} if local else {}
        # gRPC has authorities of its own, and a variable of its own for others.
        if self.url.startswith("https:") and (named := os.environ.get("SSL_CERT_FILE")):
            options["root_certificates"] = Path(named).read_bytes()
        return {"prefer_grpc": True, "grpc_port": self._grpc_port, "grpc_options": options}

    def _accepted(self, version: str) -> str:
        """``version``, if this adapter can work with it."""
        match = re.match(r"(\d+)\.(\d+)", version)
        found = (int(match[1]), int(match[2])) if match else None
        if found is None or found[0] != OLDEST[0] or found < OLDEST:
            oldest = ".".join(map(str, OLDEST))
            raise StoreUnavailableError(
                f"Qdrant at {self.url} has version {plain(version, 40)}; RagPilot needs {oldest} or newer, below 2.",
                hint="Older servers rank by documents that the asker may not read. Upgrade the server.",
            )
        if found > NEWEST_KNOWN:
            logger.warning("Qdrant at %s has version %s, which this client does not know yet", self.url, version)
        return version

    def _translated(self, error: Exception) -> Exception:
        if isinstance(error, UnexpectedResponse):
            return self._refused(error)
        if isinstance(error, ResponseHandlingException):
            error = error.source
        if isinstance(error, json.JSONDecodeError | ValidationError | RecursionError):
            return self._foreign("its answer cannot be read")
        if isinstance(error, httpx.HTTPError):
            return self._lost(error)
        if isinstance(error, grpc.aio.AioRpcError):
            return self._refused_by_grpc(error)
        if isinstance(error, ResourceExhaustedResponse):
            return StoreUnavailableError(f"Qdrant at {self.url} is busy: {plain(error.message)}.")
        if isinstance(error, ValueError):  # how local mode says it
            words = str(error)
            if "not found" in words:
                return MissingError(words)
            if "already exists" in words:
                return ExistsError(words)
        return StoreError(f"Qdrant at {self.url} failed: {plain(str(error))}.")

    def _lost(self, error: httpx.HTTPError) -> StoreError:
        words = plain(str(error)) or type(error).__name__
        if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
            return StoreUnavailableError(
                f"Qdrant cannot be reached at {self.url}: {connect_words(error, words)}.",
                hint=connect_hint(error, "store.url", self.url),
            )
        rest = isinstance(error, httpx.RemoteProtocolError) or urlsplit(self.url).port == GRPC_PORT
        return StoreUnavailableError(
            f"The connection to Qdrant at {self.url} was lost: {words}.", hint=PORTS_HINT if rest else ""
        )

    def _refused(self, error: UnexpectedResponse) -> Exception:
        status = error.status_code or 0
        reply = Reply.of(status, error.content.decode("utf-8", "replace"), {})
        words = _complaint(reply)
        if status == httpx.codes.NOT_FOUND and isinstance(reply.body, dict):
            return MissingError(words)
        if status == httpx.codes.CONFLICT or "already exists" in words:
            return ExistsError(words)
        if status in {401, 403}:
            return self._denied(words)
        if status in TRANSIENT:
            return StoreUnavailableError(f"Qdrant at {self.url} is busy or not ready ({status}): {words}.")
        if status in {301, 302, 303, 307, 308, 404}:
            return self._foreign(f"it answered with status {status}")
        return StoreError(f"Qdrant at {self.url} refused the request ({status}): {words}.")

    def _refused_by_grpc(self, error: grpc.aio.AioRpcError) -> Exception:
        code, words = error.code(), plain(error.details() or "")
        if code == grpc.StatusCode.NOT_FOUND:
            return MissingError(words)
        if code == grpc.StatusCode.ALREADY_EXISTS or "already exists" in words:
            return ExistsError(words)
        if code in {grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED}:
            return self._denied(words)
        if code in _TRANSIENT_GRPC or code == grpc.StatusCode.DEADLINE_EXCEEDED:
            hint = "Start it, or check store.url and store.grpc_port in config.toml."
            if "CERTIFICATE" in words.upper():
                words, hint = "its certificate was not accepted", CERTIFICATE_HINT
            return StoreUnavailableError(
                f"Qdrant cannot be reached at {self.url} over gRPC (port {self._grpc_port}): {words}.", hint=hint
            )
        return StoreError(f"Qdrant at {self.url} refused the request ({code.name}): {words}.")

    def _foreign(self, why: str) -> StoreUnavailableError:
        return StoreUnavailableError(
            f"What answers at {self.url} is no Qdrant, or of a version that this client does not know: {why}.",
            hint="Check store.url in config.toml.",
        )

    def _denied(self, words: str) -> StoreUnavailableError:
        if not self._api_key:
            return StoreUnavailableError(
                f"Qdrant at {self.url} asks for a key: {words}.",
                hint="Put it into an environment variable and name that in store.api_key_env.",
            )
        return StoreUnavailableError(
            f"Qdrant at {self.url} refused the key: {words}.",
            hint="Check the variable that store.api_key_env names.",
        )


async def _version_of(client: AsyncQdrantClient) -> str:
    await client.get_collections()  # the version is told without a key, what is stored is not
    return (await client.info()).version


def _transient(error: Exception) -> float | None:
    """Seconds after which the call is worth another try; None: it is not."""
    if isinstance(error, ResourceExhaustedResponse):
        return float(error.retry_after_s)
    if isinstance(error, UnexpectedResponse):
        return 0.0 if error.status_code in TRANSIENT else None
    if isinstance(error, ResponseHandlingException):
        return 0.0 if isinstance(error.source, httpx.TransportError) else None
    if isinstance(error, grpc.aio.AioRpcError):
        return 0.0 if error.code() in _TRANSIENT_GRPC else None
    return None


def _complaint(reply: Reply) -> str:
    """Qdrant's own words: ``{"status": {"error": "…"}}``."""
    status = reply.body.get("status") if isinstance(reply.body, dict) else None
    words = status.get("error") if isinstance(status, dict) else None
    return plain(words) if isinstance(words, str) else reply.complaint()
