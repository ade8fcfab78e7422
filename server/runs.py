"""Runs of ingestion: one at a time, owned by the server, watched by whoever asks for one.

A run is not tied to its watcher: when the client leaves, it goes on to its end. What it indexed is asked about at
once, since the server owns the store. A run whose files can all be found by their words, and that only fills in
vectors by now, makes room for the next one. Between runs, vectors that are missing are filled in the background; a run
that is asked for interrupts that, and it is taken up again afterwards.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path
from typing import Protocol

from ragpilot.config import CorpusSettings
from ragpilot.errors import IngestRunningError, RagPilotError, StoreError, StoreFullError
from ragpilot.logs import log_unexpected
from ragpilot.types import Actor, IngestProgress, IngestReport
from server.problems import GRANTS_PENDING, SHUTTING_DOWN, UNEXPECTED, ProblemError

logger = logging.getLogger(__name__)

SERVER = Actor("server", frozenset(), frozenset({"ingest"}))
"""Who fills vectors and applies grants: it may write, and can read nothing."""

INTERRUPT_SECONDS = 15.0
"""How long the filling may take to make room for a run."""
GRANTS_SECONDS = 10.0
"""How long a request waits for grants to be applied."""
CLOSE_SECONDS = 2.0
"""How long work may take to end at a shutdown; it loses nothing when it is cut off later."""

RunEvent = IngestProgress | IngestReport


class Ingestion(Protocol):
    """The part of the core that writes the index."""

    def run(
        self,
        actor: Actor,
        corpus: CorpusSettings,
        *,
        path: Path | None = None,
        rebuild: bool = False,
        headers: bool = True,
        bodies: bool = True,
        leave: asyncio.Event | None = None,
    ) -> AsyncIterator[IngestProgress | IngestReport]:
        """One run over a corpus, or over ``path`` in it; the last item is the report, which ``leave`` calls for."""
        ...

    def fill(self, actor: Actor, corpus_name: str) -> AsyncIterator[IngestProgress | IngestReport]:
        """Embeds what is stored without vectors; the last item is the report."""
        ...

    def holds(self, actor: Actor, corpus: CorpusSettings, path: Path) -> bool:
        """Whether something at ``path``, or below it, is indexed that the actor may hear of; blocking."""
        ...

    async def apply_grants(self, actor: Actor, corpus: CorpusSettings) -> int:
        """Gives stored documents the readers of the configuration; how many had others."""
        ...


class Run:
    """One run: its latest event, for any number of watchers."""

    def __init__(self) -> None:
        self.leave = asyncio.Event()
        """Set to have it end as soon as it can."""
        self._latest: RunEvent | None = None
        self._number = 0
        self._news = asyncio.Event()
        self._ended = False
        self._error: Exception | None = None

    @property
    def fills_vectors(self) -> bool:
        """Whether everything can be found by its words by now."""
        return isinstance(self._latest, IngestProgress) and self._latest.stage in ("headers", "bodies")

    def publish(self, event: RunEvent) -> None:
        """Tell the watchers; one that is slow misses progress, never the report."""
        self._latest = event
        self._number += 1
        self._wake()

    def end(self, error: Exception | None) -> None:
        """Nothing more will come. The first call counts."""
        if not self._ended:
            self._ended, self._error = True, error
            self._wake()

    async def watch(self) -> AsyncGenerator[RunEvent, None]:
        """Progress as it comes, then the report. Raises what ended the run; closing this does not end it."""
        seen = 0
        while True:
            news = self._news
            if self._latest is not None and self._number > seen:
                seen = self._number
                yield self._latest
            elif not self._ended:
                await news.wait()
            elif self._error is not None:
                raise self._error
            else:
                return

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()


class IngestRuns:
    """Starts runs and fills vectors; the one place in the server that writes the index."""

    def __init__(self, ingestion: Ingestion, corpora: list[CorpusSettings], *, writes: bool = True) -> None:
        """Without ``writes``, this process is at a run of its own: none is started, and no vectors are filled in."""
        self._ingestion = ingestion
        self._writes = writes
        self._corpora = corpora
        self._running: asyncio.Task[None] | None = None
        self._run = Run()
        """The one that is running, or was last."""
        self._corpus = ""
        """What it is over."""
        self._filling: asyncio.Task[None] | None = None
        self._granting: asyncio.Task[None] | None = None
        self._pending = {corpus.name: corpus for corpus in corpora}
        """Corpora whose grants are not known to be in force."""
        self._withheld = False
        """Whether grants are not in force for a reason that does not keep the index from being read."""
        self._closed = False

    def indexing(self, corpus: str) -> bool:
        """Whether a run over the corpus is under way."""
        return not self._writes or (self._running is not None and not self._running.done() and self._corpus == corpus)

    @property
    def busy(self) -> bool:
        """Whether the index is being written."""
        tasks = (self._running, self._filling, self._granting)
        return any(task is not None and not task.done() for task in tasks)

    def start(
        self, actor: Actor, corpus: CorpusSettings, path: Path | None, *, rebuild: bool, vectors: bool = True
    ) -> Run:
        """Start a run in the background; without ``vectors`` it ends when everything can be found by its words.

        Raises IngestRunningError where one is under way that has not come so far yet.
        """
        if self._closed:
            raise ProblemError(SHUTTING_DOWN)
        before = self._running if self._running is not None and not self._running.done() else None
        if not self._writes or (before is not None and (not self._run.fills_vectors or self._run.leave.is_set())):
            raise IngestRunningError("A run of ingestion is under way.", hint="Wait for its end and ask again.")
        self._run.leave.set()
        run = self._run = Run()
        self._corpus = corpus.name
        self._running = asyncio.create_task(self._work(run, before, actor, corpus, path, rebuild, vectors))
        self._running.add_done_callback(lambda _: run.end(ProblemError(SHUTTING_DOWN)))
        return run

    def adopt(self, corpora: list[CorpusSettings]) -> None:
        """Go by other grants; they are in force once ``granted`` returns."""
        changed = [corpus for corpus in corpora if corpus not in self._corpora]
        self._corpora = corpora
        self._pending |= {corpus.name: corpus for corpus in changed}
        self.grant()

    def grant(self) -> None:
        """Begin to put grants in force where they are not, unless that is under way."""
        if self._pending and not self._closed and (self._granting is None or self._granting.done()):
            self._granting = asyncio.create_task(self._apply_grants())

    async def granted(self) -> None:
        """Return once the grants are in force, so that nothing is answered by those of yesterday.

        What could not be applied is tried again. Raises ProblemError where that takes too long, or fails while the
        index could still be read; a store that fails is left to answer for itself.
        """
        if not self._pending or self._closed:
            return
        self.grant()
        if self._granting is not None:
            await asyncio.wait({self._granting}, timeout=GRANTS_SECONDS)
            if not self._granting.done():
                logger.warning("the grants are not applied yet; nothing is answered until they are")
                raise ProblemError(GRANTS_PENDING)
        if self._withheld:
            raise ProblemError(GRANTS_PENDING)

    def fill(self) -> None:
        """Fill missing vectors in the background, corpus by corpus, unless that is under way."""
        if self._writes and not self._closed and (self._filling is None or self._filling.done()):
            self._filling = asyncio.create_task(self._fill())

    async def aclose(self) -> None:
        """Stop what runs, at a point from which the next run goes on. Idempotent."""
        if self._closed:
            return
        self._closed = True
        await asyncio.gather(*(_stop(task, CLOSE_SECONDS) for task in (self._running, self._filling, self._granting)))

    async def _work(
        self,
        run: Run,
        before: asyncio.Task[None] | None,
        actor: Actor,
        corpus: CorpusSettings,
        path: Path | None,
        rebuild: bool,
        vectors: bool,
    ) -> None:
        if before is not None:
            await asyncio.wait({before}, timeout=INTERRUPT_SECONDS)
        await _stop(self._filling, INTERRUPT_SECONDS)
        await self._granted()
        logger.info("%s indexes corpus %s, path %.300r, rebuild %s", actor.name, corpus.name, str(path or ""), rebuild)
        report: IngestReport | None = None
        try:
            # Body vectors are left to the filling behind it: the run ends as soon as everything can be found.
            async for event in self._ingestion.run(
                actor, corpus, path=path, rebuild=rebuild, headers=vectors, bodies=False, leave=run.leave
            ):
                if isinstance(event, IngestReport):
                    report = event
                else:
                    run.publish(event)
        except RagPilotError as error:
            logger.warning("indexing corpus %s ended: %s", corpus.name, error.code)
            run.end(error)
        except Exception as error:  # noqa: BLE001 - the watcher is told, whether or not there still is one
            log_unexpected(logger, error, f"while indexing {corpus.name}")
            run.end(ProblemError(UNEXPECTED))
        else:
            # Only now, and without a pause before the end: who has the report can ask for the next run at once.
            if report is not None:
                run.publish(report)
            run.end(None)
        finally:
            self.fill()

    async def _apply_grants(self) -> None:
        tried: list[CorpusSettings] = []
        self._withheld = False
        # Told apart by identity: grants may become again what they were while others are applied.
        while waiting := [corpus for corpus in self._pending.values() if not any(corpus is one for one in tried)]:
            for corpus in waiting:
                tried.append(corpus)
                if await self._apply(corpus) and self._pending.get(corpus.name) is corpus:
                    del self._pending[corpus.name]

    async def _apply(self, corpus: CorpusSettings) -> bool:
        """Put the grants of one corpus in force; whether that succeeded."""
        try:
            changed = await self._ingestion.apply_grants(SERVER, corpus)
        except StoreError as error:
            # Nothing is answered from it either, unless it lacks nothing but room for a write.
            self._withheld = self._withheld or isinstance(error, StoreFullError)
            logger.error("the grants of corpus %s are not applied: %s", corpus.name, error.code)
        except RagPilotError as error:
            self._withheld = True
            logger.error("the grants of corpus %s are not applied: %s", corpus.name, error.code)
        except Exception as error:  # noqa: BLE001 - work in the background: it must not take the server with it
            self._withheld = True
            log_unexpected(logger, error, f"for the grants of {corpus.name}")
        else:
            if changed:
                logger.info("%d documents of corpus %s have other readers now", changed, corpus.name)
            return True
        return False

    async def _granted(self) -> None:
        """Wait until grants are applied, or given up."""
        if self._granting is not None:
            await asyncio.wait({self._granting})

    async def _fill(self) -> None:
        await self._granted()
        for corpus in self._corpora:
            try:
                async for _ in self._ingestion.fill(SERVER, corpus.name):
                    pass
            except RagPilotError as error:
                logger.warning("filling vectors of corpus %s ended: %s", corpus.name, error.code)
            except Exception as error:  # noqa: BLE001 - work in the background: it must not take the server with it
                log_unexpected(logger, error, f"for the vectors of {corpus.name}")


async def _stop(task: asyncio.Task[None] | None, seconds: float) -> None:
    """Have ``task`` reach a point at which it can be left; give up waiting for it after ``seconds``."""
    if task is not None and not task.done():
        task.cancel()
        await asyncio.wait({task}, timeout=seconds)
