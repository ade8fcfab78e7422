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
from collections.abc import Callable, Sequence
from pathlib import Path

from quart import Blueprint, Response, request

from ragpilot.config import CorpusSettings, Settings
from ragpilot.corpora import NO_CORPUS, NOTHING, known_corpora, resolve_corpus
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
        corpus, path = corpus_to_index(settings, actor, asked.corpus), None
        if asked.path is not None:
            corpora = [corpus] if asked.corpus is not None else known_corpora(settings, actor)
            corpus, path = await asyncio.to_thread(locate, actor, corpora, asked.path, context.services.ingestion.holds)
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


def corpus_to_index(settings: Settings, actor: Actor, name: str | None) -> CorpusSettings:
    """The named corpus or the actor's default. Raises UnknownCorpusError, or InvalidRequestError where he has none."""
    corpus = resolve_corpus(settings, actor, name)
    if corpus.name == NOTHING:
        raise InvalidRequestError(NO_CORPUS)
    return corpus


Holds = Callable[[Actor, CorpusSettings, Path], bool]
"""Whether something at or below a place is indexed that the actor may hear of, be it gone from the disk."""


def locate(actor: Actor, corpora: Sequence[CorpusSettings], path: str, holds: Holds) -> tuple[CorpusSettings, Path]:
    """The corpus and the real place of ``path``: absolute, or relative to one of the roots.

    What is there counts before what is only indexed, and the innermost root among these. What is judged is where a path
    leads after every link is followed. Raises InvalidRequestError, in the same words for a path outside the roots
    whether or not there is anything.

    For an actor without ``admin``, only where the path itself lies is judged here. Whether there is anything at it that
    he may hear of is judged by the run, so that a refusal does not tell one absence from another.
    """
    inside = _unlooked(actor, corpora, path) if not actor.may("admin") else _looked(corpora, path)
    if not inside:
        raise _outside(corpora)
    ranked = [
        (there, not there and holds(actor, corpus, target), depth, corpus, target)
        for there, depth, corpus, target in inside
    ]
    there, held, _, corpus, target = max(ranked, key=lambda found: found[:3])
    if not there and not held and actor.may("admin"):
        raise InvalidRequestError("'path' names nothing inside the roots.", field="path")
    return corpus, target


_Place = tuple[bool, int, CorpusSettings, Path]
"""Whether something is there, how deep its root lies, the corpus, the place."""


def _looked(corpora: Sequence[CorpusSettings], path: str) -> list[_Place]:
    inside: list[_Place] = []
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
    return inside


def _unlooked(actor: Actor, corpora: Sequence[CorpusSettings], path: str) -> list[_Place]:
    inside: list[_Place] = []
    for corpus in corpora:
        sight = Sight(actor, Grants(corpus))
        for root in known_roots(corpus):
            target = Path(os.path.normpath(root.folder / path))
            if target.is_relative_to(root.folder):
                shown = root.prefix + shown_path(os.fsencode(target.relative_to(root.folder)))
                seen = os.path.lexists(target) and sight.sees(shown)
                inside.append((seen, len(root.folder.parts), corpus, target))
    return inside


def _outside(corpora: Sequence[CorpusSettings]) -> InvalidRequestError:
    names = ", ".join(repr(corpus.name) for corpus in corpora)
    return InvalidRequestError(f"'path' must lie inside a root of {names}, links followed.", field="path")
