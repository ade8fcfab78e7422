"""``POST /index``: one run of ingestion over configured roots, its progress as events, its report at the end.

The run goes on when its client leaves (see ``server.runs``). With ``Accept: application/json`` the report alone comes,
when the run is over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from quart import Blueprint, Response, request

from ragpilot.config import CorpusSettings
from ragpilot.corpora import known_corpora, resolve_corpus
from ragpilot.errors import InvalidRequestError
from ragpilot.events import to_wire
from ragpilot.types import Actor, IngestReport
from server.context import Context, json_response
from server.guard import cleanup, request_id
from server.negotiation import answer_form
from server.requests import IndexBody, body
from server.runs import RunEvent
from server.sse import EventStream, respond


def ingest_routes(context: Context) -> Blueprint:
    """The route that writes the index."""
    routes = Blueprint("ingest", __name__)
    settings = context.services.settings

    @routes.post("/index")
    @context.access.needs("ingest")
    async def index(actor: Actor) -> Response:
        form = answer_form(request.headers.get("Accept"))
        asked = await body(IndexBody)
        corpus, path = resolve_corpus(settings, actor, asked.corpus), None
        if asked.path is not None:
            corpora = [corpus] if asked.corpus is not None else known_corpora(settings, actor)
            corpus, path = await asyncio.to_thread(locate, corpora, asked.path)
        run = context.runs.start(actor, corpus, path, rebuild=asked.rebuild)
        stream = EventStream[RunEvent](
            run.watch(),
            request_id=request_id(request.scope),
            lifecycle=context.lifecycle,
            keep_alive=settings.server.keep_alive_seconds,
        )
        cleanup(request.scope).push_async_callback(stream.aclose)
        await stream.begin()
        if form == "text/event-stream":
            return respond(stream)
        while not isinstance(event := await stream.next(), IngestReport):
            continue
        return json_response(to_wire(event))

    return routes


def locate(corpora: Sequence[CorpusSettings], path: str) -> tuple[CorpusSettings, Path]:
    """The corpus and the real place of ``path``: absolute, or relative to one of the roots.

    What counts is where it leads after every link is followed. Raises InvalidRequestError in the same words for a
    path outside the roots, whether or not there is anything.
    """
    inside: tuple[CorpusSettings, Path] | None = None
    for corpus in corpora:
        for root in map(Path, corpus.roots):
            try:
                base = root.resolve()
                target = (base / path).resolve()
                if not target.is_relative_to(base):
                    continue
                if target.exists():
                    return corpus, target
            except (OSError, RuntimeError, ValueError):
                # A loop of links, or a name that no file system takes, leads nowhere.
                continue
            inside = inside or (corpus, target)
    if inside is None:
        names = ", ".join(repr(corpus.name) for corpus in corpora)
        raise InvalidRequestError(f"'path' must lie inside a root of {names}, links followed.", field="path")
    raise InvalidRequestError("'path' names nothing inside the roots.", field="path")
