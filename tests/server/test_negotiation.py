from __future__ import annotations

import pytest

from server.negotiation import answer_form
from server.problems import ProblemError

EVENTS, JSON = "text/event-stream", "application/json"


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        (None, EVENTS),
        ("", EVENTS),
        ("*/*", EVENTS),
        ("text/event-stream", EVENTS),
        ("TEXT/Event-Stream", EVENTS),
        ("text/*", EVENTS),
        ("application/json, text/event-stream", EVENTS),
        ("application/json;q=0.5, text/event-stream;q=0.9", EVENTS),
        ("application/json;q=0, */*", EVENTS),
        ("text/html, */*;q=0.1", EVENTS),
        ("application/json", JSON),
        ("application/json; charset=utf-8", JSON),
        ("application/*", JSON),
        ("application/json, text/plain, */*", JSON),
        ("text/event-stream;q=0.5, application/json", JSON),
        ("*/*, text/event-stream;q=0", JSON),
    ],
)
def test_the_form_of_an_answer(accept: str | None, form: str) -> None:
    assert answer_form(accept) == form


@pytest.mark.parametrize("accept", ["text/html", "nonsense", "*/*;q=0", "application/json;q=0", "application/json;q=x"])
def test_what_nobody_offers_is_not_acceptable(accept: str) -> None:
    with pytest.raises(ProblemError) as caught:
        answer_form(accept)
    assert caught.value.problem.status == 406
