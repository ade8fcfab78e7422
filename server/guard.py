"""The door of the server: what every request passes before a route sees it, and every response on its way out.

It wraps the whole application below Quart, so that it holds for Quart's own errors and for whatever else is mounted:
it checks Host and Origin, takes the body whole and bounded, answers preflights, gives the request its id, frees what
the request held, turns what nobody caught into a problem document, and writes the request's log line.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection, MutableMapping
from contextlib import AsyncExitStack, suppress
from typing import Any, cast
from urllib.parse import urlsplit
from uuid import uuid4

from werkzeug.http import parse_options_header

from ragpilot.config import ServerSettings
from ragpilot.logs import log_unexpected
from server import mcp_rpc
from server.lifecycle import Lifecycle
from server.origins import Origins, RawHeaders, header_values, is_preflight
from server.problems import CONTENT_TYPE as PROBLEM_TYPE
from server.problems import SHUTTING_DOWN, UNEXPECTED, Problem, ProblemError

logger = logging.getLogger(__name__)

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
AsgiApp = Callable[[Scope, Receive, Send], Awaitable[None]]

BODY_SECONDS = 10.0
"""How long a body may take to arrive."""
DISCARD_SECONDS = 10.0
"""How long a refused body is read on, so that its sender meets the refusal and not a broken connection."""
STALL_SECONDS = 30.0
"""How long a reader may take nothing before its response is given up."""

_REQUEST_ID = "ragpilot.request_id"
_CLEANUP = "ragpilot.cleanup"
_PATH_LOGGED = 200


def request_id(scope: Any) -> str:
    """The id that the guard gave to this request: of every response, of ``Done`` and ``Failed``, of the log."""
    return cast("str", scope[_REQUEST_ID])


def cleanup(scope: Any) -> AsyncExitStack:
    """What is pushed here is undone when the request ends, even where its response was never begun."""
    return cast("AsyncExitStack", scope[_CLEANUP])


class Guard:
    """An ASGI application around ``app``.

    ``before`` is called with the path of each request that is about to be served, and may refuse it; ``json_paths``:
    where the body of a POST must be JSON; ``rpc_paths``: where refusals are errors of JSON-RPC.
    """

    def __init__(
        self,
        app: AsgiApp,
        settings: ServerSettings,
        lifecycle: Lifecycle,
        *,
        before: Callable[[str], Awaitable[None]],
        json_paths: Collection[str],
        rpc_paths: Collection[str] = (),
        stall_seconds: float = STALL_SECONDS,
    ) -> None:
        self._app = app
        self._max_body = settings.max_body_bytes
        self._origins = Origins(settings)
        self._lifecycle = lifecycle
        self._before = before
        self._json_paths = frozenset(json_paths)
        self._rpc_paths = frozenset(rpc_paths)
        self._stall_seconds = stall_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request; the lifespan passes through, and there are no WebSockets here."""
        if scope["type"] == "http":
            with self._lifecycle.request():
                refusal = mcp_rpc.refusal if scope["path"] in self._rpc_paths else _problem_document
                exchange = _Exchange(scope, receive, send, self._origins, self._stall_seconds, refusal)
                await exchange.run(self._serve)
        elif scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        else:
            await _refuse_websocket(send)

    async def _serve(self, exchange: _Exchange) -> None:
        scope, headers = exchange.scope, exchange.headers
        self._origins.check(headers)
        if self._lifecycle.draining:
            raise ProblemError(SHUTTING_DOWN)
        if is_preflight(scope["method"], headers):
            await exchange.answer(204, self._origins.preflight_headers(), b"")
            return
        scope["path"] = _path(scope["path"])
        if scope["method"] == "POST" and "/" + scope["path"].strip("/") in self._json_paths:
            _check_json(headers)
        await exchange.take_body(self._max_body)
        # Behind the body, which may take its time: what is in force now is in force when the request is served.
        await self._before(scope["path"])
        await self._app(scope, exchange.receive, exchange.send)


class _ClientGoneError(Exception):
    """The client left while its body was read."""


class _ReaderStalledError(TimeoutError):
    """The client takes nothing of its response."""


class _Exchange:
    """One request and its response."""

    def __init__(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        origins: Origins,
        stall_seconds: float,
        refusal: Callable[[Problem, str], tuple[str, bytes]],
    ) -> None:
        self.id = uuid4().hex
        self.scope: Scope = {**scope, _REQUEST_ID: self.id}
        self.headers: RawHeaders = tuple(scope["headers"])
        self._receive = receive
        self._send = send
        self._origins = origins
        self._stall_seconds = stall_seconds
        self._refusal = refusal
        self._body: bytes | None = None
        self._received = False
        self._status: int | None = None
        self._finished = False

    async def run(self, serve: Callable[[_Exchange], Awaitable[None]]) -> None:
        """Serve; whatever is raised is answered, and whatever the request held is freed."""
        began = time.perf_counter()
        try:
            async with AsyncExitStack() as held:
                self.scope[_CLEANUP] = held
                try:
                    await serve(self)
                except (_ClientGoneError, _ReaderStalledError):
                    pass
                except ProblemError as error:
                    await self._refuse(error.problem)
                except Exception as error:  # noqa: BLE001 - the last handler: no client may see a bare 500
                    log_unexpected(logger, error, self.id)
                    await self._refuse(UNEXPECTED)
        finally:
            self._log((time.perf_counter() - began) * 1000)

    async def receive(self) -> Message:
        """The body, which is here in one piece, then what the connection says."""
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        return await self._receive()

    async def send(self, message: Message) -> None:
        """Pass a message on, with the headers that every response has."""
        if message["type"] == "http.response.start":
            self._status = message["status"]
            message = {**message, "headers": [*message["headers"], *self._added(message["headers"])]}
        try:
            async with asyncio.timeout(self._stall_seconds):
                await self._send(message)
        except TimeoutError:
            logger.warning("request %s: its reader took nothing for %g s", self.id, self._stall_seconds)
            raise _ReaderStalledError from None
        self._finished = message["type"] == "http.response.body" and not message.get("more_body", False)

    async def answer(self, status: int, headers: RawHeaders, body: bytes) -> None:
        """Answer in one piece. A body that is still on its way is read to its end, within bounds, and forgotten."""
        length = [] if status == 204 else [(b"content-length", str(len(body)).encode())]
        await self.send({"type": "http.response.start", "status": status, "headers": [*headers, *length]})
        if not self._received:
            await self.send({"type": "http.response.body", "body": body, "more_body": True})
            await self._discard()
            body = b""
        await self.send({"type": "http.response.body", "body": body, "more_body": False})

    async def take_body(self, limit: int) -> None:
        """Read the body. Raises ProblemError where it is too large or too slow."""
        too_large = ProblemError(Problem(413, "body_too_large", f"The body may have at most {limit:,} bytes."))
        declared = header_values(self.headers, b"content-length")
        if declared and declared[0].isdecimal() and int(declared[0]) > limit:
            raise too_large
        body = bytearray()
        try:
            async with asyncio.timeout(BODY_SECONDS):
                while not self._received:
                    body += await self._next_piece()
                    if len(body) > limit:
                        raise too_large
        except TimeoutError:
            slow = f"The body did not arrive within {BODY_SECONDS:g} s."
            raise ProblemError(Problem(408, "request_timeout", slow)) from None
        self._body = bytes(body)

    async def _next_piece(self) -> bytes:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            raise _ClientGoneError
        self._received = not message.get("more_body", False)
        return cast("bytes", message.get("body", b""))

    async def _discard(self) -> None:
        try:
            async with asyncio.timeout(DISCARD_SECONDS):
                while not self._received:
                    await self._next_piece()
        except (TimeoutError, _ClientGoneError):
            self._received = True

    async def _refuse(self, problem: Problem) -> None:
        if self._status is not None:
            # Too late for a status. The response stays unfinished, which every client can tell from a whole one.
            return
        named = [(name.lower().encode(), value.encode()) for name, value in problem.headers]
        kind, body = self._refusal(problem, self.id)
        with suppress(_ReaderStalledError):
            await self.answer(problem.status, [(b"content-type", kind.encode()), *named], body)

    def _added(self, headers: RawHeaders) -> RawHeaders:
        names = {name.lower() for name, _ in headers}
        fixed = [(b"x-request-id", self.id.encode()), (b"x-content-type-options", b"nosniff")]
        stored = [] if b"cache-control" in names else [(b"cache-control", b"no-store")]
        return [*fixed, *stored, *self._origins.response_headers(self.headers)]

    def _log(self, milliseconds: float) -> None:
        # The path as it came, percent-encoded: it can hold no line break. The query may hold words and stays out.
        path = (
            cast("bytes", self.scope.get("raw_path") or b"")
            .partition(b"?")[0][:_PATH_LOGGED]
            .decode("ascii", "replace")
        )
        status = self._status or 499
        end = "" if self._finished else " unfinished"
        logger.info("%s %s %d%s %.0f ms %s", self.scope["method"], path, status, end, milliseconds, self.id)


def _problem_document(problem: Problem, number: str) -> tuple[str, bytes]:
    return PROBLEM_TYPE, problem.body(number)


async def _refuse_websocket(send: Send) -> None:
    number = uuid4().hex
    headers = [(b"content-type", PROBLEM_TYPE.encode()), (b"x-request-id", number.encode())]
    body = Problem(400, "malformed_request", "There are no WebSockets here.").body(number)
    await send({"type": "websocket.http.response.start", "status": 400, "headers": headers})
    await send({"type": "websocket.http.response.body", "body": body, "more_body": False})


def _path(path: str) -> str:
    """The path of a target in any of its forms. Raises ProblemError for one that has none."""
    if not path.startswith("/"):
        path = urlsplit(path).path
    if not path.startswith("/"):
        raise ProblemError(Problem(400, "malformed_request", "The request's target must be a path."))
    return path


def _check_json(headers: RawHeaders) -> None:
    """Raises ProblemError for a body of another kind: it is also what a page can send without a preflight."""
    kind, options = parse_options_header(", ".join(header_values(headers, b"content-type")))
    charset = options.get("charset", "utf-8").lower()
    encodings = {value.lower() for value in header_values(headers, b"content-encoding")} - {"identity"}
    if kind.lower() != "application/json" or charset not in {"utf-8", "utf8", "us-ascii"} or encodings:
        wanted = "The body must be JSON in UTF-8: Content-Type: application/json."
        raise ProblemError(Problem(415, "unsupported_media_type", wanted))
