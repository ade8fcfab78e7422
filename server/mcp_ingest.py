"""The tool that writes: ``rag_ingest``, for actors who may index, over configured roots alone."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath

import anyio
from mcp_types import ToolAnnotations

from ragpilot.config import CorpusSettings
from ragpilot.corpora import known_corpora
from ragpilot.errors import IngestError, InvalidRequestError
from ragpilot.types import IngestProgress, IngestReport
from server.context import Context
from server.ingest import corpus_to_index, locate
from server.mcp_report import error_in_roots, result_of, words_for
from server.mcp_schemas import IngestArguments, IngestResult
from server.mcp_tool import Call, Output, Tool
from server.runs import RunEvent
from server.sse import EventStream

WATCHED_SECONDS = 600.0
"""How long a caller who sees progress is kept waiting for the end of a run."""
UNWATCHED_SECONDS = 45.0
"""And one who does not: most clients give a silent call up after a minute."""
BEAT_SECONDS = 2.0

_STAGES = {"scan": "Looking at files", "chunks": "Reading files", "headers": "Embedding names", "bodies": "Embedding"}


def ingest_tool(context: Context) -> Tool:
    """The tool for whoever may index."""
    return Tool(
        name="rag_ingest",
        title="Index a folder or file",
        description=(
            "Brings the index up to date with a folder or file inside a configured root: new and changed files are "
            "indexed, deleted ones are removed, unchanged ones cost nothing. Use it after you have changed files that "
            "you want to ask about. One run at a time; it goes on in the server when its caller leaves."
        ),
        arguments=IngestArguments,
        result=IngestResult,
        annotations=ToolAnnotations(
            read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False
        ),
        run=_Ingesting(context).run,
        # The wait for the run ends before, with a result; this is for what comes before it.
        seconds=WATCHED_SECONDS + 30.0,
        permission="ingest",
        audited=True,
    )


@dataclass(frozen=True, slots=True)
class _Ingesting:
    context: Context

    async def run(self, call: Call, given: IngestArguments) -> Output:
        result = await self._run(call, given)
        return Output(words_for(result), result)

    async def _run(self, call: Call, given: IngestArguments) -> IngestResult:
        await call.progress.tell("Looking at files", always=True)
        corpus, path = await self._target(call, given)
        stream = EventStream[RunEvent](
            self.context.runs.start(call.actor, corpus, path, rebuild=False).watch(),
            request_id=call.request_id,
            lifecycle=self.context.lifecycle,
            keep_alive=BEAT_SECONDS,
        )
        patience = asyncio.timeout(WATCHED_SECONDS if call.progress.watched else UNWATCHED_SECONDS)
        try:
            async with patience:
                return result_of(self.context.services.settings, corpus, await _report(stream, call))
        except IngestError as error:
            raise error_in_roots(corpus, error) from error
        except TimeoutError:
            if not patience.expired():
                raise
            return IngestResult(collection=corpus.name, outcome="running")
        finally:
            # It closes the watch; the run itself goes on.
            with anyio.CancelScope(shield=True):
                await stream.aclose()

    async def _target(self, call: Call, given: IngestArguments) -> tuple[CorpusSettings, Path | None]:
        """The corpus, and the place in it; None: all of it. Raises InvalidRequestError, UnknownCorpusError."""
        settings = self.context.services.settings
        corpus = corpus_to_index(settings, call.actor, given.collection)
        posix, windows = PurePosixPath(given.path), PureWindowsPath(given.path)
        if posix.is_absolute() or windows.is_absolute() or windows.drive or windows.root:
            raise InvalidRequestError("'path' must be relative to a configured root, not absolute.", field="path")
        if ".." in (*posix.parts, *windows.parts):
            raise InvalidRequestError("'path' must not hold '..': it lies inside a configured root.", field="path")
        if not posix.parts:
            return corpus, None
        corpora = [corpus] if given.collection is not None else known_corpora(settings, call.actor)
        return await asyncio.to_thread(locate, call.actor, corpora, given.path, self.context.services.ingestion.holds)


async def _report(events: EventStream[RunEvent], call: Call) -> IngestReport:
    while True:
        match await events.next():
            case IngestReport() as report:
                return report
            case IngestProgress(stage=stage, done=done, total=total):
                words = f"{_STAGES[stage]}: {done:,} of {total:,}" if total else _STAGES[stage]
                await call.progress.tell_of(stage, words, done=done, total=total)
            case None:
                await call.progress.tell("Indexing")
