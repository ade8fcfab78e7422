"""One run over one corpus: scan, lexical vectors, removals, header vectors, body vectors; then the report.

What is done is the same whoever asks for it. What is told of it, in numbers, names and warnings, is of what its actor
may hear of: see ``ragpilot.ingest.grants.Sight``.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from ragpilot.config import CorpusSettings
from ragpilot.counted import counted
from ragpilot.errors import IngestError, InvalidRequestError, RootError
from ragpilot.identity_words import cut_anew
from ragpilot.ingest.chunkers import self_test
from ragpilot.ingest.embed import TextEmbedder
from ragpilot.ingest.embedding_cache import EmbeddingCache
from ragpilot.ingest.fill import Failures, VectorFill
from ragpilot.ingest.grants import Grants, Sight
from ragpilot.ingest.index import CorpusIndex
from ragpilot.ingest.parts import Parts
from ragpilot.ingest.prepare import Prepared, Preparer, Task
from ragpilot.ingest.progress import Progress
from ragpilot.ingest.reasons import Reason
from ragpilot.ingest.roots import Scope, resolve_roots, scopes
from ragpilot.ingest.scan import Scan, covers, scan, summary
from ragpilot.types import IngestReport, IngestScope, LeftOut, VectorName

NOTHING_THERE = "'path' names nothing inside the roots that you may read."
NOTHING_READABLE = "Nothing is indexed here that you may read."

OTHER_VECTORS = "The embedder gives other vectors than those that were kept: everything is embedded anew."

_NAMED = 20
"""Files that a warning names, at most."""


@dataclass(frozen=True, slots=True)
class Options:
    """What a caller may choose."""

    path: Path | None = None
    rebuild: bool = False
    headers: bool = True
    bodies: bool = True
    allow_broad: bool = False


@dataclass(slots=True)
class _Counts:
    """Numbers are of what the actor may hear of; lists hold everything until the report is made."""

    added: int = 0
    changed: int = 0
    unchanged: int = 0
    removed: int = 0
    left_out: list[LeftOut] = field(default_factory=list)
    failed: list[LeftOut] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    ill_cut: list[str] = field(default_factory=list)
    """What chunkers had to say of single files that the actor may hear of."""
    notes: list[str] = field(default_factory=list)


class IngestRun:
    """The work of one run. It stops between two batches once ``stop`` is set; what is done by then stands."""

    def __init__(
        self, parts: Parts, scope: IngestScope, progress: Progress, stop: asyncio.Event, index: CorpusIndex
    ) -> None:
        self._parts = parts
        self._scope = scope
        self._progress = progress
        self._stop = stop
        self._opening = index
        self._sight = Sight(scope.actor, None)
        self._started = time.monotonic()
        self._counts = _Counts()
        self._failures = Failures()
        self._embedded = 0
        self._cut_short = False
        """Whether the run was stopped before everything could be found by its words."""

    async def ingest(self, corpus: CorpusSettings, options: Options) -> IngestReport:
        """Bring the index up to date with the corpus's files.

        Raises RootError, StoreError, IndexMismatchError, and InvalidRequestError where a path holds nothing that the
        actor may hear of.
        """
        if options.rebuild and options.path is not None:
            raise IngestError("A rebuild covers a whole corpus, not a part of it.", hint="Leave the path away.")
        self._progress.begin("scan", 0)
        roots = await asyncio.to_thread(resolve_roots, corpus, allow_broad=options.allow_broad)
        grants = Grants(corpus)
        self._sight = Sight(self._scope.actor, grants)
        with self._hiding(options.path):
            covered = await asyncio.to_thread(scopes, roots, options.path)
        preparer = self._parts.preparer(corpus.name)

        async def look() -> Scan:
            rules, state = preparer.rules, self._parts.state
            return await asyncio.to_thread(scan, covered, roots, index.rows, grants, rules=rules, state=state)

        async with self._opening as index:
            await index.load(fresh=options.rebuild, any_chunker=True)
            with self._hiding(options.path):
                found = await look()
                if any(scope.relative for scope in covered) and not self._sees_any(found):
                    raise RootError(NOTHING_THERE)
            if (former := index.former_chunker or index.left_behind) and options.path is not None:
                # One index, one way of cutting: a part of it cannot be brought up to date alone.
                options = replace(options, path=None)
                covered = await asyncio.to_thread(scopes, roots, None)
                found = await look()
                self._note(cut_anew(former, self._parts.identity.chunker, doing="the whole corpus is cut anew"))
            elif index.former_chunker:
                self._note(cut_anew(former, self._parts.identity.chunker))
            if index.former_chunker:
                await index.adopt()
            if options.rebuild:
                await index.drop()
            broken = await asyncio.to_thread(self_test)
            self._counts.warnings += [
                f"{language} is cut by the look of its lines: {why}" for language, why in sorted(broken.items())
            ]
            await index.set_readers(grants)
            await self._begin(index, found, grants)
            await self._index(index, preparer, found)
            searchable = time.monotonic() - self._started
            self._cut_short = self._stop.is_set()
            if options.headers:
                await self._fill(index, bodies=options.bodies, doubt_cache=options.rebuild)
            if index.exists:
                await index.finish(datetime.now(UTC))
            if not self._cut_short:
                missing = [*self._counts.left_out, *self._counts.failed]
                await index.note_left_out(missing, [""] if options.path is None else [scope.shown for scope in covered])
            return await self._reported(index, covered, searchable)

    @contextmanager
    def _hiding(self, path: Path | None) -> Iterator[None]:
        """For an actor who may not hear of everything, whatever is wrong with a path is that nothing is there."""
        try:
            yield
        except (RootError, OSError, RuntimeError, ValueError):
            if path is None or self._sight.whole:
                raise
            raise InvalidRequestError(NOTHING_THERE, field="path") from None

    def _sees_any(self, found: Scan) -> bool:
        """Whether the actor may hear of anything that was found, or of everything there is."""
        if self._sight.whole:
            return True
        paths = [*(task.entry.path for task in found.tasks), *(row.path for row in (*found.unchanged, *found.gone))]
        paths += [item.path for item in (*found.left_out, *found.failed)]
        return any(map(self._sight.sees, paths))

    async def fill(self) -> IngestReport:
        """Embed what is stored without vectors, and nothing else. Raises StoreError, IndexMismatchError."""
        async with self._opening as index:
            await index.load()
            seen = sum(self._sight.sees(row.path) for row in index.indexed())
            self._progress.chunks, self._progress.files = await self._chunks(index), seen
            self._counts.unchanged = seen
            await self._fill(index, bodies=True)
            return await self._reported(index, (), 0.0)

    async def _chunks(self, index: CorpusIndex) -> int:
        """How many chunks there are, as far as the actor may know."""
        return index.chunks if self._sight.whole else await index.readable()

    def _note(self, text: str) -> None:
        """Tell what the run does beyond the usual, now and in its report."""
        self._counts.notes.append(text)
        self._progress.note = text

    # --- lexical vectors

    async def _begin(self, index: CorpusIndex, found: Scan, grants: Grants) -> None:
        counts, sees = self._counts, self._sight.sees
        counts.unchanged = sum(row.indexed and sees(row.path) for row in found.unchanged)
        counts.left_out += found.left_out
        counts.left_out += [row.left_out() for row in found.unchanged if not row.indexed]
        counts.failed += found.failed
        if self._sight.whole:
            # Globs of others, and how it is with whole roots, are told to nobody else.
            counts.warnings += [*grants.problems, *found.notes]
        self._progress.files = counts.unchanged
        self._progress.chunks = await self._chunks(index)
        self._progress.begin("chunks", sum(sees(task.entry.path) for task in found.tasks))

    async def _index(self, index: CorpusIndex, preparer: Preparer, found: Scan) -> None:
        done = 0
        async with aclosing(self._prepared(preparer, iter(found.tasks))) as batches:
            async for batch in batches:
                self._counts.failed += await index.write(batch)
                for prepared in batch:
                    self._count(prepared)
                done += sum(self._sight.sees(prepared.task.entry.path) for prepared in batch)
                self._progress.files = self._counts.added + self._counts.changed + self._counts.unchanged
                self._progress.chunks = await self._chunks(index)
                self._progress.advance(done)
        if not self._stop.is_set():
            self._counts.removed += sum(row.indexed and self._sight.sees(row.path) for row in found.gone)
            await index.remove(found.gone)

    async def _prepared(self, preparer: Preparer, tasks: Iterator[Task]) -> AsyncGenerator[list[Prepared], None]:
        """Batches, each prepared in a thread while the store still writes the one before."""
        coming = asyncio.create_task(asyncio.to_thread(preparer.batch, tasks))
        try:
            while not self._stop.is_set() and (batch := await coming):
                coming = asyncio.create_task(asyncio.to_thread(preparer.batch, tasks))
                yield batch
        finally:
            coming.cancel()

    def _count(self, prepared: Prepared) -> None:
        counts, row, known = self._counts, prepared.row, prepared.task.known
        was_indexed = known is not None and known.indexed
        if prepared.failure is not None:
            counts.failed.append(prepared.failure)
        elif row is not None and not row.indexed:
            counts.left_out.append(row.left_out())
        if not self._sight.sees(prepared.task.entry.path):
            return
        counts.ill_cut += [f"{prepared.task.entry.path}: {note}" for note in prepared.notes]
        if prepared.failure is not None:
            return
        if row is None or not row.indexed:
            counts.removed += was_indexed
        elif prepared.same:
            counts.unchanged += 1
        elif was_indexed:
            counts.changed += 1
        else:
            counts.added += 1

    # --- dense vectors

    async def _fill(self, index: CorpusIndex, *, bodies: bool, doubt_cache: bool = False) -> None:
        if not index.exists or not index.chunks:
            if not self._sight.whole:
                # As where all that there is to embed is hidden.
                self._progress.begin("headers", 0)
            return
        identity = self._parts.embedder.identity
        cache = await asyncio.to_thread(EmbeddingCache, self._parts.state, identity)
        embedder = TextEmbedder(self._parts.embedder, seconds=self._parts.embed_seconds)
        filling = VectorFill(self._parts.store, embedder, cache, self._scope, self._progress, self._stop, index.agree)
        filling.doubt_cache, filling.failures = doubt_cache, self._failures
        if not self._sight.whole:
            filling.counts = lambda chunk: self._sight.sees(chunk.path)
        try:
            await filling.fill("header", await self._lacking(index, "header"))
            if bodies and not self._failures.stopped:
                await filling.fill("body", await self._lacking(index, "body"))
        finally:
            # How much of it the cache knew says something of other files with the same text.
            self._embedded = embedder.embedded if self._sight.whole else filling.stored
            await asyncio.to_thread(_retire, cache)
        if filling.disagreed:
            self._note(OTHER_VECTORS)
        if self._failures.stopped:
            self._counts.warnings.append(
                f"Embedding stopped: {self._failures.stopped} What lacks vectors is found by its words; "
                "the next run goes on."
            )

    async def _lacking(self, index: CorpusIndex, name: VectorName) -> int:
        """How many chunks that count lack a vector, at most: for an administrator, what may not be read lacks it."""
        return max(0, await self._chunks(index) - await index.readable(name))

    # --- the report

    async def _reported(self, index: CorpusIndex, covered: Sequence[Scope], searchable: float) -> IngestReport:
        chunks = await self._chunks(index)
        return await asyncio.to_thread(self._report, index, covered, searchable, chunks)

    def _report(self, index: CorpusIndex, covered: Sequence[Scope], searchable: float, chunks: int) -> IngestReport:
        counts, sight = self._counts, self._sight
        failed = sight.seen([*counts.failed, *self._failures.listed()])
        left_out = sight.seen(counts.left_out)
        rows = [row for row in index.indexed() if not covered or any(covers(scope, row.path) for scope in covered)]
        rows = [row for row in rows if sight.sees(row.path)]
        if counts.ill_cut:
            files = counted(len(counts.ill_cut), "file")
            counts.warnings.append(f"Cut less well than their kind allows, {files}: {_some(counts.ill_cut)}.")
        outcome: Literal["complete", "partial", "nothing"] = "complete"
        if failed or self._failures.stopped or self._cut_short:
            outcome = "partial"
        elif not rows and covered and (left_out or not counts.removed):
            # What was there may have been removed for good reason: then that is what the run was for.
            outcome = "complete" if counts.removed else "nothing"
            counts.warnings.append(_why_nothing(covered, left_out) if sight.whole else NOTHING_READABLE)
        return IngestReport(
            corpus=self._scope.corpus,
            outcome=outcome,
            added=counts.added,
            changed=counts.changed,
            unchanged=counts.unchanged,
            removed=counts.removed,
            chunks=chunks,
            embedded=self._embedded,
            left_out=tuple(sorted(left_out, key=lambda item: (item.path, item.reason))),
            failed=tuple(failed),
            seconds=time.monotonic() - self._started,
            seconds_to_searchable=searchable,
            warnings=tuple(counts.warnings),
            redacted=tuple(row.held_secrets() for row in rows if row.redacted),
            notes=tuple(counts.notes),
        )


def _some(items: Sequence[str]) -> str:
    more = f" and {len(items) - _NAMED} more" if len(items) > _NAMED else ""
    return "; ".join(items[:_NAMED]) + more


def _retire(cache: EmbeddingCache) -> None:
    cache.trim()
    cache.close()


def _why_nothing(covered: Sequence[Scope], left_out: Sequence[LeftOut]) -> str:
    where = ", ".join(str(scope.root.folder / scope.relative.decode("utf-8", "replace")) for scope in covered)
    if not left_out:
        return f"Nothing is indexed: {where} holds no files."
    hint = " Look into .gitignore and .ragpilotignore." if any(i.reason == Reason.IGNORED for i in left_out) else ""
    return f"Nothing is indexed: all there is in {where} was left out ({summary(left_out)}).{hint}"
