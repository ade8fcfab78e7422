"""``POST /index``: one run of ingestion over configured roots, its progress as events, its report at the end.

The run goes on when its client leaves (see ``server.runs``). With ``Accept: application/json`` the report alone comes,
when the run is over.

The permission ``ingest`` is the right to have the index brought up to date, in the corpora that one may read something
of. It tells nothing of files that one may not read: not by a name or number in progress and report, and not by how a
path is refused. Who holds ``admin`` too is told everything.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

from quart import Blueprint, Response, request

from ragpilot.config import CorpusSettings
from ragpilot.corpora import known_corpora, resolve_corpus
from ragpilot.errors import InvalidRequestError
from ragpilot.events import to_wire
from ragpilot.ingest.grants import Grants, Sight
from ragpilot.ingest.paths import shown_path
from ragpilot.ingest.roots import known_roots
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
    keep_alive = context.services.settings.server.keep_alive_seconds

    @routes.post("/index")
    @context.access.needs("ingest")
    async def index(actor: Actor) -> Response:
        form = answer_form(request.headers.get("Accept"))
        asked = await body(IndexBody)
        settings = context.services.settings
        if asked.rebuild and asked.path is not None:
            raise InvalidRequestError("'rebuild' is for a whole corpus; leave 'path' away.", field="rebuild")
        corpus, path = resolve_corpus(settings, actor, asked.corpus), None
        if asked.path is not None:
            corpora = [corpus] if asked.corpus is not None else known_corpora(settings, actor)
            corpus, path = await asyncio.to_thread(locate, actor, corpora, asked.path)
        run = context.runs.start(actor, corpus, path, rebuild=asked.rebuild, vectors=asked.vectors)
        stream = EventStream[RunEvent](
            run.watch(),
            request_id=request_id(request.scope),
            lifecycle=context.lifecycle,
            keep_alive=keep_alive,
        )
        cleanup(request.scope).push_async_callback(stream.aclose)
        await stream.begin()
        if form == "text/event-stream":
            return respond(stream)
        while not isinstance(event := await stream.next(), IngestReport):
            continue
        return json_response(to_wire(event))

    return routes


def locate(actor: Actor, corpora: Sequence[CorpusSettings], path: str) -> tuple[CorpusSettings, Path]:
    """The corpus and the real place of ``path``: absolute, or relative to one of the roots; the innermost root counts.

    What is judged is where it leads after every link is followed. Raises InvalidRequestError, in the same words for a
    path outside the roots whether or not there is anything.

    For an actor without ``admin``, only where the path itself lies is judged here. Whether there is anything at it that
    he may hear of is judged by the run, so that a refusal does not tell one absence from another.
    """
    if not actor.may("admin"):
        return _unlooked(actor, corpora, path)
    inside: list[tuple[bool, int, CorpusSettings, Path]] = []
    for corpus in corpora:
        for root in corpus.roots:
            try:
                base = Path(root).resolve()
                target = (base / path).resolve()
                if target.is_relative_to(base):
                    inside.append((target.exists(), len(base.parts), corpus, target))
            except (OSError, RuntimeError, ValueError):
                # A loop of links, a name that no file system takes, a folder that may not be entered.
                raise InvalidRequestError("'path' leads nowhere.", field="path") from None
    if not inside:
        raise _outside(corpora)
    exists, _, corpus, target = max(inside, key=lambda found: found[:2])
    if not exists:
        raise InvalidRequestError("'path' names nothing inside the roots.", field="path")
    return corpus, target


def _unlooked(actor: Actor, corpora: Sequence[CorpusSettings], path: str) -> tuple[CorpusSettings, Path]:
    inside: list[tuple[bool, int, CorpusSettings, Path]] = []
    for corpus in corpora:
        sight = Sight(actor, Grants(corpus))
        for root in known_roots(corpus):
            target = Path(os.path.normpath(root.folder / path))
            if target.is_relative_to(root.folder):
                shown = root.prefix + shown_path(os.fsencode(target.relative_to(root.folder)))
                seen = os.path.lexists(target) and sight.sees(shown)
                inside.append((seen, len(root.folder.parts), corpus, target))
    if not inside:
        raise _outside(corpora)
    _, _, corpus, target = max(inside, key=lambda found: found[:2])
    return corpus, target


def _outside(corpora: Sequence[CorpusSettings]) -> InvalidRequestError:
    names = ", ".join(repr(corpus.name) for corpus in corpora)
    return InvalidRequestError(f"'path' must lie inside a root of {names}, links followed.", field="path")
