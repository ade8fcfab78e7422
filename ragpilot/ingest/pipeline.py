"""IngestService: runs over corpora, one at a time each, watched through what they yield."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from ragpilot.config import CorpusSettings, IngestSettings
from ragpilot.errors import IngestRunningError, RagPilotError
from ragpilot.identity_words import REBUILD, cut_anew, misfit, only_cut_otherwise
from ragpilot.ingest.chunkers import CHUNKER_VERSION, chunk_text_with_notes
from ragpilot.ingest.grants import Grants, Sight
from ragpilot.ingest.index import CorpusIndex
from ragpilot.ingest.manifest import indexed_under, left_out
from ragpilot.ingest.parts import Parts
from ragpilot.ingest.plan import IngestPlan, make_plan
from ragpilot.ingest.prepare import ChunkFunction
from ragpilot.ingest.progress import Progress
from ragpilot.ingest.roots import Scope, known_roots
from ragpilot.ingest.run import IngestRun, Options
from ragpilot.ingest.sources import SourceFiles
from ragpilot.ports import ChunkStore, Embedder
from ragpilot.types import Actor, EmbedderIdentity, IndexIdentity, IngestProgress, IngestReport, IngestScope

IngestEvent = IngestProgress | IngestReport

STOP_SECONDS = 10.0
"""How long a run that is closed may take to its next safe point; then it is cut off, which loses no document."""
PLAN_SECONDS = 5.0
"""How long a plan waits for the store to say what it holds."""


def index_identity(embedder: EmbedderIdentity, settings: IngestSettings) -> IndexIdentity:
    """What a collection is built with, and must have been built with to be used."""
    return IndexIdentity(embedder, f"{CHUNKER_VERSION};max_chars={settings.max_chunk_chars}")


class IngestService:
    """Writes the index. Reads only files that lie in a corpus's roots."""

    def __init__(
        self,
        store: ChunkStore,
        embedder: Embedder,
        settings: IngestSettings,
        state: Path,
        *,
        corpora: Sequence[CorpusSettings] = (),
        chunk_text: ChunkFunction = chunk_text_with_notes,
        embed_seconds: float = 600.0,
    ) -> None:
        """Opens nothing yet.

        Args:
            store: Where chunks go.
            embedder: Makes header and body vectors.
            settings: Limits.
            state: The state folder, for the manifest and the embedding cache; never indexed itself.
            corpora: The corpora whose files ``locate`` and ``read_text`` find.
            chunk_text: Cuts a text into spans, and says what kept it from doing better.
            embed_seconds: How long one call of the embedder may take.
        """
        self.identity = index_identity(embedder.identity, settings)
        """What every collection is built with."""
        self._parts = Parts(store, embedder, settings, state, chunk_text, self.identity, embed_seconds)
        self._sources = SourceFiles(corpora, settings)
        self._busy: dict[str, _Work] = {}
        self._left_out: dict[str, dict[str, int]] = {}

    def locate(self, corpus: str, path: str) -> Path | None:
        """Where the file of a path in the index lies, or lay before it went; None where its root is not here."""
        return self._sources.locate(corpus, path)

    def read_text(self, corpus: str, path: str) -> str | None:
        """The file's text as it would be indexed now: decoded, secrets replaced; None where it would be left out."""
        return self._sources.read_text(corpus, path)

    async def run(
        self,
        actor: Actor,
        corpus: CorpusSettings,
        *,
        path: Path | None = None,
        rebuild: bool = False,
        headers: bool = True,
        bodies: bool = True,
        allow_broad: bool = False,
        leave: asyncio.Event | None = None,
    ) -> AsyncGenerator[IngestEvent, None]:
        """Bring the index up to date with a corpus's files; progress at least every half second, the report last.

        An index that was cut by another chunker is cut anew, document by document; what is in it can be searched
        meanwhile. Closing the iterator stops the run where the next one goes on.

        The run is over everything; progress and report are of what the actor may hear of
        (``ragpilot.ingest.grants.Sight``): all of it with the permission ``admin``, otherwise the files that the actor
        may read and no number that counts another.

        Args:
            actor: Who asks; needs the permission ``ingest``.
            corpus: What to index.
            path: A folder or file in it: the run covers that alone, and leaves everything else as it is, unless the
                index was cut by another chunker.
            rebuild: Drop what is there and build it anew, also for another embedder. Vectors of texts that were
                embedded before are kept, once the embedder has given some of them again.
            headers: Whether to fill header vectors too.
            bodies: Whether to fill body vectors after them, the slow part; not without ``headers``.
            allow_broad: Whether a home folder, or ``/``, is really meant.
            leave: Set by the caller to have the report at the next safe point. Once everything can be found by its
                words, such a run counts as complete: vectors that are missing are filled by whatever comes next.

        Yields:
            IngestProgress, and one IngestReport at the end.

        Raises:
            PermissionDeniedError: The actor may not index.
            IngestRunningError: Another run over this corpus is under way.
            InvalidRequestError: There is nothing at ``path`` that an actor without ``admin`` may hear of.
            RootError: A root is missing, no folder or too broad, or ``path`` lies outside.
            IndexMismatchError: The collection was built with another embedder.
            StoreError: The store failed.
            StateError: The manifest cannot be used.
        """
        scope = IngestScope(actor, corpus.name)
        options = Options(path, rebuild, headers, bodies, allow_broad)
        async with aclosing(self._watched(scope, lambda work: work.ingest(corpus, options), leave)) as events:
            async for event in events:
                yield event

    async def fill(self, actor: Actor, corpus_name: str) -> AsyncGenerator[IngestEvent, None]:
        """Embed what is stored without vectors: headers, then bodies, newest files first. Events as of ``run``."""
        scope = IngestScope(actor, corpus_name)
        async with aclosing(self._watched(scope, lambda work: work.fill())) as events:
            async for event in events:
                yield event

    async def apply_grants(self, actor: Actor, corpus: CorpusSettings) -> int:
        """Give every document in the store the readers that the grants say, and no file is looked at.

        A run over the corpus that is under way in this process goes on, by these grants from here. Returns how many
        documents had other readers. An index that another embedder has built is granted like any other. Raises
        PermissionDeniedError, StoreError, StateError.
        """
        scope = IngestScope(actor, corpus.name)
        grants = Grants(corpus)
        while (work := self._busy.get(corpus.name)) is not None:
            changed = await work.index.regrant(grants)
            if changed is not None:
                return changed
            await work.over.wait()
        with self._claim(scope) as index:
            async with index:
                await index.load(any_identity=True)
                return await index.set_readers(grants)

    async def plan(
        self, actor: Actor, corpus: CorpusSettings, *, path: Path | None = None, allow_broad: bool = False
    ) -> IngestPlan:
        """What a run would do: read and chunk everything, write nothing; told as of ``run``.

        Of an index that is there, it tells whether a run would cut it anew or refuse it; a store that does not answer
        is passed over. Raises PermissionDeniedError, RootError.
        """
        IngestScope(actor, corpus.name)
        made, built = await asyncio.gather(
            asyncio.to_thread(make_plan, self._parts, corpus, path, actor, allow_broad=allow_broad),
            self._built(corpus.name),
        )
        if built is None or built == self.identity:
            return made
        if only_cut_otherwise(built, self.identity):
            note = cut_anew(built.chunker, self.identity.chunker, doing="the next run cuts it anew")
            return replace(made, notes=(note,))
        warning = f"The index {misfit(built, self.identity)}. {REBUILD}"
        return replace(made, warnings=(*made.warnings, warning))

    async def _built(self, corpus: str) -> IndexIdentity | None:
        """What the corpus's index was built with, as far as its store says so soon."""
        try:
            async with asyncio.timeout(PLAN_SECONDS):
                info = await self._parts.store.describe(corpus)
        except (RagPilotError, TimeoutError):
            return None
        return info.identity if info else None

    def holds(self, actor: Actor, corpus: CorpusSettings, path: Path) -> bool:
        """Whether a file at ``path``, or below it, is indexed that the actor may hear of, be it gone from the disk.

        Blocking. ``path`` is absolute, without ``..``. Raises PermissionDeniedError, StateError.
        """
        IngestScope(actor, corpus.name)
        sight = Sight(actor, Grants(corpus))
        for root in known_roots(corpus):
            if path.is_relative_to(root.folder):
                relative = path.relative_to(root.folder).as_posix()
                shown = Scope(root, b"" if relative == "." else os.fsencode(relative)).shown
                if any(map(sight.sees, indexed_under(self._parts.state, corpus.name, shown))):
                    return True
        return False

    async def left_out(self, actor: Actor, corpus: CorpusSettings) -> dict[str, int]:
        """How many files and folders are not indexed, by reason, as of the last runs; those that the actor may hear of.

        Raises PermissionDeniedError.
        """
        if not actor.may("ingest"):
            actor.need("ask")
        sight = Sight(actor, Grants(corpus))
        if not sight.whole:
            return await asyncio.to_thread(left_out, self._parts.state, corpus.name, sight.sees)
        if corpus.name not in self._left_out:
            self._left_out[corpus.name] = await asyncio.to_thread(left_out, self._parts.state, corpus.name)
        return dict(self._left_out[corpus.name])

    async def _watched(
        self,
        scope: IngestScope,
        job: Callable[[IngestRun], Awaitable[IngestReport]],
        leave: asyncio.Event | None = None,
    ) -> AsyncGenerator[IngestEvent, None]:
        """Do the work in a task of its own, so that progress comes however long one step takes."""
        progress, stop = Progress(), leave or asyncio.Event()
        with self._claim(scope) as index:
            work = asyncio.ensure_future(job(IngestRun(self._parts, scope, progress, stop, index)))
            work.add_done_callback(lambda _: progress.end())
            try:
                while (event := await progress.news()) is not None:
                    yield event
                report = await work
                self._left_out.pop(scope.corpus, None)
                yield report
            finally:
                stop.set()
                await _wind_down(work)

    @contextmanager
    def _claim(self, scope: IngestScope) -> Iterator[CorpusIndex]:
        """The right to write a corpus in this process. Between processes the store's own lock holds."""
        corpus = scope.corpus
        if corpus in self._busy:
            raise IngestRunningError(
                f"Another run over the corpus {corpus!r} is under way.", hint="Wait for its end and ask again."
            )
        work = self._busy[corpus] = _Work(CorpusIndex(self._parts, scope))
        try:
            yield work.index
        finally:
            del self._busy[corpus]
            work.index.leave()
            work.over.set()


@dataclass(frozen=True, slots=True)
class _Work:
    """What a corpus is busy with."""

    index: CorpusIndex
    over: asyncio.Event = field(default_factory=asyncio.Event)


async def _wind_down(work: asyncio.Future[IngestReport]) -> None:
    """Let the work reach a safe point; cut it off where that takes too long."""
    for cut_off in (False, True):
        if cut_off:
            work.cancel()
        await asyncio.wait({work}, timeout=STOP_SECONDS)
        if work.done():
            break
    if work.done() and not work.cancelled():
        work.exception()  # it was raised to the watcher, or nobody watches any more
