"""Qdrant's REST API over a real socket, answered by the client library's own local mode; faults are given by a test.

What is under test is the wire: requests as the adapter sends them, answers and refusals as a server gives them.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

from pydantic import BaseModel, TypeAdapter
from qdrant_client import AsyncQdrantClient, models

from tests.protocol.http_server import ProtocolServer, Reply, Request

Fault = Callable[[Request, Reply], Awaitable[bool]]
"""Answers a request itself and returns True, or returns False."""


class QdrantServer(ProtocolServer):
    def __init__(self, version: str = "1.19.1") -> None:
        super().__init__()
        self.version = version
        self.local = AsyncQdrantClient(":memory:")
        self.key: str | None = None
        self.fault: Fault | None = None
        self.statuses: list[int] = []
        """Statuses of the next requests to collections."""

    async def handle(self, request: Request, reply: Reply) -> None:
        path = urlsplit(request.path).path
        if self.fault and await self.fault(request, reply):
            return
        if path == "/":  # open to all
            await reply.json(200, {"title": "qdrant - vector search engine", "version": self.version})
        elif self.key and request.headers.get("api-key") != self.key:
            await reply.whole(401, b"Invalid API key or JWT", "text/plain")
        elif path == "/collections":
            await reply.whole(200, _body(await self.local.get_collections()), "application/json")
        elif self.statuses:
            await _refuse(reply, self.statuses.pop(0), "injected")
        else:
            _, _, name, *rest = path.split("/")
            try:
                result = await self._answer(request.method, name, "/".join(rest), request.body)
            except ValueError as error:
                await _refuse(reply, 404 if "not found" in str(error) else 409, str(error))
            else:
                await reply.whole(200, _body(result), "application/json")

    async def _answer(self, method: str, name: str, rest: str, body: Any) -> Any:
        local = self.local
        match (method, rest):
            case ("GET", ""):
                return await local.get_collection(name)
            case ("PUT", ""):
                made = models.CreateCollection.model_validate(body)
                return await local.create_collection(
                    name,
                    vectors_config=made.vectors,
                    sparse_vectors_config=made.sparse_vectors,
                    metadata=made.metadata,
                )
            case ("PATCH", ""):
                changed = models.UpdateCollection.model_validate(body)
                return await local.update_collection(name, metadata=changed.metadata)
            case ("DELETE", ""):
                return await local.delete_collection(name)
            case ("PUT", "index"):
                await local.get_collection(name)
                return _done()
            case ("PUT", "points"):
                points = models.PointsList.model_validate(body).points
                return await local.upsert(name, points)
            case ("POST", "points"):
                wanted = models.PointRequest.model_validate(body)
                return await local.retrieve(name, wanted.ids, with_payload=wanted.with_payload or False)
            case ("POST", "points/scroll"):
                scrolled = models.ScrollRequest.model_validate(body)
                records, offset = await local.scroll(
                    name,
                    scrolled.filter,
                    limit=scrolled.limit or 10,
                    order_by=scrolled.order_by,
                    offset=scrolled.offset,
                    with_payload=scrolled.with_payload or False,
                    with_vectors=scrolled.with_vector or False,
                )
                return models.ScrollResult(points=records, next_page_offset=offset)
            case ("POST", "points/count"):
                counted = models.CountRequest.model_validate(body)
                return await local.count(name, counted.filter)
            case ("POST", "points/query/batch"):
                searches = models.QueryRequestBatch.model_validate(body).searches
                return await local.query_batch_points(name, searches)
            case ("POST", "points/batch"):
                operations = TypeAdapter(list[models.UpdateOperation]).validate_python(body["operations"])
                return await local.batch_update_points(name, operations)
            case ("POST", "facet"):
                asked = models.FacetRequest.model_validate(body)
                return await local.facet(name, asked.key, facet_filter=asked.filter, limit=asked.limit or 10)
            case _:
                raise ValueError(f"not found: {method} {rest}")


def _done() -> models.UpdateResult:
    return models.UpdateResult(operation_id=0, status=models.UpdateStatus.COMPLETED)


def _body(result: Any) -> bytes:
    def plain(value: Any) -> Any:
        if isinstance(value, BaseModel):
            return value.model_dump(mode="json")
        return [plain(item) for item in value] if isinstance(value, list) else value

    return json.dumps({"result": plain(result), "status": "ok", "time": 0.001}).encode()


async def _refuse(reply: Reply, status: int, words: str) -> None:
    await reply.json(status, {"status": {"error": words}, "time": 0.0})
