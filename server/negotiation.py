"""Which form of an answer a client wants: events as they come, or one JSON object."""

from __future__ import annotations

from typing import Literal

from werkzeug.http import parse_list_header, parse_options_header

from server.problems import Problem, ProblemError

Form = Literal["text/event-stream", "application/json"]

FORMS: tuple[Form, ...] = ("text/event-stream", "application/json")
"""The first one is meant where the client has no preference."""


def answer_form(accept: str | None) -> Form:
    """The form for an ``Accept`` header: by quality, then by how exactly it is named. Raises ProblemError (406)."""
    if not accept or not accept.strip():
        return FORMS[0]
    ranges = [_media_range(item) for item in parse_list_header(accept)]
    best: tuple[float, int] = (0.0, 0)
    chosen: Form | None = None
    for form in FORMS:
        # The most exact range that covers a form decides about it: "*/*, text/event-stream;q=0" wants no events.
        exactness, quality = max(
            ((_exactness(kind, form), quality) for kind, quality in ranges if _exactness(kind, form)), default=(0, 0.0)
        )
        if quality > 0 and (quality, exactness) > best:
            best, chosen = (quality, exactness), form
    if chosen is None:
        raise ProblemError(Problem(406, "not_acceptable", f"Answers come as {' or '.join(FORMS)}."))
    return chosen


def _media_range(item: str) -> tuple[str, float]:
    kind, options = parse_options_header(item)
    try:
        quality = float(options.get("q", "1"))
    except ValueError:
        quality = 0.0
    return kind.lower(), quality if 0.0 <= quality <= 1.0 else 0.0


def _exactness(kind: str, form: Form) -> int:
    """3 for the type itself, 2 for ``text/*``, 1 for ``*/*``, 0 where the range does not cover the form."""
    if kind == form:
        return 3
    if kind == f"{form.partition('/')[0]}/*":
        return 2
    return 1 if kind == "*/*" else 0
