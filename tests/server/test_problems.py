from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from ragpilot import errors
from ragpilot.errors import (
    AuthenticationError,
    IndexMismatchError,
    IngestRunningError,
    InvalidRequestError,
    OverloadedError,
    PermissionDeniedError,
    RagPilotError,
    StoreDamagedError,
    UnknownCorpusError,
)
from server.problems import UNAUTHENTICATED, UNEXPECTED, Problem, from_code, from_error


def kinds(kind: type[RagPilotError] = RagPilotError) -> Iterator[type[RagPilotError]]:
    yield kind
    for below in kind.__subclasses__():
        yield from kinds(below)


def made(kind: type[RagPilotError]) -> RagPilotError:
    """An error of that kind, whatever its constructor asks for."""
    error = kind.__new__(kind)
    RagPilotError.__init__(error, "What happened.", hint="What to do.")
    if isinstance(error, OverloadedError):
        error.retry_after = 7
    if isinstance(error, InvalidRequestError):
        error.field = "topK"
    return error


HELPLESS = {
    "RagPilotError",
    "ConfigError",
    "UntrustedConfigError",
    "StateError",
    "ServerUnreachableError",
}
"""Errors that no request can bring about, or no client can help: 500, without detail."""


@pytest.mark.parametrize(
    "kind", [kind for kind in kinds() if kind.__module__ == errors.__name__], ids=lambda k: k.__name__
)
def test_every_error_of_the_tree_has_its_status(kind: type[RagPilotError]) -> None:
    problem = from_error(made(kind))
    if kind.__name__ in HELPLESS:
        assert problem is UNEXPECTED
    else:
        assert problem.status in {401, 403, 404, 409, 422, 429, 503}
        assert problem.code == kind.code
        assert from_code(kind.code, "x").status == problem.status


def test_the_statuses_of_the_design() -> None:
    expected = {
        AuthenticationError: 401,
        PermissionDeniedError: 403,
        UnknownCorpusError: 404,
        IndexMismatchError: 409,
        IngestRunningError: 409,
        InvalidRequestError: 422,
        OverloadedError: 429,
        errors.StoreUnavailableError: 503,
        errors.ChatModelUnavailableError: 503,
    }
    assert {kind: from_error(made(kind)).status for kind in expected} == expected


def test_a_problem_document_holds_what_a_reader_needs() -> None:
    error = InvalidRequestError("'topK' must be less.", field="topK", hint="Ask for 50.")
    document = json.loads(from_error(error).body("id-1"))
    assert document == {
        "type": "urn:ragpilot:problem:invalid_request",
        "title": "Unprocessable Entity",
        "status": 422,
        "detail": "'topK' must be less. Ask for 50.",
        "code": "invalid_request",
        "field": "topK",
        "hint": "Ask for 50.",
        "requestId": "id-1",
    }


def test_a_refused_token_is_always_told_in_the_same_words() -> None:
    problem = from_error(AuthenticationError("the third token of ann has expired"))
    assert (problem.detail, problem.headers) == (UNAUTHENTICATED, (("WWW-Authenticate", "Bearer"),))


def test_how_much_is_missing_of_a_damaged_index_stays_in_the_log() -> None:
    error = StoreDamagedError("The store in /home/x is damaged: 3 of its 4,711 chunks are missing.", hint="Rebuild it.")
    problem = from_error(error)
    detail = "The index of this corpus is damaged; the server's log says how. Rebuild it."
    assert (problem.status, problem.code, problem.detail, problem.hint) == (503, "store_damaged", detail, "Rebuild it.")


def test_too_many_are_told_when_to_come_back() -> None:
    assert from_error(OverloadedError("Full.", retry_after=7)).headers == (("Retry-After", "7"),)


def test_a_document_is_ascii_whatever_the_detail_holds() -> None:
    assert Problem(404, "unknown_corpus", "'\ud800\u202e\n'").body("id").isascii()
