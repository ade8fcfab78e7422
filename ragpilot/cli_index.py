"""`ragpilot index`: what a path means, and a run over each corpus of it."""

from __future__ import annotations

import asyncio
import os
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ragpilot import cli_output as out
from ragpilot.adhoc import AdHoc, Part, choose, environment_of, forget, known, locate, remember, remembered
from ragpilot.cli_progress import reporter
from ragpilot.cli_session import Session, open_session
from ragpilot.config import Environment
from ragpilot.corpora import NO_CORPUS
from ragpilot.errors import (
    ConfigError,
    IngestRunningError,
    InvalidRequestError,
    PermissionDeniedError,
    UnknownCorpusError,
)
from ragpilot.events import to_wire
from ragpilot.exit_codes import DONE, FAILED, PARTLY
from ragpilot.ingest.manifest import indexed_under
from ragpilot.ingest.roots import known_roots, scopes
from ragpilot.settings_loader import load, state_folder
from ragpilot.terminal_text import clean_line
from ragpilot.types import IngestProgress, IngestReport

TURN_SECONDS: Final = 0.5
"""Between two looks whether a server's run has ended."""


@dataclass(frozen=True, slots=True)
class IndexOptions:
    """The options of `ragpilot index`."""

    rebuild: bool
    quiet: bool
    bodies: bool
    broad: bool
    as_json: bool


@dataclass(frozen=True, slots=True)
class Target:
    """What a run of `ragpilot index` works on. ``made``: an ad-hoc corpus, to be remembered once it holds something."""

    environment: Environment
    parts: list[Part]
    made: AdHoc | None = None


async def run_index(environment: Environment, path: Path | None, options: IndexOptions) -> int:
    """Index, corpus by corpus, and print a report each. Gives 4 where some files failed, 1 where nothing came out."""
    target = await asyncio.to_thread(_find_any, environment, path)
    untouched = not target.environment.state.exists()
    try:
        return await _run_over(target, options)
    finally:
        if target.made is not None and untouched and remembered(target.made.state) is None:
            await asyncio.to_thread(forget, target.made)


async def _run_over(target: Target, options: IndexOptions) -> int:
    code = DONE
    hidden = 0
    async with open_session(target.environment, "index", os.environ) as session:
        for part in target.parts:
            try:
                report = await _index_in_turn(session, part, target.made, options)
            except UnknownCorpusError:
                # Of all that are configured, one may index those that one may know of, and hears of no others.
                hidden += 1
                continue
            except asyncio.CancelledError:
                goes_on = "The server goes on with it." if session.address else "The next run goes on from here."
                out.note(f"Stopped; what is indexed stays. {goes_on}")
                raise
            if options.as_json:
                out.as_json(to_wire(report))
            else:
                out.report(report, quiet=options.quiet)
            code = _worse(code, {"complete": DONE, "partial": PARTLY, "nothing": FAILED}[report.outcome])
        if hidden == len(target.parts):
            raise PermissionDeniedError(NO_CORPUS)
        if session.address and options.bodies and not (options.quiet or options.as_json):
            out.note(f"The server at {session.address} embeds the rest in the background.")
    return code


async def _index_in_turn(session: Session, part: Part, made: AdHoc | None, options: IndexOptions) -> IngestReport:
    """As ``_index``, once the run that a server is at already, such as one that the terminal UI began, has ended."""
    told = False
    while True:
        try:
            return await _index(session, part, made, options)
        except IngestRunningError:
            if not session.address:
                raise
            if not told:
                out.note(f"The server at {session.address} is indexing; this run follows. Ctrl-C to leave.")
            told = True
            await asyncio.sleep(TURN_SECONDS)


async def _index(session: Session, part: Part, made: AdHoc | None, options: IndexOptions) -> IngestReport:
    run = session.index(
        part.corpus.name, path=part.path, rebuild=options.rebuild, bodies=options.bodies, broad=options.broad
    )
    with reporter(quiet=options.quiet or options.as_json) as shown:
        async with aclosing(run) as events:
            async for event in events:
                if made is not None and event.chunks:
                    remember(made)
                    made = None
                if isinstance(event, IngestProgress):
                    shown.show(event)
                    continue
                for text in event.notes:
                    shown.tell(text)
                return event
    raise ConfigError(f"The run over {part.corpus.name} ended without a report.")


def find_target(environment: Environment, path: Path | None) -> Target:
    """What ``path`` means: a part of a configured corpus, or a corpus of its own."""
    if path is None:
        return Target(environment, [Part(corpus, None) for corpus in environment.settings.corpora])
    place = Path(os.path.realpath(path))
    if (part := locate(environment, place)) is not None:
        return Target(environment, [part])
    if not place.is_dir():
        raise ConfigError(f"{place} lies in no corpus.", hint="Name its folder: that makes a corpus of its own.")
    there = load(config=environment.config, directory=place, environ=os.environ)
    home = there.state.parent
    own_state = state_folder(home, "folder", place)
    part = locate(there, place)
    if part is not None and (there.state != own_state or there.state.exists()):
        # A configuration names it, or commands were run in that folder before: it has a name already.
        return Target(there, [part])
    taken = {made.name for made in known(home)} | {corpus.name for corpus in environment.settings.corpora}
    made = choose(place, own_state, taken)
    only = environment_of(made, there)
    return Target(only, [Part(only.settings.corpora[0], None)], made)


def _find_any(environment: Environment, path: Path | None) -> Target:
    if path is None or os.path.lexists(path):
        return find_target(environment, path)
    return _find_gone(environment, path)


def _find_gone(environment: Environment, path: Path) -> Target:
    """The corpus that something is indexed in from ``path``, where nothing is any more: a run there removes it.

    Raises InvalidRequestError where there is none.
    """
    part = locate(environment, Path(os.path.realpath(path)))
    if part is not None and part.path is not None:
        covered = scopes(known_roots(part.corpus), part.path)
        if any(indexed_under(environment.state, part.corpus.name, scope.shown) for scope in covered):
            return Target(environment, [part])
    raise InvalidRequestError(f"Path '{clean_line(str(path))}' does not exist.", field="path")


def _worse(one: int, other: int) -> int:
    """The worse of two exit codes: failed, then partly done, then done."""
    return max(one, other, key=(DONE, PARTLY, FAILED).index)
