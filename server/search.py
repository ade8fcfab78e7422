"""``POST /search``: retrieval alone, the hits as sources."""

from __future__ import annotations

from typing import Any

from quart import Blueprint, Response

from ragpilot.citations import citation_line
from ragpilot.corpora import resolve_corpus
from ragpilot.events import to_wire
from ragpilot.retrieval import Retrieval
from ragpilot.types import Actor, Hit, Source
from server.context import Context, json_response
from server.requests import SearchBody, body


def search_routes(context: Context) -> Blueprint:
    """The route of retrieval alone."""
    routes = Blueprint("search", __name__)
    services = context.services

    @routes.post("/search")
    @context.access.needs("ask")
    async def search(actor: Actor) -> Response:
        asked = await body(SearchBody)
        corpus = resolve_corpus(services.settings, actor, asked.corpus)
        found = await services.retriever.search(
            actor, asked.question, corpus=corpus.name, top_k=asked.k, focus=tuple(asked.focus)
        )
        return json_response(retrieval_to_wire(found))

    return routes


def retrieval_to_wire(found: Retrieval) -> dict[str, Any]:
    """What a search found, and by which bounds, in JSON types."""
    return {
        "hits": [to_wire(source_of(hit)) for hit in found.hits],
        **to_wire(found.bounds),
        "nearMisses": to_wire(found.near_misses),
        "plan": to_wire(found.plan),
        "timings": to_wire(found.timings),
        "warnings": to_wire(found.warnings),
    }


def source_of(hit: Hit) -> Source:
    """A hit in the form of a source."""
    chunk = hit.chunk
    return Source(
        file_path=chunk.path,
        symbol=chunk.symbol,
        score=round(hit.score, 4),
        id=chunk.id,
        title=chunk.title,
        start_line=chunk.start_line,
        end_line=chunk.end_line,
        citation=citation_line(chunk.path, chunk.start_line, chunk.end_line, chunk.symbol),
        source_type=chunk.source_type,
    )
