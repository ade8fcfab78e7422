"""Refusals as ``application/problem+json``: every status that is not a success has this form, and none has another."""

from __future__ import annotations

import json
from dataclasses import dataclass
from http import HTTPStatus

from werkzeug.exceptions import HTTPException

from ragpilot.errors import (
    AuthenticationError,
    ChatModelError,
    EmbedderError,
    IndexMismatchError,
    IngestError,
    IngestRunningError,
    InvalidRequestError,
    OverloadedError,
    PermissionDeniedError,
    RagPilotError,
    StateFullError,
    StoreDamagedError,
    StoreError,
    UnknownCorpusError,
    UnknownSourceError,
)

CONTENT_TYPE = "application/problem+json"

UNAUTHENTICATED = "A known bearer token is needed: Authorization: Bearer TOKEN."
"""The words of every 401, whatever was wrong with the header."""

DAMAGED = "The index of this corpus is damaged; the server's log says how."

RETRY_AFTER_SECONDS = 10
"""After how long a question that found the queue full may be asked again."""

_STATUSES: tuple[tuple[type[RagPilotError], int], ...] = (
    (AuthenticationError, 401),
    (PermissionDeniedError, 403),
    (UnknownCorpusError, 404),
    (UnknownSourceError, 404),
    (IndexMismatchError, 409),
    (IngestRunningError, 409),
    (InvalidRequestError, 422),
    (IngestError, 422),
    (OverloadedError, 429),
    (StoreError, 503),
    (StateFullError, 503),
    (EmbedderError, 503),
    (ChatModelError, 503),
)

_HTTP_CODES = {
    400: "malformed_request",
    404: "unknown_path",
    405: "method_not_allowed",
    406: "not_acceptable",
    408: "request_timeout",
    413: "body_too_large",
    415: "unsupported_media_type",
}


@dataclass(frozen=True, slots=True)
class Problem:
    """A refusal: ``code`` is the word for programs, ``detail`` the sentence for people, without a secret."""

    status: int
    code: str
    detail: str
    field: str = ""
    """The field of the request that broke a rule, by its name on the wire; empty where there is none."""
    headers: tuple[tuple[str, str], ...] = ()
    hint: str = ""
    """The end of ``detail`` that says what to do next, for clients that show it apart."""

    def body(self, request_id: str) -> bytes:
        """The problem document (RFC 9457), as ASCII JSON."""
        document = {
            "type": f"urn:ragpilot:problem:{self.code}",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": self.detail,
            "code": self.code,
            **({"field": self.field} if self.field else {}),
            **({"hint": self.hint} if self.hint else {}),
            "requestId": request_id,
        }
        return json.dumps(document).encode()


class ProblemError(Exception):
    """Carries a problem from where it is found to where it is answered."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.detail)
        self.problem = problem


UNEXPECTED = Problem(500, "internal_error", "Something went wrong in the server; its log has the request's id.")
SHUTTING_DOWN = Problem(503, "shutting_down", "The server is shutting down.", headers=(("Retry-After", "5"),))

GRANTS_PENDING = Problem(
    503,
    "grants_pending",
    "Who may read what has changed and is not in force yet; nothing is answered until it is.",
    headers=(("Retry-After", "2"),),
)


def from_error(error: RagPilotError) -> Problem:
    """The problem of an error of the core; an error that no client can help is a 500 without detail."""
    status = next((status for kind, status in _STATUSES if isinstance(error, kind)), 500)
    if status == 500:
        return UNEXPECTED
    if isinstance(error, StoreDamagedError):
        # Its words hold folders, and how much is missing of all that there was.
        return Problem(status, error.code, f"{DAMAGED} {error.hint}".strip(), hint=error.hint)
    if isinstance(error, AuthenticationError):
        return Problem(401, error.code, UNAUTHENTICATED, headers=(("WWW-Authenticate", "Bearer"),))
    headers = (("Retry-After", str(error.retry_after)),) if isinstance(error, OverloadedError) else ()
    named = error.field if isinstance(error, InvalidRequestError) else ""
    return Problem(status, error.code, str(error), named, headers, error.hint)


def from_code(code: str, detail: str) -> Problem:
    """The problem of an answer that failed before its first piece, from the code of its ``error`` event."""
    status = next((status for kind, status in _STATUSES if code in _codes(kind)), 500)
    if status == 500:
        return UNEXPECTED
    return Problem(status, code, detail, headers=(("Retry-After", str(RETRY_AFTER_SECONDS)),) if status == 429 else ())


def from_http(error: HTTPException) -> Problem:
    """The problem of what the web framework refuses by itself: unknown paths and methods above all."""
    status = error.code or 500
    code = _HTTP_CODES.get(status)
    if code is None:
        return UNEXPECTED
    headers = dict(error.get_headers())
    allowed = headers.get("Allow", "")
    details = {
        404: "There is nothing at this path.",
        405: f"This path takes {allowed or 'other methods'}.",
    }
    kept = (("Allow", allowed),) if allowed else ()
    return Problem(status, code, details.get(status, HTTPStatus(status).phrase + "."), headers=kept)


def _codes(kind: type[RagPilotError]) -> set[str]:
    """The codes of an error class and of all below it."""
    return {kind.code}.union(*(_codes(below) for below in kind.__subclasses__()))
