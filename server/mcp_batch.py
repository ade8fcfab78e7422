"""Several messages in one POST, as the revision 2025-03-26 has them: each is served like one of its own.

Later revisions have none, and neither have clients that name one of them.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final

from ragpilot.mcp_messages import INVALID_REQUEST, MessageError, check_message
from server.guard import Message, Receive, Scope, Send, request_id
from server.mcp_rpc import CONTENT_TYPE, rejection

BATCH_REVISION: Final = "2025-03-26"
BATCH_MAX: Final = 50

_Serve = Callable[[Scope, Receive, Send], Awaitable[None]]


def takes_batches(named: list[str]) -> bool:
    """Whether a client with these revisions in its headers may send a list: those that have none name none."""
    return not named or named == [BATCH_REVISION]


async def serve_batch(messages: list[Any], scope: Scope, receive: Receive, send: Send, serve: _Serve) -> None:
    """Answer a list of messages with the list of their answers, or with 202 where none of them wants one.

    Raises MessageError for a list that is empty or too long.
    """
    if not 0 < len(messages) <= BATCH_MAX:
        raise MessageError(INVALID_REQUEST, f"A list of messages holds 1 to {BATCH_MAX} of them.")
    gone = asyncio.Event()
    watching = asyncio.create_task(_watch(receive, gone))
    try:
        async with asyncio.TaskGroup() as group:
            going = [group.create_task(_answer(message, scope, gone, serve)) for message in messages]
    finally:
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching
    answers = [answer for task in going if (answer := task.result()) is not None]
    body = json.dumps(answers).encode() if answers else b""
    headers = [(b"content-type", CONTENT_TYPE.encode())] if answers else []
    length = (b"content-length", str(len(body)).encode())
    await send({"type": "http.response.start", "status": 200 if answers else 202, "headers": [*headers, length]})
    await send({"type": "http.response.body", "body": body, "more_body": False})


async def _watch(receive: Receive, gone: asyncio.Event) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    gone.set()


async def _answer(message: Any, scope: Scope, gone: asyncio.Event, serve: _Serve) -> dict[str, Any] | None:
    """The answer to one message; None for one that gets none."""
    try:
        data = check_message(message)
        if data.get("method") == "initialize":
            raise MessageError(INVALID_REQUEST, "'initialize' is sent alone, not in a list.", id=data.get("id"))
    except MessageError as error:
        refused: dict[str, Any] = json.loads(rejection(error, request_id(scope)))
        return None if error.notification else refused
    content = json.dumps(data).encode()
    waiting: list[Message] = [{"type": "http.request", "body": content, "more_body": False}]
    body = bytearray()

    async def receive() -> Message:
        if waiting:
            return waiting.pop()
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(part: Message) -> None:
        body.extend(part.get("body", b""))

    await serve({**scope, "headers": _alone(scope, len(content))}, receive, send)
    return _last(bytes(body))


def _alone(scope: Scope, length: int) -> list[tuple[bytes, bytes]]:
    headers = [(name, value) for name, value in scope["headers"] if name.lower() != b"content-length"]
    return [*headers, (b"content-length", str(length).encode())]


def _last(body: bytes) -> dict[str, Any] | None:
    """The answer in a response, whether it came as JSON or as an event; progress has no place in a list of answers."""
    lines = [line.removeprefix(b"data:") for line in body.splitlines() if line.startswith((b"data:", b"{"))]
    for line in reversed(lines):
        with suppress(ValueError):
            found = json.loads(line)
            if isinstance(found, dict) and "id" in found and "method" not in found:
                return found
    return None
