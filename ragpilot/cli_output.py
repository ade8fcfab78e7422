"""What commands print: answers and results on stdout, everything about them on stderr, all of it harmless."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TextIO

from ragpilot.counted import counted
from ragpilot.errors import RagPilotError
from ragpilot.events import Done
from ragpilot.near_misses import gate_missed, score_of
from ragpilot.terminal_text import clean, clean_line
from ragpilot.types import IngestReport, LeftOut, NearMiss, Source

SHOWN_FILES = 10
_STALE = "  changed since it was indexed"


class PipeClosed(Exception):  # noqa: N818 - no error: the reader has seen enough
    """Nobody reads the output any more."""


class OutputError(RagPilotError):
    """The result cannot be written where it was to go, such as a file on a full disk."""

    code = "output_error"


def prepare_streams() -> None:
    """Make the streams able to print any text: what their encoding lacks is spelled out, instead of a crash.

    A stream that was closed before the start is one that holds nothing: its number is taken, so that no file which is
    opened later gets it, and a result that goes to it fails as on any place that cannot be written.
    """
    for name, writing in (("stdin", False), ("stdout", True), ("stderr", True)):
        if getattr(sys, name) is None:
            handle = os.open(os.devnull, os.O_RDWR if name == "stderr" else os.O_RDONLY)
            setattr(sys, name, os.fdopen(handle, "w" if writing else "r", encoding="utf-8"))
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def write(text: str) -> None:
    """A piece of a result, at once."""
    _write(sys.stdout, clean(text))


def line(text: str = "") -> None:
    """A line of a result."""
    _write(sys.stdout, clean(text) + "\n")


def note(text: str) -> None:
    """A line about the result: warnings, hints, progress. Where it cannot be written, nobody is told."""
    with suppress(OutputError):
        _write(sys.stderr, clean(text) + "\n")


def as_json(value: Any) -> None:
    """A result for programs: one line of ASCII JSON."""
    _write(sys.stdout, json.dumps(value, ensure_ascii=True, allow_nan=False) + "\n")


def problem(error: RagPilotError) -> None:
    """An expected error, with its hint on a line of its own."""
    note(f"Error: {error.message}")
    if error.hint:
        note(error.hint)


def _write(stream: TextIO, text: str) -> None:
    try:
        stream.write(text)
        stream.flush()
    except BrokenPipeError:
        raise PipeClosed from None
    except OSError as error:
        raise unwritable(error) from None


def unwritable(error: OSError) -> OutputError:
    """What a stream that refuses what is written to it means."""
    return OutputError(f"The output cannot be written: {error.strerror or error}.")


def mute() -> None:
    """Let go of what is still buffered, so that it does not fail once more at the interpreter's end."""
    for stream in (sys.stdout, sys.stderr):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def sources(found: Sequence[Source]) -> None:
    """The sources of an answer, numbered as the answer cites them."""
    if found:
        line("\nSources:")
    for number, source in enumerate(found, start=1):
        stale = _STALE if source.stale else ""
        where = place(source.file_path, source.start_line, source.end_line, source.symbol)
        line(f"[{number}] {where} ({source.score:.2f}){stale}")


def hits(found: Sequence[Mapping[str, Any]]) -> None:
    """The hits of a search (in the form of ``POST /search``), best first."""
    for number, hit in enumerate(found, start=1):
        where = place(hit["filePath"], hit["startLine"], hit["endLine"], hit["symbol"])
        line(f"{number}. {where} ({hit['score']:.2f}){_STALE if hit.get('stale') else ''}")


def near_misses(found: Sequence[NearMiss], evidence: float) -> None:
    """What came closest and was rejected, and by what; on stderr, for these are no sources.

    ``evidence``: the question's, which the gate judges.
    """
    lacking = gate_missed(found, evidence)
    if lacking:
        note(f"Not enough for an answer: {lacking}.")
    for miss in found:
        where = place(miss.path, miss.start_line, miss.end_line, miss.symbol)
        note(f"Close, but not close enough: {where} ({score_of(miss)})")


def done(end: Done) -> None:
    """What is to be known about an answer."""
    if end.extract:
        note("An extract: passages quoted from the sources, no language model.")
    if end.unsupported:
        numbers = ", ".join(f"[{number}]" for number in end.unsupported)
        note(f"Warning: the answer cites {numbers}, which is no source.")
    for warning in end.warnings:
        note(f"Warning: {warning}")
    near_misses(end.near_misses, end.plan.get("evidence", 0.0))


def receipt(end: Done) -> None:
    """Print how the question was searched, and what became of each candidate, to stderr."""
    plan = end.plan
    gate = "off" if plan.get("gate") is None else f"{plan['gate']:.3f}"
    note(f"\n{plan.get('intent')}: evidence {plan.get('evidence', 0):.3f}, gate {gate}, floor {plan.get('floor', 0)}")
    for row in end.receipt:
        scores = [f"{name} {row[name]}" for name in ("cosine", "lexical", "score") if row.get(name) is not None]
        scores += [f"{name} {amount:+}" for name, amount in row.get("signals", {}).items()]
        tokens = f", {row['tokens']} tokens" if row.get("tokens") else ""
        note(f"{row['rank'] or '–':>3}  {clean_line(str(row.get('source', row['id'])))}")
        note(f"     {str(row['fate']).replace('_', ' ')}{tokens}: {', '.join(scores)}")


def place(path: str, start: int, end: int, symbol: str | None) -> str:
    """``src/app.py:10-42 run`` on one line, whatever path and symbol hold."""
    lines = f"{start}-{end}" if end != start else str(start)
    return f"{clean_line(path)}:{lines}" + (f" {clean_line(symbol)}" if symbol else "")


def report(found: IngestReport, *, quiet: bool) -> None:
    """What a run did; ``quiet``: only what went wrong."""
    if not quiet:
        counts = {
            "new": found.added,
            "changed": found.changed,
            "unchanged": found.unchanged,
            "removed": found.removed,
        }
        changes = ", ".join(f"{count:,} {word}" for word, count in counts.items() if count)
        line(f"{found.corpus}: {changes or 'no documents'}; {counted(found.chunks, 'chunk')}; {found.seconds:.1f} s.")
        if found.left_out:
            line(f"Left out: {_reasons(found.left_out)}.")
    for warning in found.warnings:
        note(f"Warning: {warning}")
    if found.added or found.changed:
        redacted(found.redacted)
    elif found.redacted and not quiet:
        held = counted(len(found.redacted), "file")
        note(f"Secrets stay replaced in {held}; `ragpilot index --plan` names what is found.")
    for failure in found.failed[:SHOWN_FILES]:
        detail = f" ({clean_line(failure.detail)})" if failure.detail else ""
        note(f"Failed: {clean_line(failure.path)}: {failure.reason}{detail}")
    if len(found.failed) > SHOWN_FILES:
        note(f"Failed: {len(found.failed) - SHOWN_FILES:,} more; --json lists them all.")
    if found.outcome == "nothing":
        note(f"Nothing was indexed in {found.corpus}.")


def redacted(found: Sequence[LeftOut]) -> None:
    """Where secrets were replaced, by path and kind; their values are nowhere."""
    for item in found[:SHOWN_FILES]:
        note(f"Secret replaced: {clean_line(item.path)} ({item.reason})")
    if len(found) > SHOWN_FILES:
        note(f"Secret replaced: in {counted(len(found) - SHOWN_FILES, 'more file')}; --json lists them all.")


def _reasons(left_out: Iterable[LeftOut]) -> str:
    counted = Counter(item.reason for item in left_out).most_common()
    return ", ".join(f"{number:,} {reason}" for reason, number in counted)
