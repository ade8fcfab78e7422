"""Refusals of ``/mcp``: errors of JSON-RPC, which its clients read; other routes answer with problem documents."""

from __future__ import annotations

import json

from server.problems import Problem, ProblemError

CONTENT_TYPE = "application/json"
PATHS = ("/mcp", "/mcp/")
MALFORMED_JSON = Problem(400, "malformed_json", "The body is not valid JSON in UTF-8.")
NO_MESSAGE = Problem(400, "malformed_request", "The body must be one message of JSON-RPC 2.0; lists are not taken.")

_PARSE_ERROR = -32700
_INVALID_REQUEST = -32600
_INTERNAL_ERROR = -32603


def check_message(content: bytes) -> None:
    """Raises ProblemError for a body that is no message of JSON-RPC; what it asks for is not looked at."""
    try:
        data = json.loads(content)
    except (ValueError, RecursionError):
        raise ProblemError(MALFORMED_JSON) from None
    kinds = ("method", "result", "error")
    if not isinstance(data, dict) or data.get("jsonrpc") != "2.0" or not any(kind in data for kind in kinds):
        raise ProblemError(NO_MESSAGE)


def refusal(problem: Problem, request_id: str) -> tuple[str, bytes]:
    """Content type and body of ``problem`` as an error without an id: the call was refused before it was read."""
    code = _INTERNAL_ERROR if problem.status >= 500 else _INVALID_REQUEST
    error = {
        "code": _PARSE_ERROR if problem.code == MALFORMED_JSON.code else code,
        "message": problem.detail,
        "data": {"status": problem.status, "code": problem.code, "requestId": request_id},
    }
    return CONTENT_TYPE, json.dumps({"jsonrpc": "2.0", "id": None, "error": error}).encode()
