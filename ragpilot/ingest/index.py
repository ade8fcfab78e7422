"""One corpus in the store, with its manifest in step: what a run reads and writes of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from types import TracebackType
from typing import Self, TypeVar

from ragpilot.errors import StoreError
from ragpilot.identity_words import only_cut_otherwise
from ragpilot.ingest.grants import Grants
from ragpilot.ingest.manifest import Manifest, Row
from ragpilot.ingest.parts import Parts
from ragpilot.ingest.prepare import Prepared, cut_by
from ragpilot.ingest.reasons import Reason
from ragpilot.types import IndexedChunk, IngestScope, LeftOut, VectorName

_T = TypeVar("_T")

_AT_ONCE = 500
"""Documents of one delete or grant change."""
_GIVE_UP = 20
"""Documents that the store refuses one after the other: it is the store that fails, not the documents."""


class CorpusIndex:
    """Store and manifest of one corpus. An async context manager; the manifest's file is open inside.

    Grants can be changed while somebody else's work on it is under way (``regrant``): writes of the two take turns,
    and what is written afterwards is granted by the new ones.
    """

    def __init__(self, parts: Parts, scope: IngestScope) -> None:
        self._parts = parts
        self._store = parts.store
        self._scope = scope
        self._manifest: Manifest | None = None
        self._refused_in_a_row = 0
        self._turn = asyncio.Lock()
        self._known = asyncio.Event()
        self._newer: Grants | None = None
        self.rows: dict[str, Row] = {}
        """What is known of each file, by path."""
        self.chunks = 0
        """Chunks in the store."""
        self.exists = False
        """Whether the store has a collection for the corpus, opened under this run's identity."""
        self.former_chunker = ""
        """Another chunker than this run's, which the collection is of; empty: there is none."""

    def indexed(self) -> list[Row]:
        """The rows of documents that are in the store."""
        return [row for row in self.rows.values() if row.indexed]

    async def __aenter__(self) -> Self:
        self._manifest = await asyncio.to_thread(Manifest, self._parts.state)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        async with self._turn:
            await asyncio.to_thread(self._opened.close)
            self._manifest = None
        self.leave()

    @property
    def left_behind(self) -> str:
        """The chunker of a document that a run which cut everything anew did not come to; empty: there is none."""
        now = self._parts.identity.chunker
        return next((by for row in self.indexed() if (by := cut_by(row.rules)) not in ("", now)), "")

    async def load(self, *, fresh: bool = False, any_identity: bool = False, any_chunker: bool = False) -> None:
        """Read what is known, from the store itself where the manifest is not in step with it.

        ``fresh``: nothing that is known counts, and a collection of another identity is no obstacle. ``any_identity``:
        it is none for what reads and writes neither texts nor vectors. ``any_chunker``: one of another chunker is none;
        ``adopt`` makes it ours. Raises IndexMismatchError for one otherwise.
        """
        if fresh:
            # What is there is dropped unread: it may be damaged, which is why somebody rebuilds.
            self.exists = False
            return
        async with self._turn:
            await self._load(self._scope.corpus, any_identity=any_identity, any_chunker=any_chunker)
        self._known.set()

    async def _load(self, corpus: str, *, any_identity: bool, any_chunker: bool) -> None:
        info = await self._store.describe(corpus)
        self.exists = info is not None
        if info is None:
            await asyncio.to_thread(self._opened.forget, corpus)
            return
        if any_chunker and only_cut_otherwise(info.identity, self._parts.identity):
            self.former_chunker = info.identity.chunker
        elif not any_identity:
            info = await self._store.ensure(self._scope, self._parts.identity)
        if await asyncio.to_thread(self._opened.revision, corpus) == info.revision:
            self.rows = await asyncio.to_thread(self._opened.rows, corpus)
        else:
            states = await self._store.documents(self._scope)
            self.rows = await asyncio.to_thread(self._opened.rebuild, corpus, states, info.revision)
        self.chunks = sum(row.chunks for row in self.rows.values())

    async def adopt(self) -> None:
        """Make the collection one of this run's chunker, which is to cut every document of it anew.

        It can be searched from here on. What was cut otherwise is known by its row, so that whichever run comes next
        goes on where this one is stopped.
        """
        async with self._turn:
            await self._store.adopt_chunker(self._scope, self._parts.identity.chunker)
            await self._store.ensure(self._scope, self._parts.identity)
            self.former_chunker = ""
            await self._note([], [])

    async def drop(self) -> None:
        """Remove everything."""
        await self._store.drop(self._scope)
        await asyncio.to_thread(self._opened.forget, self._scope.corpus)
        self.rows, self.chunks, self.exists = {}, 0, False
        self._known.set()

    async def write(self, batch: Sequence[Prepared]) -> list[LeftOut]:
        """Store a batch of prepared files, and then note them. Returns those that the store refused."""
        async with self._turn:
            if self._newer is not None:
                batch = await asyncio.to_thread(_granted, batch, self._newer)
            return await self._write(batch)

    async def _write(self, batch: Sequence[Prepared]) -> list[LeftOut]:
        writes = [prepared for prepared in batch if prepared.chunks is not None]
        removed = [prepared for prepared in batch if prepared.row is not None and not prepared.row.indexed]
        if writes:
            await self._ensure()
        results = await asyncio.gather(*map(self._upsert, writes))
        refused = [failure for failure in results if failure is not None]
        await self._delete([item.task.known for item in removed if item.task.known is not None])
        failed = {failure.path for failure in refused}
        done = [item.row for item in batch if item.row is not None and item.row.path not in failed]
        vanished = [row for row in done if row.outcome == Reason.VANISHED]
        await self._note([row for row in done if row.outcome != Reason.VANISHED], vanished)
        return refused

    async def remove(self, gone: Sequence[Row]) -> None:
        """Remove documents whose files are gone, and forget them."""
        async with self._turn:
            await self._delete(gone)
            await self._note([], gone)

    async def set_readers(self, grants: Grants) -> int:
        """Give indexed documents the readers that the grants say, or newer ones. Returns how many had others."""
        async with self._turn:
            return await self._set_readers(self._newer or grants)

    def leave(self) -> None:
        """Nothing will be done here any more, whether or not anything was: nobody need wait. Idempotent."""
        self._known.set()

    async def regrant(self, grants: Grants) -> int | None:
        """``set_readers`` from beside the work that this is open for; what it writes later gets these readers too.

        Waits until it is known what is indexed. Returns None where the work has ended before, and nothing was done.
        """
        self._newer = grants
        await self._known.wait()
        async with self._turn:
            return None if self._manifest is None else await self._set_readers(grants)

    async def _set_readers(self, grants: Grants) -> int:
        changed = await asyncio.to_thread(self._regranted, grants)
        for some in _slices(changed):
            await self._store.set_readers(self._scope, {row.document_id: row.readers for row in some})
            await self._note(some, [])
        return len(changed)

    def _regranted(self, grants: Grants) -> list[Row]:
        wanted = ((row, grants.readers(row.path)) for row in self.indexed())
        return [replace(row, readers=readers) for row, readers in wanted if readers != row.readers]

    async def readable(self, having: VectorName | None = None) -> int:
        """How many chunks the actor may read; ``having``: only those that have this vector."""
        return await self._store.count(self._scope.actor, self._scope.corpus, having=having)

    async def note_left_out(self, items: Sequence[LeftOut], scopes: Sequence[str]) -> None:
        """Write down what a run over ``scopes`` has left out."""
        await asyncio.to_thread(self._opened.record_left_out, self._scope.corpus, items, scopes=scopes)

    async def agree(self) -> None:
        """Note that the rows still hold, after a write that does not concern them."""
        async with self._turn:
            await self._note([], [])

    async def finish(self, at: datetime) -> None:
        """Note the end of a run."""
        await self._store.record_ingestion(self._scope, at)
        await self.agree()

    @property
    def _opened(self) -> Manifest:
        if self._manifest is None:
            raise RuntimeError("the index is used outside its context")
        return self._manifest

    async def _ensure(self) -> None:
        if not self.exists:
            await self._store.ensure(self._scope, self._parts.identity)
            self.exists = True

    async def _upsert(self, prepared: Prepared) -> LeftOut | None:
        row, chunks = prepared.row, prepared.chunks
        if row is None or chunks is None:
            return None
        try:
            await self._store.upsert(self._scope, row.document_id, chunks)
        except StoreError as error:
            self._refused_in_a_row += 1
            # Only the plain error is one document's; those below it in the tree are the whole store's.
            if type(error) is not StoreError or self._refused_in_a_row >= _GIVE_UP:
                raise
            return LeftOut(row.path, Reason.STORING_FAILED, str(error))
        self._refused_in_a_row = 0
        return None

    async def _delete(self, rows: Sequence[Row]) -> None:
        ids = [row.document_id for row in rows if row.indexed]
        for some in _slices(ids):
            await self._store.delete_documents(self._scope, some)

    async def _note(self, rows: Sequence[Row], gone: Sequence[Row]) -> None:
        """Write down what the store has acknowledged, with its revision. Without a collection, in memory alone."""
        paths = [row.path for row in gone]
        for path in (*paths, *(row.path for row in rows)):
            known = self.rows.pop(path, None)
            self.chunks -= known.chunks if known else 0
        self.rows.update((row.path, row) for row in rows)
        self.chunks += sum(row.chunks for row in rows)
        info = await self._store.describe(self._scope.corpus) if self.exists else None
        if info is not None:
            corpus = self._scope.corpus
            await asyncio.to_thread(self._opened.record, corpus, info.revision, rows=rows, gone=paths)


def _granted(batch: Sequence[Prepared], grants: Grants) -> list[Prepared]:
    """``batch`` with the readers that newer grants say than it was prepared by."""
    return [replace(item, row=_row_granted(item.row, grants), chunks=_rechunked(item, grants)) for item in batch]


def _row_granted(row: Row | None, grants: Grants) -> Row | None:
    return replace(row, readers=grants.readers(row.path)) if row is not None and row.indexed else row


def _rechunked(item: Prepared, grants: Grants) -> tuple[IndexedChunk, ...] | None:
    if not item.chunks:
        return item.chunks
    readers = grants.readers(item.task.entry.path)
    return tuple(replace(held, chunk=replace(held.chunk, readers=readers)) for held in item.chunks)


def _slices(items: list[_T]) -> Iterator[list[_T]]:
    return (items[at : at + _AT_ONCE] for at in range(0, len(items), _AT_ONCE))
