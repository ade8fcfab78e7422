"""The collections of one Qdrant server: found, checked, created and removed, each with its revision."""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from qdrant_client import AsyncQdrantClient, models

from ragpilot.adapters.index_identity import REBUILD, is_corpus_name, require_corpus_name, require_identity
from ragpilot.adapters.qdrant_connection import ExistsError, MissingError, QdrantConnection
from ragpilot.adapters.qdrant_filters import RECORD_ID
from ragpilot.adapters.qdrant_layout import (
    INDEXES,
    LAST_INGESTION,
    METADATA,
    REVISION,
    TERMS,
    TERMS_INDEX,
    Layout,
    from_metadata,
    is_counted,
    moment,
    to_metadata,
)
from ragpilot.errors import IndexMismatchError, StoreDamagedError, StoreError, StoreUnavailableError
from ragpilot.types import CollectionInfo, IndexIdentity

logger = logging.getLogger(__name__)

BELIEVED_SECONDS = 30.0
"""How long what was learned of a collection is believed without asking again."""


@dataclass(frozen=True, slots=True)
class Known:
    """A collection as it was found."""

    name: str
    identity: IndexIdentity
    points: int
    """About how many chunks; decides how they are searched."""
    indexed: frozenset[str]
    """Payload fields that have an index."""
    counted: bool
    """Whether RagPilot weighs lexical terms (``Layout.counted``)."""
    at: float


class QdrantCollections:
    """Finds collections by corpus. What it knows is a cache: any call may find that a collection has gone."""

    def __init__(self, connection: QdrantConnection, layout: Layout) -> None:
        self.connection = connection
        self.layout = layout
        self._known: dict[str, Known] = {}
        self._told: set[str] = set()
        self._revision = 0

    def name(self, corpus: str) -> str:
        """The collection's name on the server."""
        return self.layout.prefix + corpus

    async def find(self, corpus: str) -> Known | None:
        """The collection, checked; None where there is none. Raises StoreError for one that cannot be used."""
        known = self._known.get(corpus)
        if known is None or time.monotonic() - known.at > BELIEVED_SECONDS:
            known = await self._look(corpus)
        return known

    async def require(self, corpus: str) -> Known:
        """The collection, for a writer. Raises StoreError where there is none."""
        known = await self.find(corpus)
        if known is None:
            raise StoreError(f"There is no collection {corpus!r} to write to.")
        return known

    def forget(self, corpus: str) -> None:
        """The collection has gone."""
        self._known.pop(corpus, None)

    async def _look(self, corpus: str) -> Known | None:
        name = self.name(corpus)
        self.forget(corpus)
        if not is_corpus_name(corpus):
            return None
        try:
            info = await self.connection.call(lambda client: client.get_collection(name))
        except MissingError:
            return None
        identity = from_metadata(name, corpus, info.config)
        counted = is_counted(info.config)
        if not counted and (info.config.params.shard_number or 1) > 1 and corpus not in self._told:
            self._told.add(corpus)
            logger.warning(
                "%r was given shards after it was made: its words weigh otherwise in each. %s", name, REBUILD
            )
        indexed = frozenset(info.payload_schema)
        known = Known(name, identity, info.points_count or 0, indexed, counted, time.monotonic())
        self._known[corpus] = known
        return known

    async def ensure(self, corpus: str, identity: IndexIdentity) -> CollectionInfo:
        """Open the collection, or create it, and complete a creation that was interrupted."""
        require_corpus_name(corpus)
        known = await self._look(corpus)
        if known is None:
            with suppress(ExistsError):  # another process was quicker, or the answer to the first try was lost
                await self.connection.call(lambda client: self._create(client, corpus, identity))
            known = await self._look(corpus)
        if known is None:
            raise StoreUnavailableError(f"The collection {corpus!r} was created and is gone again.")
        require_identity(corpus, known.identity, identity)
        await self._complete(known)
        info = await self.info(corpus)
        if info is None:
            raise StoreUnavailableError(f"The collection {corpus!r} is gone again.")
        return info

    async def _create(self, client: AsyncQdrantClient, corpus: str, identity: IndexIdentity) -> None:
        await client.create_collection(self.name(corpus), **self.layout.parameters(corpus, identity))

    async def _complete(self, known: Known) -> None:
        indexes = {**INDEXES, TERMS: TERMS_INDEX} if known.counted else INDEXES
        for field, schema in indexes.items():
            if field not in known.indexed:
                await self.connection.call(lambda client, f=field, s=schema: _index(client, known.name, f, s))  # type: ignore[misc]
        if not await self._record(known.name):
            payload = {REVISION: self.next_revision(), LAST_INGESTION: None}
            point = models.PointStruct(id=RECORD_ID, vector={}, payload=payload)
            await self.connection.call(lambda client: client.upsert(known.name, [point], wait=True))

    async def adopt_chunker(self, corpus: str, known: Known, chunker: str) -> None:
        """Write ``chunker`` into the metadata of a collection."""
        metadata = {METADATA: to_metadata(corpus, replace(known.identity, chunker=chunker))}
        await self.connection.call(lambda client: client.update_collection(known.name, metadata=metadata))
        self.forget(corpus)

    async def drop(self, corpus: str) -> None:
        """Remove the collection, also one that cannot be used; never one that RagPilot did not make."""
        name = self.name(corpus)
        if not is_corpus_name(corpus):
            return
        try:
            info = await self.connection.call(lambda client: client.get_collection(name))
        except MissingError:
            self.forget(corpus)
            return
        with suppress(IndexMismatchError):  # ours, of another version or damaged: a reason to drop it
            from_metadata(name, corpus, info.config)
        await self.connection.call(lambda client: client.delete_collection(name))
        self.forget(corpus)

    async def info(self, corpus: str) -> CollectionInfo | None:
        """Identity, revision and last ingestion; None where there is no collection."""
        known = await self._look(corpus)
        if known is None:
            return None
        record = await self._record(known.name)
        if not record:
            raise StoreDamagedError(f"The collection {known.name!r} lacks its record.", hint=REBUILD)
        return CollectionInfo(corpus, known.identity, int(record[REVISION]), moment(record.get(LAST_INGESTION)))

    async def _record(self, name: str) -> dict[str, Any]:
        points = await self.connection.call(lambda client: client.retrieve(name, [RECORD_ID], with_payload=True))
        return dict(points[0].payload or {}) if points else {}

    def next_revision(self) -> int:
        """A revision that no write has had before: the clock's microseconds, and more than the last one here.

        By the clock, so that several processes that write to one server need not ask each other.
        """
        self._revision = max(self._revision + 1, time.time_ns() // 1_000)
        return self._revision

    def revised(self, *, last_ingestion: datetime | None = None) -> models.SetPayloadOperation:
        """The operation that opens every write: the collection's next revision."""
        payload: dict[str, Any] = {REVISION: self.next_revision()}
        if last_ingestion is not None:
            payload[LAST_INGESTION] = last_ingestion.isoformat()
        return models.SetPayloadOperation(set_payload=models.SetPayload(payload=payload, points=[RECORD_ID]))


async def _index(client: AsyncQdrantClient, name: str, field: str, schema: Any) -> None:
    await client.create_payload_index(name, field, schema, wait=True)
