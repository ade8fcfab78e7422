"""StatusService: health, what an actor may know of the index, and the text of a source."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from copy import copy
from dataclasses import replace

from ragpilot.citations import source_of
from ragpilot.config import CorpusSettings, Settings
from ragpilot.corpora import default_corpus, known_corpora, resolve_corpus
from ragpilot.errors import IndexMismatchError, StoreError, UnknownSourceError
from ragpilot.freshness import Freshness
from ragpilot.identity_words import misfit, only_cut_otherwise
from ragpilot.ports import ChatModel, ChunkStore, Embedder
from ragpilot.retrieval import Retriever
from ragpilot.types import Actor, Chunk, CollectionInfo, CorpusInfo, Health, IndexIdentity, IndexStats, SourceText

ReadText = Callable[[str, str], str | None]
"""(corpus, path) -> the file's text as it would be indexed (decoded, redacted); None where it cannot be had."""

REBUILD = "`ragpilot index --rebuild`"
INDEX = "`ragpilot index` cuts it anew"
INDEX_SECONDS = 2.0
"""The longest wait for what the indexes say of themselves: a store that is busy is told by its own check."""

LeftOutOf = Callable[[Actor, CorpusSettings], Awaitable[Mapping[str, int]]]
"""(actor who may ingest, corpus) -> how many files are not indexed, by reason, as far as the actor may know of them."""


class StatusService:
    """Answers what can be known beside answers.

    Everything but ``health`` is for actors who may ask, and scoped to what each of them may read.
    """

    def __init__(
        self,
        store: ChunkStore,
        embedder: Embedder,
        chat: ChatModel,
        retriever: Retriever,
        settings: Settings,
        freshness: Freshness,
        read_text: ReadText,
        *,
        identity: IndexIdentity,
        chat_reason: str = "",
        left_out: LeftOutOf | None = None,
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._chat = chat
        self._retriever = retriever
        self._settings = settings
        self._freshness = freshness
        self._read_text = read_text
        self._identity = identity
        self._chat_reason = chat_reason
        self._left_out = left_out

    def with_settings(self, settings: Settings) -> StatusService:
        """The same service, with the actors and grants of ``settings``."""
        other = copy(self)
        other._settings = settings  # noqa: SLF001 - it is one of us
        return other

    async def health(self, *, within: float | None = None) -> dict[str, Health]:
        """Reachability of store, embedder and model, asked at once; the model's with why it is this one.

        A part that says nothing ``within`` so many seconds, where they are given, is told as not ok. A further part,
        ``index``, is told where an index cannot be searched with the configured embedder.
        """
        names = ("store", "embedder", "model")
        checks: tuple[Awaitable[Health], ...] = (self._store.check(), self._embedder.check(), self._chat.check())
        parts, indexes = await asyncio.gather(
            asyncio.gather(*(_bounded(check, within) for check in checks)), self._ill_indexes(within)
        )
        found = dict(zip(names, parts, strict=True))
        if found["store"].ok:
            found |= indexes
        model = found["model"]
        if self._chat_reason and model.ok:
            found["model"] = replace(model, detail=f"{model.detail.rstrip('.')}. {self._chat_reason}")
        return found

    async def _ill_indexes(self, within: float | None) -> dict[str, Health]:
        """What is wrong with indexes that the store holds: as ``index``, or as ``store`` where it cannot open one."""
        misfits = []
        try:
            async with asyncio.timeout(INDEX_SECONDS if within is None else min(within, INDEX_SECONDS)):
                for corpus in self._settings.corpora:
                    words = self._misfit(await self._store.describe(corpus.name))
                    misfits += [f"Corpus {corpus.name}: {words}"] if words else []
        except TimeoutError:
            pass  # the store's own check tells that it is busy or away
        except StoreError as error:
            return {"store": Health(ok=False, detail=str(error))}
        except IndexMismatchError as error:
            misfits.append(str(error))
        return {"index": Health(ok=False, detail=" ".join(misfits))} if misfits else {}

    def _misfit(self, info: CollectionInfo | None) -> str | None:
        """Why an index does not fit what is configured, and what makes it fit; None where it does."""
        if info is None or info.identity == self._identity:
            return None
        command = INDEX if only_cut_otherwise(info.identity, self._identity) else REBUILD
        return f"the index {misfit(info.identity, self._identity)}: {command}"

    async def stats(self, actor: Actor, corpus: str | None = None) -> IndexStats:
        """Counts of what the actor may read; of nothing, and without a name, for one who may know of no corpus.

        Raises PermissionDeniedError, UnknownCorpusError and StoreError.
        """
        actor.need("ask")
        meant = resolve_corpus(self._settings, actor, corpus)
        name = meant.name
        info = await self._store.describe(name) if name else None
        total = await self._store.count(actor, name)
        headers = await self._store.count(actor, name, having="header")
        bodies = await self._store.count(actor, name, having="body")
        return IndexStats(
            corpus=name,
            point_count=total,
            last_ingestion_time=await self._store.last_indexed(actor, name),
            documents=len(await self._store.facets(actor, name, "path")),
            chunks_by_source_type=await self._store.facets(actor, name, "source_type"),
            header_share=headers / total if total else 1.0,
            body_share=bodies / total if total else 1.0,
            embedder=info.identity.embedder if info else self._embedder.identity,
            bounds=self._retriever.bounds(total),
            left_out=await self._left_out(actor, meant) if self._left_out and self._hears(actor) else None,
            misfit=self._misfit(info),
        )

    def _hears(self, actor: Actor) -> bool:
        """Whether what a run has left out is the actor's business; everybody's, where nobody is told apart."""
        return actor.may("ingest") or not self._settings.actors

    async def corpora(self, actor: Actor) -> list[CorpusInfo]:
        """The corpora that the actor may know of, in the configuration's order. Raises PermissionDeniedError."""
        actor.need("ask")
        default = default_corpus(self._settings, actor).name
        told = []
        for corpus in known_corpora(self._settings, actor):
            info = await self._store.describe(corpus.name)
            embedder = info.identity.embedder if info else self._embedder.identity
            told.append(
                CorpusInfo(
                    name=corpus.name,
                    default=corpus.name == default,
                    point_count=await self._store.count(actor, corpus.name),
                    last_ingestion_time=await self._store.last_indexed(actor, corpus.name),
                    dimensions=embedder.dimensions,
                    embedder=embedder.name,
                )
            )
        return told

    async def source(self, actor: Actor, corpus: str | None, chunk_id: str, *, context: int = 10) -> SourceText:
        """A readable chunk with up to ``context`` lines around it.

        Raises UnknownSourceError, also for one that the actor may not read; PermissionDeniedError, UnknownCorpusError.
        """
        actor.need("ask")
        name = resolve_corpus(self._settings, actor, corpus).name
        chunk = await self._store.get(actor, name, chunk_id)
        if chunk is None:
            raise UnknownSourceError(f"There is no source {chunk_id!r}" + (f" in corpus {name!r}." if name else "."))
        stale = bool(await self._freshness.stale([chunk]))
        before, after = ([], []) if stale or not context else await self._around(chunk, context)
        return SourceText(
            source=source_of(chunk, 0.0, stale=stale),
            text=chunk.text,
            before="\n".join(before),
            after="\n".join(after),
            first_line=chunk.start_line - len(before),
        )

    async def _around(self, chunk: Chunk, context: int) -> tuple[list[str], list[str]]:
        text = await asyncio.to_thread(self._read_text, chunk.corpus, chunk.path)
        if text is None:
            return [], []
        lines = text.split("\n")
        first = max(0, chunk.start_line - 1 - context)
        return lines[first : chunk.start_line - 1], lines[chunk.end_line : chunk.end_line + context]


async def _bounded(check: Awaitable[Health], within: float | None) -> Health:
    deadline = asyncio.timeout(within)
    try:
        async with deadline:
            return await check
    except TimeoutError:
        if not deadline.expired():
            raise
        return Health(ok=False, detail=f"There was no answer within {within:g} s.")
