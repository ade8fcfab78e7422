"""The tools that read: ``ask``, ``rag_query``, ``rag_collections``."""

from __future__ import annotations

from dataclasses import dataclass

import anyio
from mcp_types import ToolAnnotations

from ragpilot.errors import RagPilotError
from ragpilot.events import Answer, AnswerEvent, Done, Failed, Sources, Token, error_from_wire, to_wire
from ragpilot.mcp_identity import root_names
from ragpilot.passages import format_passages
from ragpilot.types import AskRequest, Source
from server import patience
from server.context import Context
from server.mcp_schemas import (
    AskArguments,
    AskResult,
    CollectionResult,
    CollectionsArguments,
    CollectionsResult,
    QueryArguments,
    QueryResult,
)
from server.mcp_tool import Call, Output, Progress, Tool
from server.sse import EventStream, Limits

BEAT_SECONDS = 5.0
"""Progress is told at least this often."""

_READS = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)


def reading_tools(context: Context) -> list[Tool]:
    """The tools for whoever may ask."""
    reading = _Reading(context)
    return [
        Tool(
            name="ask",
            title="Ask the indexed code",
            description=(
                "Answers a question about the indexed codebase from that codebase alone, and names its sources. "
                "Use it to learn how something works, where it is done, or why. The answer cites its sources as [n]; "
                "after it comes the list of them, each path with its score. "
                '"Not found in the indexed sources." means that nothing there answers it: that is a result, not a '
                "failure. To read or edit the code itself, use rag_query, which is faster."
            ),
            arguments=AskArguments,
            result=AskResult,
            annotations=_READS,
            run=reading.ask,
            seconds=context.services.settings.chat.total_seconds,
        ),
        Tool(
            name="rag_query",
            title="Find passages in the indexed code",
            description=(
                "Finds the passages of the indexed codebase that are nearest to a question, best first, with path, "
                "lines, symbol and text; no language model, milliseconds. Use it for context before you write or "
                "change code, and instead of guessing at names. An empty result means that nothing is near enough: "
                "try other words, or a lower threshold (0.35 still means something)."
            ),
            arguments=QueryArguments,
            result=QueryResult,
            annotations=_READS,
            run=reading.query,
            seconds=patience.READ_SECONDS,
        ),
        Tool(
            name="rag_collections",
            title="List the indexed collections",
            description=(
                "Lists the collections that can be asked: name, root folders, number of passages, embedder and its "
                "dimensions, when each was last indexed, and whether it is being indexed now. Use it when a "
                "collection's name is needed, to see how fresh it is, or whether it is your project at all."
            ),
            arguments=CollectionsArguments,
            result=CollectionsResult,
            annotations=_READS,
            run=reading.collections,
            seconds=patience.READ_SECONDS,
        ),
    ]


@dataclass(frozen=True, slots=True)
class _Reading:
    context: Context

    async def ask(self, call: Call, given: AskArguments) -> Output:
        settings = self.context.services.settings
        request = AskRequest(given.question, call.request_id, top_k=given.top_k, corpus=given.corpus)
        stream = EventStream[AnswerEvent](
            self.context.services.asker.ask(call.actor, request),
            request_id=call.request_id,
            lifecycle=self.context.lifecycle,
            keep_alive=BEAT_SECONDS,
            limits=Limits.of(settings.chat),
        )
        try:
            answer = await _collect(stream, call.progress)
        finally:
            # Also where the call is cancelled: the model must stop with its caller.
            with anyio.CancelScope(shield=True):
                await stream.aclose()
        wire = to_wire(answer)
        result = AskResult.model_validate({**wire["done"], "answer": answer.answer, "sources": wire["sources"]})
        empty = "" if answer.sources else await self._said_of_empty(call, given.corpus)
        return Output(_with_sources(answer) + empty, result)

    async def query(self, call: Call, given: QueryArguments) -> Output:
        found = await self.context.services.searcher.search(
            call.actor,
            given.question,
            k=given.limit,
            corpus=given.collection,
            min_score=given.threshold,
            texts=True,
        )
        empty = "" if found["hits"] else await self._said_of_empty(call, given.collection)
        return Output(format_passages(found) + empty, QueryResult.model_validate(found))

    async def collections(self, call: Call, _: CollectionsArguments) -> Output:
        services = self.context.services
        found = await services.status.corpora(call.actor)
        roots = {corpus.name: root_names(corpus.roots) for corpus in services.settings.corpora}
        told = call.actor.may("ingest")
        result = CollectionsResult(
            collections=[
                CollectionResult.model_validate(
                    {
                        **to_wire(one),
                        "roots": roots.get(one.name, []),
                        # A run over files that an actor may not read must not show.
                        "indexing": told and self.context.runs.indexing(one.name),
                    }
                )
                for one in found
            ]
        )
        lines = [_collection_line(one) for one in result.collections]
        return Output("\n".join(lines) or "There is no collection that you may read.", result)

    async def _said_of_empty(self, call: Call, name: str | None) -> str:
        """Where nothing was found, because there is nothing: an agent would look for other words in vain."""
        try:
            known = await self.context.services.status.corpora(call.actor)
        except RagPilotError:
            # What was asked is answered; this is only a remark.
            return ""
        asked = [one for one in known if (one.default if name is None else one.name == name)]
        if not asked or any(one.point_count for one in asked):
            return ""
        return f"\n\n{asked[0].name} holds nothing yet that you may read; `ragpilot index` fills it."


async def _collect(stream: EventStream[AnswerEvent], progress: Progress) -> Answer:
    """The whole answer. Raises RagPilotError where it failed, ProblemError at a shutdown."""
    pieces: list[str] = []
    sources: tuple[Source, ...] = ()
    await progress.tell("Searching the index", always=True)
    while True:
        match await stream.next():
            case Token(text=text):
                pieces.append(text)
                await progress.tell(f"Answering: {sum(map(len, pieces)):,} characters so far", always=len(pieces) == 1)
            case Sources(sources=found):
                sources = found
            case Done() as done:
                return Answer("".join(pieces), sources, done)
            case Failed(code=code, message=message):
                raise error_from_wire(code, message)
            case None:
                await progress.tell("Answering" if pieces else "Waiting for the chat model")


def _with_sources(answer: Answer) -> str:
    if not answer.sources:
        return answer.answer
    lines = [f"- {source.file_path} ({source.score:.2f})" for source in answer.sources]
    return "\n".join([f"{answer.answer}\n\nSources:", *lines])


def _collection_line(one: CollectionResult) -> str:
    default = " (the default)" if one.default else ""
    last = f"last indexed {one.last_ingestion_time}" if one.last_ingestion_time else "nothing indexed that you may read"
    roots = f", of {', '.join(one.roots)}" if one.roots else ""
    last += "; being indexed now" if one.indexing else ""
    vectors = f"{one.embedder}, {one.dimensions} dimensions"
    return f"- {one.name}{default}{roots}: {one.point_count:,} passages; {vectors}; {last}"
