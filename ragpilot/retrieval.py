"""From a question and an actor to hits: plan, embed, search, floor, gate, rank, and one broadened retry.

What an actor may not read is never seen here: the store's query carries the readers filter, and everything below is
computed from what came back, including the statistics that the gate is judged by.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ragpilot import ranking, refusal, routing
from ragpilot.classify import SourceTypeClassifier
from ragpilot.config import RetrievalSettings
from ragpilot.errors import IndexMismatchError
from ragpilot.found import Found, Retrieval
from ragpilot.header_vectors import HeaderVectors
from ragpilot.identity_words import misfit, remedy
from ragpilot.lexical import question_terms, question_vector, term_id
from ragpilot.naming import Asked, names_of
from ragpilot.ports import ChunkStore, Embedder
from ragpilot.rag_sources import RegisteredSource, ask_sources
from ragpilot.ranking import Ranked, Weights
from ragpilot.types import (
    Actor,
    Bounds,
    Calibration,
    Candidate,
    GateCalibration,
    Hit,
    IndexIdentity,
    RetrievalPlan,
    StoreQuery,
    TermStatistics,
)

HEADERS_AT_ONCE = 150
"""How many missing headers of lexical candidates are embedded at the question (DESIGN section 9)."""
BROADER = 4
"""How many times deeper the retry looks."""


class Retriever:
    """Searches one store with one embedder. Safe for concurrent use."""

    def __init__(
        self,
        store: ChunkStore,
        embedder: Embedder,
        settings: RetrievalSettings,
        *,
        identity: IndexIdentity,
        weights: Weights | None = None,
        classifier: SourceTypeClassifier | None = None,
        sources: Sequence[RegisteredSource] = (),
        calibration: Calibration | None = None,
    ) -> None:
        """Over a store and the embedder that its collections were built with; a calibration's bounds come first."""
        self._store = store
        self._embedder = embedder
        self._settings = settings
        self._identity = identity
        self._weights = weights or Weights()
        self._classifier = classifier or SourceTypeClassifier()
        self._headers = HeaderVectors(embedder)
        self._sources = tuple(sources)
        self._calibration = calibration

    @property
    def _gate(self) -> GateCalibration | None:
        return self._calibration.gate if self._calibration else self._embedder.gate

    def plan(self, question: str, top_k: int | None = None) -> RetrievalPlan:
        """How the question would be searched."""
        source_types = self._classifier.classify(question)
        return routing.plan(question, top_k=top_k, default_k=self._settings.top_k, source_types=source_types)

    def bounds(self, readable: int) -> Bounds:
        """Floor and gate in force for an actor who may read ``readable`` chunks."""
        return refusal.bounds(
            self._settings,
            embedder=self._embedder.identity.name,
            default_floor=self._calibration.floor if self._calibration else self._embedder.default_floor,
            calibration=self._gate,
            readable=readable,
            origin=self._calibration.origin if self._calibration else "",
        )

    async def search(
        self,
        actor: Actor,
        question: str,
        *,
        corpus: str,
        top_k: int | None = None,
        focus: Sequence[str] = (),
        min_score: float | None = None,
    ) -> Retrieval:
        """Hits for ``question`` among what ``actor`` may read, best first.

        ``min_score`` can raise the floor for this search, never lower it. Raises IndexMismatchError where the
        collection was built otherwise than this process would embed, EmbedderError and StoreError.
        """
        plan = self.plan(question, top_k)
        if plan.intent == routing.Intent.SMALL_TALK:
            return Retrieval((), self.bounds(0), plan)
        watch = _Stopwatch()
        await self._check_identity(corpus)
        watch.lap("check")
        terms = sorted({term_id(term) for term in question_terms(question)})
        vector, statistics = await asyncio.gather(
            self._embedder.embed_question(question), self._store.term_statistics(actor, corpus, terms)
        )
        watch.lap("embed")
        asked = Asked.of(
            question,
            symbols=routing.named_symbols(question),
            bare_symbol=routing.is_symbol(question),
            files=routing.named_files(question),
            lines=routing.named_lines(question),
            focus=tuple(focus),
            phrases=routing.named_phrases(question),
        )
        bounds = self.bounds(statistics.total)
        if min_score is not None and min_score > bounds.floor:
            bounds = replace(bounds, floor=min_score, floor_origin="request")
        query = StoreQuery(corpus, vector, question_vector(question), plan.depth, plan.depth)
        further, warnings = await self._further(actor, question, statistics, bounds)
        candidates = await self._candidates(actor, query, asked)
        watch.lap("search")
        ranked = ranking.rank([*candidates, *further], asked, plan, self._weights)
        evidence = self._evidence(question, ranked, statistics)
        found = Found(ranked, bounds, evidence, frozenset(candidate.chunk.id for candidate in further), warnings)
        unknown = frozenset(term for term in question_terms(question) if not statistics.frequencies.get(term_id(term)))
        if not found.passes_gate:
            watch.lap("rank")
            return self._result((), found, plan, statistics, unknown, watch)
        chosen = self._choose(found, plan)
        if len(chosen) < plan.k and statistics.total > len(candidates):
            broad = replace(plan, source_types=frozenset(), depth=plan.depth * BROADER)
            deeper = replace(query, dense_limit=broad.depth, lexical_limit=broad.depth)
            watch.lap("rank")
            candidates = await self._candidates(actor, deeper, asked)
            found = replace(found, ranked=ranking.rank([*candidates, *further], asked, broad, self._weights))
            watch.lap("retry")
            chosen = self._choose(found, broad)
        hits = tuple(
            Hit(item.candidate.chunk, item.cosine, at, dict(item.signals), tuple(item.also_at))
            for at, item in enumerate(chosen, start=1)
        )
        watch.lap("rank")
        return self._result(hits, found, plan, statistics, unknown, watch)

    async def _check_identity(self, corpus: str) -> None:
        info = await self._store.describe(corpus)
        if info is not None and info.identity != self._identity:
            raise IndexMismatchError(
                f"The index of corpus {corpus!r} {misfit(info.identity, self._identity)}.",
                hint=remedy(info.identity, self._identity),
            )

    async def _candidates(self, actor: Actor, query: StoreQuery, asked: Asked) -> list[Candidate]:
        """What the store returns; header vectors that are not in it yet are made for the best lexical matches."""
        candidates = await self._store.search(actor, query)
        bare = [candidate for candidate in candidates if candidate.header_score is None]
        bare.sort(key=lambda candidate: (-candidate.lexical_score, candidate.chunk.id))
        headers = {candidate.chunk.id: candidate.chunk.header for candidate in bare[:HEADERS_AT_ONCE]}
        names = {candidate.chunk.id: found for candidate in candidates if (found := names_of(candidate.chunk, asked))}
        texts = sorted({*headers.values(), *(name for found in names.values() for name in found)})
        if not texts:
            return candidates
        vectors = await self._headers.of(actor, texts)
        cosines = {text: float(np.dot(vector, query.vector)) for text, vector in zip(texts, vectors, strict=True)}
        return [
            replace(
                candidate,
                header_score=cosines[headers[candidate.chunk.id]]
                if candidate.chunk.id in headers
                else candidate.header_score,
                name_score=max((cosines[name] for name in names.get(candidate.chunk.id, ())), default=None),
            )
            for candidate in candidates
        ]

    async def _further(
        self, actor: Actor, question: str, statistics: TermStatistics, bounds: Bounds
    ) -> tuple[list[Candidate], tuple[str, ...]]:
        """What further sources give, each above its own floor; a floor that the asker or operator set is everyone's."""
        if not self._sources:
            return [], ()
        strict = bounds.floor_origin in ("retrieval.min_score", "request")
        candidates, warnings = await ask_sources(
            self._sources, actor, question, statistics, floor=bounds.floor, strict=strict
        )
        return candidates, tuple(warnings)

    def _evidence(self, question: str, ranked: Sequence[Ranked], statistics: TermStatistics) -> float:
        if not ranked:
            return 0.0
        calibration = self._gate or GateCalibration(threshold=0.0, per_decade=0.0)
        best_cosine = max(item.cosine for item in ranked)
        best = [item.candidate.chunk for item in ranked[: refusal.GATE_HITS]]
        return refusal.evidence(question, best_cosine, best, statistics, calibration)

    def _choose(self, found: Found, plan: RetrievalPlan) -> list[Ranked]:
        above = [item for item in found.ranked if found.reaches_floor(item)]
        distinct = ranking.collapse(above, most=plan.k * 4, weights=self._weights)
        return ranking.spread(distinct, per_document=plan.per_document, k=plan.k)

    def _result(
        self,
        hits: tuple[Hit, ...],
        found: Found,
        plan: RetrievalPlan,
        statistics: TermStatistics,
        unknown: frozenset[str],
        watch: _Stopwatch,
    ) -> Retrieval:
        return Retrieval(
            hits=hits,
            bounds=found.bounds,
            plan=plan,
            near_misses=() if hits else found.near_misses(),
            trace=found.trace({hit.chunk.id for hit in hits}),
            evidence=round(found.evidence, 4),
            readable=statistics.total,
            timings=watch.laps,
            warnings=found.warnings,
            unknown=unknown,
        )


class _Stopwatch:
    """Milliseconds by stage; a stage that comes again adds up."""

    def __init__(self) -> None:
        self._last = time.perf_counter()
        self.laps: dict[str, float] = {}

    def lap(self, stage: str) -> None:
        now = time.perf_counter()
        self.laps[stage] = round(self.laps.get(stage, 0.0) + (now - self._last) * 1000, 2)
        self._last = now
