"""SearchService: retrieval alone, for those who want passages and no answer."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

from ragpilot.citations import source_of
from ragpilot.config import Settings
from ragpilot.corpora import resolve_corpus
from ragpilot.events import to_wire
from ragpilot.found import NOTHING_READABLE
from ragpilot.freshness import Freshness
from ragpilot.retrieval import Retriever
from ragpilot.routing import Intent
from ragpilot.types import Actor


class SearchService:
    """Searches as a question would be searched: the same plan, bounds and order."""

    def __init__(self, retriever: Retriever, settings: Settings, freshness: Freshness) -> None:
        self._retriever = retriever
        self._settings = settings
        self._freshness = freshness

    def with_settings(self, settings: Settings) -> SearchService:
        """The same service, with the actors and grants of ``settings``."""
        other = copy(self)
        other._settings = settings  # noqa: SLF001 - it is one of us
        return other

    async def search(
        self,
        actor: Actor,
        question: str,
        *,
        k: int | None = None,
        corpus: str | None = None,
        focus: Sequence[str] = (),
        min_score: float | None = None,
        texts: bool = False,
    ) -> dict[str, Any]:
        """What ``POST /search`` answers: hits as sources, the bounds in force, near misses, plan and timings.

        ``min_score`` can raise the floor, never lower it; with ``texts``, each hit brings its ``text``.
        Raises PermissionDeniedError, UnknownCorpusError, IndexMismatchError, EmbedderError and StoreError.
        """
        actor.need("ask")
        name = resolve_corpus(self._settings, actor, corpus).name
        found = await self._retriever.search(actor, question, corpus=name, top_k=k, focus=focus, min_score=min_score)
        stale = await self._freshness.stale(hit.chunk for hit in found.hits)
        hits = [to_wire(source_of(hit.chunk, hit.score, stale=hit.chunk.id in stale)) for hit in found.hits]
        if texts:
            hits = [{**shown, "text": hit.chunk.text} for shown, hit in zip(hits, found.hits, strict=True)]
        warnings = list(found.warnings)
        if not found.hits and not found.readable and found.plan.intent != Intent.SMALL_TALK:
            warnings.append(NOTHING_READABLE)
        return {
            "hits": hits,
            **to_wire(found.bounds),
            "evidence": found.evidence,
            "nearMisses": to_wire(found.near_misses),
            "plan": to_wire(found.plan),
            "timings": to_wire(found.timings),
            "warnings": warnings,
        }
