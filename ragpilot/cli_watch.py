"""`ragpilot index --watch`: the index keeps up with the files until Ctrl-C.

Runs go through the server of the state folder, which is started where none runs, as the terminal UI starts it: so
questions are answered meanwhile, and vectors are filled in behind the runs.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Protocol

from ragpilot import cli_output as out
from ragpilot.adhoc import Part, forget, remember
from ragpilot.cli_index import IndexOptions, find_target
from ragpilot.cli_launch import connect
from ragpilot.cli_progress import reporter
from ragpilot.config import Environment
from ragpilot.corpora import NO_CORPUS
from ragpilot.errors import (
    IngestRunningError,
    InvalidRequestError,
    PermissionDeniedError,
    RagPilotError,
    RootError,
    ServerUnreachableError,
    StoreInUseError,
    UnknownCorpusError,
)
from ragpilot.events import to_wire
from ragpilot.exit_codes import DONE
from ragpilot.ingest.roots import resolve_roots
from ragpilot.ingest.watch_look import can_be_asked_for
from ragpilot.ingest.watcher import CorpusWatcher
from ragpilot.types import IngestProgress, IngestReport

TURN_SECONDS: Final = 0.3
"""How long to wait for somebody else's run, or for a command that holds the index."""
RETRY_SECONDS: Final = 3.0
KEEP_SECONDS: Final = 240.0
"""A server that was started for this leaves after ten idle minutes; it is asked for something before that."""


class Server(Protocol):
    """What is used of ``tui.backend.Backend``."""

    base_url: str

    def index(
        self, *, corpus: str | None = None, path: str | None = None, rebuild: bool = False, vectors: bool = True
    ) -> AsyncGenerator[IngestProgress | IngestReport, None]:
        """One run; the last item is its report."""
        ...

    async def health(self) -> Any:
        """How its parts are."""
        ...

    async def aclose(self) -> None:
        """Close its connections."""
        ...


async def run_watch(environment: Environment, path: Path | None, options: IndexOptions) -> int:
    """Index, then whatever changes, until cancelled. Raises what keeps the first run over a corpus from its end."""
    target = find_target(environment, path)
    for part in target.parts:
        await asyncio.to_thread(resolve_roots, part.corpus)
    untouched = not target.environment.state.exists()
    if target.made is not None:
        remember(target.made)
    indexer = _Indexer(target.environment, options)
    tasks = [asyncio.ensure_future(_watch(part, indexer)) for part in target.parts]
    tasks += [asyncio.ensure_future(_none_left(tasks.copy())), asyncio.ensure_future(indexer.keep())]
    try:
        await asyncio.gather(*tasks)
    except asyncio.CancelledError:
        out.note("No longer watching; what is indexed stays.")
        raise
    except RagPilotError:
        if target.made is not None and untouched and not indexer.has_indexed:
            await asyncio.to_thread(forget, target.made)
        raise
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        await indexer.aclose()
    return DONE


async def _none_left(watches: Sequence[asyncio.Future[None]]) -> None:
    await asyncio.gather(*watches)
    raise PermissionDeniedError(NO_CORPUS)


async def _watch(part: Part, indexer: _Indexer) -> None:
    """Watch until cancelled; returns only for a corpus that the actor may not know of, of which nothing is said."""
    watcher = CorpusWatcher(part.corpus, indexer.environment.state, path=part.path, say=out.note)
    first = True
    async with aclosing(watcher.places()) as places:
        async for place in places:
            try:
                await indexer.index(part, place, first=first)
            except UnknownCorpusError:
                return
            first = False


class _Indexer:
    """Runs, one at a time, and what is printed of them."""

    def __init__(self, environment: Environment, options: IndexOptions) -> None:
        self.environment = environment
        self._options = options
        self._server: Server | None = None
        self._turn = asyncio.Lock()
        self._told: set[str] = set()
        self.has_indexed = False
        """Whether any run has come to its end."""

    async def index(self, part: Part, place: Path | None, *, first: bool) -> None:
        """Run over a place of a corpus, however often that takes; the first run's failure is the caller's."""
        async with self._turn:
            while True:
                try:
                    report = await self._run(part, place, first=first)
                except IngestRunningError:
                    self._note("Another run is under way; what has changed is indexed after it.")
                    await asyncio.sleep(TURN_SECONDS)
                except StoreInUseError as error:
                    self._tell(error)
                    await asyncio.sleep(TURN_SECONDS)
                except RagPilotError as error:
                    if first:
                        raise
                    if isinstance(error, RootError):
                        return  # the watcher waits for its return, and then everything is looked at
                    if isinstance(error, InvalidRequestError) and place is not None:
                        place = None  # it went in this moment
                        continue
                    place = None
                    self._tell(error)
                    await self.aclose()
                    await asyncio.sleep(RETRY_SECONDS)
                else:
                    self.has_indexed = True
                    self._show(report, first=first)
                    return

    async def keep(self) -> None:
        """Keep the server from leaving."""
        while True:
            await asyncio.sleep(KEEP_SECONDS)
            if self._server is not None:
                with suppress(RagPilotError):  # it is found or started anew with the next change
                    await self._server.health()

    async def aclose(self) -> None:
        """Let go of the server."""
        server, self._server = self._server, None
        if server is not None:
            await server.aclose()

    async def _run(self, part: Part, place: Path | None, *, first: bool) -> IngestReport:
        if self._server is None:
            self._server = await connect(self.environment, os.environ)
        path = _narrowed(part, place)
        rebuild = first and self._options.rebuild
        # Vectors are left to the server, so that what changes next need not wait for them.
        run = self._server.index(corpus=part.corpus.name, path=path, rebuild=rebuild, vectors=False)
        hidden = self._options.quiet or self._options.as_json or not (first or sys.stderr.isatty())
        with reporter(quiet=hidden) as shown:
            async with aclosing(run) as events:
                async for event in events:
                    if isinstance(event, IngestProgress):
                        shown.show(event)
                        continue
                    for text in event.notes:
                        shown.tell(text)
                    return event
        raise ServerUnreachableError(f"The run over {part.corpus.name} ended without a report.")

    def _show(self, report: IngestReport, *, first: bool) -> None:
        """The first report whole; of later ones, what has changed and what was not said before."""
        if not first:
            if not (report.added or report.changed or report.removed or report.failed):
                return
            fresh = tuple(warning for warning in report.warnings if warning not in self._told)
            report = replace(report, unchanged=0, left_out=(), redacted=(), warnings=fresh)
        self._told.update(report.warnings)
        if self._options.as_json:
            out.as_json(to_wire(report))
        else:
            out.report(report, quiet=self._options.quiet)
        if first and self._server is not None and not (self._options.as_json or self._options.quiet):
            out.note(
                f"Watching {report.corpus}; Ctrl-C ends it. The server at {self._server.base_url} answers meanwhile."
            )

    def _note(self, text: str) -> None:
        if text not in self._told:
            self._told.add(text)
            out.note(text)

    def _tell(self, error: RagPilotError) -> None:
        if str(error) not in self._told:
            self._told.add(str(error))
            out.problem(error)


def _narrowed(part: Part, place: Path | None) -> str | None:
    """What to ask the server for: ``place``, or the nearest folder above it that is still there; None: everything."""
    wanted = part.path if place is None else place
    while wanted is not None and any(Path(root) in wanted.parents for root in part.corpus.roots):
        if can_be_asked_for(os.fspath(wanted)):
            return os.fspath(wanted)
        wanted = wanted.parent
    return None
