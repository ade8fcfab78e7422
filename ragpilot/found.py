"""What a search found, held to its bounds: hits, near misses, and the trace that says what became of each candidate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from ragpilot.citations import citation_line
from ragpilot.ranking import Ranked
from ragpilot.types import Bounds, Hit, NearMiss, RetrievalPlan

NOTHING_READABLE = "Nothing is indexed here that you may read. `ragpilot index` indexes the configured folders."
"""The warning of a question that met an empty index, or one that its asker may read nothing of."""

NEAR_MISSES = 3
NEAR = 0.7
"""The share of its bound that a rejected hit must reach to be named as a near miss."""
TRACED = 20


@dataclass(frozen=True, slots=True)
class Retrieval:
    """What a question found. ``hits`` is empty where floor or gate refused; ``trace`` says why, hit by hit."""

    hits: tuple[Hit, ...]
    bounds: Bounds
    plan: RetrievalPlan
    near_misses: tuple[NearMiss, ...] = ()
    trace: tuple[dict[str, Any], ...] = ()
    evidence: float = 0.0
    readable: int = 0
    timings: dict[str, float] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    unknown: frozenset[str] = frozenset()
    """Terms of the question that stand in nothing the actor may read."""


@dataclass(frozen=True, slots=True)
class Found:
    """Ranked candidates beside the bounds they are held to."""

    ranked: Sequence[Ranked]
    bounds: Bounds
    evidence: float
    further: frozenset[str] = frozenset()
    """Ids of what further sources gave: they were held to floors of their own."""
    warnings: tuple[str, ...] = ()

    def reaches_floor(self, item: Ranked) -> bool:
        """Whether a candidate may become a hit."""
        return item.cosine >= self.bounds.floor or item.candidate.chunk.id in self.further

    @property
    def passes_gate(self) -> bool:
        """Whether the question as a whole may have hits."""
        return self.bounds.gate is None or self.evidence >= self.bounds.gate

    def near_misses(self) -> tuple[NearMiss, ...]:
        """The best ranked that were rejected, in ranking order, each with its cosine and the bound that kept it out.

        None that is far from its bound, for it would mislead: the gate is a bound on the question's evidence.
        """
        near = (item for item in self.ranked if self._is_near(item))
        return tuple(self._near_miss(item) for item in islice(near, NEAR_MISSES))

    def _is_near(self, item: Ranked) -> bool:
        if self._failed_floor(item):
            return item.cosine >= NEAR * self.bounds.floor
        return self.evidence >= NEAR * (self.bounds.gate or 0.0)

    def _failed_floor(self, item: Ranked) -> bool:
        return self.passes_gate or not self.reaches_floor(item)

    def _near_miss(self, item: Ranked) -> NearMiss:
        chunk, floored = item.candidate.chunk, self._failed_floor(item)
        return NearMiss(
            path=chunk.path,
            symbol=chunk.symbol,
            start_line=chunk.start_line,
            end_line=chunk.end_line,
            score=round(item.cosine, 4),
            bound="floor" if floored else "gate",
            needed=self.bounds.floor if floored else self.bounds.gate or 0.0,
        )

    def trace(self, chosen: set[str]) -> tuple[dict[str, Any], ...]:
        """The best candidates with their scores and what became of them so far: the receipt's first half."""
        return tuple(self._row(at, item, chosen) for at, item in enumerate(self.ranked[:TRACED], start=1))

    def _row(self, at: int, item: Ranked, chosen: set[str]) -> dict[str, Any]:
        chunk, candidate = item.candidate.chunk, item.candidate
        if chunk.id in chosen:
            fate = "hit"
        elif not self.passes_gate:
            fate = "dropped_by_gate"
        elif not self.reaches_floor(item):
            fate = "dropped_by_floor"
        else:
            fate = "not_needed"
        return {
            "rank": at,
            "id": chunk.id,
            "source": citation_line(chunk.path, chunk.start_line, chunk.end_line, chunk.symbol),
            "cosine": round(item.cosine, 4),
            "header": _rounded(candidate.header_score),
            "body": _rounded(candidate.body_score),
            "lexical": round(candidate.lexical_score, 4),
            "fused": round(item.fused, 4),
            "score": round(item.score, 4),
            "signals": dict(item.signals),
            "alsoAt": list(item.also_at),
            "fate": fate,
        }


def _rounded(score: float | None) -> float | None:
    return None if score is None else round(score, 4)
