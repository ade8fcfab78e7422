"""What an answer streams, and how events and values look on the wire (DESIGN section 5).

Server, CLI and TUI share this one codec, so a source has the same fields everywhere.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import datetime
from typing import Any, TypeVar

from ragpilot import errors
from ragpilot.types import (
    Bounds,
    CorpusInfo,
    EmbedderIdentity,
    Health,
    IndexStats,
    IngestProgress,
    IngestReport,
    LeftOut,
    NearMiss,
    Outcome,
    Source,
    SourceText,
)


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of the answer; joined, the pieces are the answer byte for byte."""

    text: str


@dataclass(frozen=True, slots=True)
class Sources:
    """The chunks that stood in the prompt, and no others. Once, after the last token."""

    sources: tuple[Source, ...]


@dataclass(frozen=True, slots=True)
class Done:
    """The end of an answer, and what is to be known about it."""

    outcome: Outcome
    request_id: str
    model: str | None = None
    """None where no model was called."""
    extract: bool = False
    plan: Mapping[str, Any] = field(default_factory=dict)
    receipt: Sequence[Mapping[str, Any]] = ()
    near_misses: tuple[NearMiss, ...] = ()
    unsupported: tuple[int, ...] = ()
    """Citation numbers in the answer that name no source."""
    warnings: tuple[str, ...] = ()
    prompt_tokens: int = 0
    answer_tokens: int = 0
    timings: Mapping[str, float] = field(default_factory=dict)
    """Milliseconds by stage."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The stream ends here: no sources, no done. ``message`` holds no detail of an exception."""

    code: str
    message: str
    request_id: str


_T = TypeVar("_T")

AnswerEvent = Token | Sources | Done | Failed


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer, as ``query()`` returns it and as JSON carries it."""

    answer: str
    sources: tuple[Source, ...]
    done: Done


def camel(name: str) -> str:
    """``start_line`` -> ``startLine``."""
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)


def to_wire(value: Any) -> Any:
    """A value of ``types`` or ``events`` as JSON types: camel-case fields, RFC 3339 times, lists for tuples."""
    if is_dataclass(value) and not isinstance(value, type):
        return {camel(item.name): to_wire(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, datetime):
        return value.isoformat(timespec="seconds").replace("+00:00", "Z")
    if isinstance(value, Mapping):
        return {str(key): to_wire(item) for key, item in value.items()}
    if isinstance(value, frozenset | set):
        return sorted(to_wire(item) for item in value)
    if isinstance(value, list | tuple):
        return [to_wire(item) for item in value]
    return value


def _build(kind: type[_T], data: Mapping[str, Any], **given: Any) -> _T:
    """Fill a flat dataclass from its wire form; fields that this version does not know are passed over."""
    known = {item.name: data[camel(item.name)] for item in fields(kind) if camel(item.name) in data}  # type: ignore[arg-type]
    return kind(**{**known, **given})


def source_from_wire(data: Mapping[str, Any]) -> Source:
    """A Source from its JSON form."""
    return _build(Source, data)


def near_miss_from_wire(data: Mapping[str, Any]) -> NearMiss:
    """A NearMiss from its JSON form."""
    return _build(NearMiss, data)


def done_from_wire(data: Mapping[str, Any]) -> Done:
    """A Done from its JSON form."""
    return _build(
        Done,
        data,
        outcome=Outcome(data["outcome"]),
        near_misses=tuple(near_miss_from_wire(item) for item in data.get("nearMisses", ())),
        receipt=tuple(data.get("receipt", ())),
        unsupported=tuple(data.get("unsupported", ())),
        warnings=tuple(data.get("warnings", ())),
    )


def event_to_wire(event: AnswerEvent | IngestProgress | IngestReport) -> tuple[str, str]:
    """The SSE name of an event and its data: one line of ASCII JSON, so that no separator of Unicode can break it."""
    names: dict[type, str] = {
        Token: "token",
        Sources: "sources",
        Done: "done",
        Failed: "error",
        IngestProgress: "progress",
        IngestReport: "report",
    }
    body = to_wire(event.sources) if isinstance(event, Sources) else to_wire(event)
    return names[type(event)], json.dumps(body, ensure_ascii=True, allow_nan=False)


def event_from_wire(name: str, data: str) -> AnswerEvent | None:
    """The event of an SSE name and its data; None for a name that this version does not know."""
    body = json.loads(data)
    match name:
        case "token":
            return Token(text=body["text"])
        case "sources":
            return Sources(tuple(source_from_wire(item) for item in body))
        case "done":
            return done_from_wire(body)
        case "error":
            return _build(Failed, body)
        case _:
            return None


def ingest_event_from_wire(name: str, data: str) -> IngestProgress | IngestReport | Failed | None:
    """The event of a run of ingestion; None for a name that this version does not know."""
    body = json.loads(data)
    match name:
        case "progress":
            return _build(IngestProgress, body)
        case "report":
            return _build(
                IngestReport,
                body,
                left_out=tuple(_build(LeftOut, item) for item in body.get("leftOut", ())),
                failed=tuple(_build(LeftOut, item) for item in body.get("failed", ())),
                warnings=tuple(body.get("warnings", ())),
                redacted=tuple(_build(LeftOut, item) for item in body.get("redacted", ())),
                notes=tuple(body.get("notes", ())),
            )
        case "error":
            return _build(Failed, body)
        case _:
            return None


def _moment(value: str | None) -> datetime | None:
    return None if value is None else datetime.fromisoformat(value)


def stats_from_wire(data: Mapping[str, Any]) -> IndexStats:
    """An IndexStats from its JSON form."""
    return _build(
        IndexStats,
        data,
        last_ingestion_time=_moment(data.get("lastIngestionTime")),
        embedder=_build(EmbedderIdentity, data["embedder"]),
        bounds=_build(Bounds, data["bounds"]),
    )


def health_from_wire(data: Mapping[str, Any]) -> dict[str, Health]:
    """The parts of a health report by name; what is no part (``status``) is passed over."""
    return {name: _build(Health, part) for name, part in data.items() if isinstance(part, Mapping) and "ok" in part}


def corpus_from_wire(data: Mapping[str, Any]) -> CorpusInfo:
    """A CorpusInfo from its JSON form."""
    return _build(CorpusInfo, data, last_ingestion_time=_moment(data.get("lastIngestionTime")))


def source_text_from_wire(data: Mapping[str, Any]) -> SourceText:
    """A SourceText from its JSON form."""
    return _build(SourceText, data, source=source_from_wire(data["source"]))


def error_from_wire(
    code: str, message: str, *, hint: str = "", field: str = "", retry_after: int = 1
) -> errors.RagPilotError:
    """The error that a problem document or an ``error`` event speaks of; a RagPilotError for an unknown code.

    Constructors differ, so the message arrives as it was sent instead of being composed anew.
    """
    kind = _errors_by_code().get(code, errors.RagPilotError)
    error = kind.__new__(kind)
    errors.RagPilotError.__init__(error, message, hint=hint)
    if isinstance(error, errors.OverloadedError):
        error.retry_after = retry_after
    if isinstance(error, errors.InvalidRequestError):
        error.field = field
    return error


def _errors_by_code() -> dict[str, type[errors.RagPilotError]]:
    found: dict[str, type[errors.RagPilotError]] = {}
    waiting = [errors.RagPilotError]
    while waiting:
        kind = waiting.pop()
        found.setdefault(kind.code, kind)
        waiting.extend(kind.__subclasses__())
    return found
