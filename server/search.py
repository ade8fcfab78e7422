"""``POST /search``: retrieval alone, the hits as sources."""

from __future__ import annotations

from quart import Blueprint, Response

from ragpilot.types import Actor
from server.context import Context, json_response
from server.patience import in_time
from server.requests import SearchBody, body


def search_routes(context: Context) -> Blueprint:
    """The route of retrieval alone."""
    routes = Blueprint("search", __name__)

    @routes.post("/search")
    @context.access.needs("ask")
    async def search(actor: Actor) -> Response:
        asked = await body(SearchBody)
        services = context.services
        work = services.searcher.search(actor, asked.question, k=asked.k, corpus=asked.corpus, focus=tuple(asked.focus))
        return json_response(await in_time(work, services.status))

    return routes
