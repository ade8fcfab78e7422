"""Messages of JSON-RPC 2.0 as the tools for agents take them, over HTTP and over standard input alike. Pure.

What is wrong with one is told here, in words of its own: the library behind would drop it without an answer, or quote
its own parts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, NoReturn

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
INVALID_PARAMS: Final = -32602
UNSUPPORTED_VERSION: Final = -32022
"""Of the revisions that negotiate without a handshake: the client may choose one of those that come with it."""

NO_LISTS: Final = "Lists of messages are not taken: send them one by one."

_KINDS: Final[Mapping[type, str]] = {str: "a text", dict: "an object"}
_NEEDED: Final[Mapping[str, Mapping[str, type]]] = {
    "initialize": {"protocolVersion": str, "capabilities": dict, "clientInfo": dict},
    "tools/call": {"name": str},
}
"""Parameters that a method cannot do without."""
_TAKEN: Final[Mapping[str, Mapping[str, type]]] = {"tools/call": {"arguments": dict}, "tools/list": {"cursor": str}}
"""And those that may be left away, or be null."""


class MessageError(Exception):
    """What came is no message, or one that cannot mean anything; ``id`` is the request's, where it could be read."""

    def __init__(self, code: int, message: str, *, id: str | int | None = None, notification: bool = False) -> None:  # noqa: A002 - the name it has in the protocol
        super().__init__(message)
        self.code = code
        self.message = message
        self.id = id
        self.notification = notification
        """It expects no answer, and must get none where answers are not asked for one by one."""


def read_message(content: bytes) -> dict[str, Any]:
    """The one message in ``content``. Raises MessageError; which methods and tools there are plays no part."""
    data = read_json(content)
    if isinstance(data, list):
        raise MessageError(INVALID_REQUEST, NO_LISTS)
    return check_message(data)


def read_json(content: bytes) -> Any:
    """What ``content`` says, be it a message or not. Raises MessageError."""
    try:
        return json.loads(content.decode(), parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise MessageError(PARSE_ERROR, "The message is not valid JSON in UTF-8.") from None


def check_message(data: Any) -> dict[str, Any]:
    """``data`` as a message. Raises MessageError."""
    if not isinstance(data, dict):
        raise MessageError(INVALID_REQUEST, "A message must be an object.")
    number = data.get("id")
    if not _whole(data):
        words = "A text in the message holds half of a surrogate pair (\\ud800 to \\udfff), which no UTF-8 can hold."
        raise MessageError(
            INVALID_REQUEST,
            words,
            id=number if is_id(number) and _whole(number) else None,
            notification="method" in data and "id" not in data,
        )
    named = is_id(number)
    if "id" in data and not named and not ("error" in data and number is None):
        raise MessageError(INVALID_REQUEST, "'id' must be a text or a whole number.")
    known: str | int | None = number if named else None
    if data.get("jsonrpc") != "2.0":
        raise MessageError(INVALID_REQUEST, "'jsonrpc' must be \"2.0\".", id=known)
    if "method" in data:
        _check_call(data, known)
    else:
        _check_response(data, known)
    return data


def is_id(value: Any) -> bool:
    """Whether ``value`` may name a request, or the one who asks for its progress."""
    return isinstance(value, str | int) and not isinstance(value, bool)


def error_message(
    code: int,
    message: str,
    *,
    id: str | int | None = None,  # noqa: A002 - the name it has in the protocol
    data: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """An error as a message; without an id where the request's could not be read."""
    error = {"code": code, "message": message, **({"data": dict(data)} if data else {})}
    return {"jsonrpc": "2.0", "id": id, "error": error}


def _check_call(data: Mapping[str, Any], number: str | int | None) -> None:
    method, params = data["method"], data.get("params")
    if not isinstance(method, str):
        raise MessageError(INVALID_REQUEST, "'method' must be a text.", id=number)

    def refuse(words: str) -> NoReturn:
        raise MessageError(INVALID_PARAMS, words, id=number, notification=number is None)

    if params is not None and not isinstance(params, dict):
        refuse("'params' must be an object.")
    given: dict[str, Any] = params or {}
    for name, kind in _NEEDED.get(method, {}).items():
        if not isinstance(given.get(name), kind):
            refuse(f"{method} needs {name!r} in its 'params': {_KINDS[kind]}.")
    for name, kind in {**_TAKEN.get(method, {}), "_meta": dict}.items():
        if given.get(name) is not None and not isinstance(given[name], kind):
            refuse(f"{name!r} must be {_KINDS[kind]}.")
    token = (given.get("_meta") or {}).get("progressToken")
    if token is not None and not is_id(token):
        refuse("'progressToken' must be a text or a whole number.")


def _check_response(data: Mapping[str, Any], number: str | int | None) -> None:
    """An answer to a question that was never put is taken, and passed over."""
    if isinstance(data.get("result"), dict) and number is not None:
        return
    error = data.get("error")
    if isinstance(error, dict) and isinstance(error.get("code"), int) and isinstance(error.get("message"), str):
        return
    raise MessageError(INVALID_REQUEST, "A request must have a 'method'.", id=number)


def _whole(data: Any) -> bool:
    """Whether no text in ``data`` holds half of a surrogate pair: JSON can spell it, UTF-8 cannot."""
    try:
        json.dumps(data, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _refuse_constant(_: str) -> NoReturn:
    raise ValueError
