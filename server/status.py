"""``GET /health``, ``/index/stats``, ``/corpora`` and ``/sources/{id}``: what can be known beside answers."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

from quart import Blueprint, Response, request

from ragpilot.errors import AuthenticationError, InvalidRequestError
from ragpilot.events import to_wire
from ragpilot.logs import log_unexpected
from ragpilot.types import Actor, Health
from server.context import Context, json_response
from server.patience import in_time
from server.requests import CorpusQuery, SourceQuery, check

HEALTH_PATH = "/health"

FRESH_SECONDS = 2.0
"""For how long a check of health is good for everyone who asks."""
PATIENCE_SECONDS = 0.15
"""How long a request waits for a new check while an older one can still be told."""
STALE_SECONDS = 15.0
CHECK_SECONDS = 5.0

STORE_ILL = "The store does not work as it should; an administrator is told why."
INDEX_ILL = "An index does not fit the configured embedder; an administrator is told which."

PARTS = ("store", "embedder", "model")
Parts = Mapping[str, Health]

logger = logging.getLogger(__name__)


def status_routes(context: Context) -> Blueprint:
    """The routes that tell what is indexed and whether the parts are well."""
    routes = Blueprint("status", __name__)
    board = HealthBoard(context.services.status.health)

    @routes.get(HEALTH_PATH)
    async def health() -> Response:
        parts = await board.parts()
        well = all(part.ok for part in parts.values())
        told: dict[str, object] = {"status": "ok" if well else "unavailable"}
        try:
            actor = context.access.actor(request.scope["headers"])
        except AuthenticationError:
            # Probes need no token: without a known actor they learn this one word.
            pass
        else:
            told.update(to_wire(_told(parts, actor, open_to_all=not context.access.has_actors)))
        return json_response(told, 200 if well else 503)

    @routes.get("/index/stats")
    @context.access.needs("ask")
    async def stats(actor: Actor) -> Response:
        query = check(CorpusQuery, _query())
        status = context.services.status
        return json_response(to_wire(await in_time(status.stats(actor, query.corpus), status)))

    @routes.get("/corpora")
    @context.access.needs("ask")
    async def corpora(actor: Actor) -> Response:
        status = context.services.status
        return json_response({"corpora": to_wire(await in_time(status.corpora(actor), status))})

    @routes.get("/sources/<chunk_id>")
    @context.access.needs("ask")
    async def source(actor: Actor, chunk_id: str) -> Response:
        query = check(SourceQuery, _query())
        status = context.services.status
        work = status.source(actor, query.corpus, chunk_id, context=query.context)
        return json_response(to_wire(await in_time(work, status)))

    return routes


def _told(parts: Parts, actor: Actor, *, open_to_all: bool) -> Parts:
    """What ``actor`` learns of the parts: why a store is ill may name a corpus that not everybody may know of."""
    if open_to_all or actor.may("admin"):
        return parts
    hidden = {"store": STORE_ILL, "index": INDEX_ILL}
    return {
        name: part if part.ok or name not in hidden else replace(part, detail=hidden[name])
        for name, part in parts.items()
    }


class HealthBoard:
    """The last check of health, made anew when it is old, by one check at a time.

    Polling costs nothing, and a store that is busy indexing does not keep a poller waiting: for a while the last
    result is told instead. A check that does not end in time means that its parts do not answer.
    """

    def __init__(self, look: Callable[[], Awaitable[Parts]]) -> None:
        self._look = look
        self._parts: Parts = {}
        self._logged: dict[str, str] = {}
        self._seen = float("-inf")
        self._task: asyncio.Task[None] | None = None

    async def parts(self) -> Parts:
        """Health by part."""
        if self._age() < FRESH_SECONDS:
            return self._parts
        if self._task is None:
            self._task = asyncio.create_task(self._renew())
        patience = PATIENCE_SECONDS if self._age() < STALE_SECONDS else None
        await asyncio.wait({self._task}, timeout=patience)
        return self._parts

    async def _renew(self) -> None:
        try:
            async with asyncio.timeout(CHECK_SECONDS):
                self._parts = await self._look()
        except TimeoutError:
            self._all_ill(f"There was no answer within {CHECK_SECONDS:g} s.")
        except Exception as error:  # noqa: BLE001 - whatever breaks a check, the answer is that something is ill
            log_unexpected(logger, error, "for health")
            self._all_ill("The check failed; the server's log says how.")
        finally:
            self._log()
            self._seen = time.monotonic()
            self._task = None

    def _log(self) -> None:
        """Say once what is ill and why, and that it is well again."""
        ill = {name: part.detail for name, part in self._parts.items() if not part.ok}
        for name, detail in ill.items():
            if name not in self._logged:
                logger.warning("%s is not well: %s", name, detail)
        for name in self._logged.keys() - ill.keys():
            logger.info("%s is well again", name)
        self._logged = ill

    def _all_ill(self, detail: str) -> None:
        self._parts = dict.fromkeys(PARTS, Health(ok=False, detail=detail))

    def _age(self) -> float:
        return time.monotonic() - self._seen


def _query() -> dict[str, str]:
    """The query's values by name. Raises InvalidRequestError for a name that comes twice."""
    for name, values in request.args.lists():
        if len(values) > 1:
            raise InvalidRequestError(f"{name[:100]!r} is given more than once.", field=name[:100])
    return dict(request.args.items())
