"""``/mcp``: where the protocol for agents meets HTTP. Which requests reach it, and as whom.

The library of the protocol is loaded, and its manager started, with the first call: a server that no agent speaks to
pays for neither, and an application whose lifespan nobody runs serves it all the same.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

from ragpilot.errors import AuthenticationError, PermissionDeniedError
from ragpilot.mcp_identity import REVISIONS
from ragpilot.mcp_messages import (
    INVALID_REQUEST,
    NO_LISTS,
    UNSUPPORTED_VERSION,
    MessageError,
    check_message,
    is_id,
    read_json,
)
from ragpilot.types import Actor, Permission
from server.context import Context
from server.guard import AsgiApp, Message, Receive, Scope, Send, request_id
from server.mcp_batch import serve_batch, takes_batches
from server.mcp_rpc import CONTENT_TYPE, PATHS, rejection
from server.origins import RawHeaders, header_values
from server.problems import Problem, ProblemError, from_error

if TYPE_CHECKING:
    from server.mcp_protocol import Protocol

ACTOR = "ragpilot.actor"

_ALLOWED = (("Allow", "OPTIONS, POST"),)
_SESSION_ERA = ("2024-", "2025-")
"""Revisions of the protocol that know sessions; later ones have none, and ignore the header."""
_PERMISSIONS: tuple[Permission, ...] = ("ask", "ingest")
"""One of them opens the door; which tools there are behind it depends on which."""


def actor_of(scope: Scope) -> Actor:
    """Who makes this call: set from the request's header here, and by nothing else."""
    return cast("Actor", scope[ACTOR])


class McpMount:
    """An ASGI application: ``/mcp`` and ``/mcp/`` are served by the protocol, everything else by ``app``."""

    def __init__(self, app: AsgiApp, context: Context) -> None:
        self._app = app
        self._context = context
        self._protocol: Protocol | None = None
        self._starting = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request. Raises ProblemError for one that the protocol is not to see."""
        if scope["type"] != "http" or scope["path"] not in PATHS:
            await self._app(scope, receive, send)
            return
        if scope["method"] == "OPTIONS":
            allowed = [(name.lower().encode(), value.encode()) for name, value in _ALLOWED]
            await send({"type": "http.response.start", "status": 204, "headers": allowed})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
            return
        _check(scope["method"], scope["headers"])
        scope[ACTOR] = self._actor(scope["headers"])
        body = await receive()
        try:
            data = read_json(body.get("body", b""))
            if isinstance(data, list):
                if not takes_batches(header_values(scope["headers"], b"mcp-protocol-version")):
                    raise MessageError(INVALID_REQUEST, NO_LISTS)
                await serve_batch(data, scope, receive, send, (await self._started()).serve)
                return
            message = check_message(data)
        except MessageError as error:
            await _reject(send, rejection(error, request_id(scope)))
            return
        asked = _unsupported(scope["headers"])
        if asked is not None:
            words = f"The protocol version {asked!r} is not supported; supported are {', '.join(REVISIONS)}."
            number = message.get("id")
            refused = MessageError(UNSUPPORTED_VERSION, words, id=number if is_id(number) else None)
            versions = {"supported": list(REVISIONS), "requested": asked}
            await _reject(send, rejection(refused, request_id(scope), **versions))
            return
        await (await self._started()).serve(scope, _with(body, receive), send)

    async def aclose(self) -> None:
        """End every call that is still under way. What comes afterwards starts anew."""
        async with self._starting:
            protocol, self._protocol = self._protocol, None
            if protocol is not None:
                await protocol.aclose()

    def _actor(self, headers: RawHeaders) -> Actor:
        try:
            actor = self._context.access.actor(headers)
            if not any(actor.may(permission) for permission in _PERMISSIONS):
                words = " or ".join(map(repr, _PERMISSIONS))
                raise PermissionDeniedError(f"The actor {actor.name!r} does not hold the permission {words}.")
        except (AuthenticationError, PermissionDeniedError) as error:
            raise ProblemError(from_error(error)) from None
        return actor

    async def _started(self) -> Protocol:
        async with self._starting:
            if self._protocol is None:
                # In a thread: loading takes most of a second, and other requests go on meanwhile.
                kind = await asyncio.to_thread(_load)
                protocol = kind(self._context)
                await protocol.start()
                self._protocol = protocol
            return self._protocol


def _with(first: Message, receive: Receive) -> Receive:
    """``receive``, once ``first`` is given out again."""
    waiting = [first]

    async def again() -> Message:
        return waiting.pop() if waiting else await receive()

    return again


async def _reject(send: Send, body: bytes) -> None:
    headers = [(b"content-type", CONTENT_TYPE.encode()), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 400, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})


def _unsupported(headers: RawHeaders) -> str | None:
    """The first revision that the headers name and nobody here speaks; a client that names none is of an early one."""
    named = header_values(headers, b"mcp-protocol-version")
    return next((value[:100] for value in named if value not in REVISIONS), None)


def _load() -> type[Protocol]:
    from server.mcp_protocol import Protocol

    return Protocol


def _check(method: str, headers: RawHeaders) -> None:
    """Refuse what has no meaning without sessions, and what cannot take the answer. Raises ProblemError."""
    if method != "POST":
        # A GET would open a stream for messages that a server without sessions never has.
        words = "This server keeps no sessions: every call is a POST of its own."
        raise ProblemError(Problem(405, "method_not_allowed", words, headers=_ALLOWED))
    version = (header_values(headers, b"mcp-protocol-version") or [_SESSION_ERA[0]])[0]
    if header_values(headers, b"mcp-session-id") and version.startswith(_SESSION_ERA):
        # None was ever given out here; clients begin anew at a 404.
        raise ProblemError(Problem(404, "unknown_session", "There is no such session; initialize without one."))
    kinds = {
        kind.partition(";")[0].strip().lower()
        for value in header_values(headers, b"accept")
        for kind in value.split(",")
    }
    json, events = kinds & {"application/json", "application/*"}, kinds & {"text/event-stream", "text/*"}
    if "*/*" not in kinds and not (json and events):
        words = "The client must accept both application/json and text/event-stream."
        raise ProblemError(Problem(406, "not_acceptable", words))
