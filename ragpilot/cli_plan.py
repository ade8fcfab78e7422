"""`ragpilot index --plan`: what a first run would index and leave out, why, and what it would take."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Final

from ragpilot import cli_output as out
from ragpilot.actors import command_token
from ragpilot.adhoc import Part
from ragpilot.cli_index import IndexOptions, Target, find_target
from ragpilot.cli_session import plan, store_actor
from ragpilot.config import Environment
from ragpilot.corpora import NO_CORPUS, may_know
from ragpilot.counted import counted
from ragpilot.errors import PermissionDeniedError
from ragpilot.events import to_wire
from ragpilot.exit_codes import DONE, FAILED
from ragpilot.ingest.plan import IngestPlan
from ragpilot.ingest.reasons import Reason
from ragpilot.terminal_text import clean_line
from ragpilot.types import LeftOut

EXAMPLES: Final = 3


async def run_plan(environment: Environment, path: Path | None, options: IndexOptions) -> int:
    """Print a plan a corpus. Gives 1 where nothing would be indexed."""
    target = find_target(environment, path)
    code = DONE
    for part in _known(target):
        if not (options.quiet or options.as_json):
            out.note(f"Reading {', '.join(part.corpus.roots)} …")
        found = await plan(target.environment, os.environ, part.corpus, path=part.path, broad=options.broad)
        if options.as_json:
            out.as_json(to_wire(found))
        else:
            _print(found)
        if not found.documents:
            code = FAILED
    return code


def _known(target: Target) -> list[Part]:
    """What the actor may plan for. Raises AuthenticationError, and PermissionDeniedError where that is nothing."""
    actor = store_actor(target.environment, command_token(os.environ), os.environ)
    known = [part for part in target.parts if may_know(actor, part.corpus)]
    if not actor.may("ingest"):
        raise PermissionDeniedError(f"The actor {actor.name!r} may not index: it lacks the permission 'ingest'.")
    if not known:
        raise PermissionDeniedError(NO_CORPUS)
    return known


def _print(found: IngestPlan) -> None:
    documents, chunks = counted(found.documents, "document"), counted(found.chunks, "chunk")
    out.line(f"{found.corpus}: {documents} ({_size(found.bytes)}), {chunks}.")
    for kind, number in found.documents_by_type.items():
        out.line(f"  {kind:<22} {counted(number, 'document'):>18} {counted(found.chunks_by_type[kind], 'chunk'):>18}")
    _print_reasons("Left out", found.left_out)
    _print_reasons("Failed", found.failed)
    secret = [item for item in found.left_out if item.reason == Reason.SECRET_FILE]
    if secret or found.redacted:
        out.line("Suspected secrets:")
    for item in secret:
        out.line(f"  {clean_line(item.path)}: left out by its name")
    for item in found.redacted:
        out.line(f"  {clean_line(item.path)}: replaced ({item.reason})")
    for text in found.notes:
        out.note(text)
    for warning in found.warnings:
        out.note(f"Warning: {warning}")
    if found.documents:
        asked, all_in = _duration(found.seconds_to_searchable), _duration(found.seconds)
        size = _size(found.disk_bytes)
        out.line(f"About {asked} until it can be asked about, {all_in} until every vector is in; {size} on disk.")
    else:
        out.note(f"Nothing would be indexed in {found.corpus}.")


def _print_reasons(title: str, items: Sequence[LeftOut]) -> None:
    """Counts by reason, the most frequent first, each with a few of its paths."""
    if not items:
        return
    by_reason = sorted(items, key=lambda item: item.reason)
    groups = [(reason, list(group)) for reason, group in groupby(by_reason, key=lambda item: item.reason)]
    out.line(f"{title}:")
    for reason, group in sorted(groups, key=lambda pair: -len(pair[1])):
        shown = ", ".join(clean_line(item.path) for item in group[:EXAMPLES])
        out.line(f"  {len(group):>7,} {reason:<17} {shown}{', …' if len(group) > EXAMPLES else ''}")


def _size(number: int) -> str:
    return f"{number / 1e6:,.1f} MB" if number >= 100_000 else f"{number / 1e3:,.1f} kB"


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:,.0f} min" if seconds < 5400 else f"{seconds / 3600:,.1f} h"
