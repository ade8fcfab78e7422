"""Refusals of ``/mcp``: errors of JSON-RPC, which its clients read; other routes answer with problem documents."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ragpilot.mcp_messages import INVALID_REQUEST, PARSE_ERROR, MessageError, error_message
from server.problems import Problem

CONTENT_TYPE = "application/json"
PATHS = ("/mcp", "/mcp/")

_INTERNAL_ERROR = -32603
_WORDS = {PARSE_ERROR: "malformed_json", INVALID_REQUEST: "malformed_request"}


def refusal(problem: Problem, request_id: str) -> tuple[str, bytes]:
    """Content type and body of ``problem`` as an error without an id: the call was refused before it was read."""
    code = _INTERNAL_ERROR if problem.status >= 500 else INVALID_REQUEST
    data = {"status": problem.status, "code": problem.code, "requestId": request_id}
    return CONTENT_TYPE, json.dumps(error_message(code, problem.detail, data=data)).encode()


def rejection(error: MessageError, request_id: str, **data: Any) -> bytes:
    """The body that answers a message which nothing behind may see; its status is 400."""
    told: Mapping[str, Any] = {
        **data,
        "status": 400,
        "code": _WORDS.get(error.code, "invalid_request"),
        "requestId": request_id,
    }
    return json.dumps(error_message(error.code, error.message, id=error.id, data=told)).encode()
