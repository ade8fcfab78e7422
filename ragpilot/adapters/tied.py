"""Cutting a branch of a search at its limit, where several chunks share the score at the cut.

An engine keeps whichever of them it came across first, which depends on when they were written and on what else is
stored. So more is asked for until the tie is seen whole, and the ids decide: what an actor gets follows from nothing
but what he may read.

For the same reason lexical scores are added up here, term by term: an engine adds in the order in which it has met
the terms, in single precision, so that the last digit of its sums depends on documents that he may not read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

_Id = TypeVar("_Id")

WIDER = 4
"""How many times more is asked for while a tie goes on."""
NOISE = 1e-5
"""How far, of its size, a sum may lie from that of the same numbers in another order: a hundred times what it does."""


def nearest(scored: Sequence[tuple[float, _Id]], limit: int, asked: int) -> dict[_Id, float] | None:
    """Id -> score of the best ``limit`` of a dense branch; None: more must be asked for.

    Args:
        scored: The best of ``asked``, scores descending.
        limit: At least 1, and less than ``asked``.
        asked: How many were asked for.
    """
    if len(scored) == asked and scored[-1][0] == scored[limit - 1][0]:
        return None
    return cut(scored, limit)


def wordiest(scored: Sequence[tuple[float, _Id]], limit: int, asked: int) -> dict[_Id, float] | None:
    """Like ``nearest``, of the lexical branch: all that may be among the best, since its sums are not exact."""
    bound = scored[limit - 1][0] * (1.0 - NOISE) if len(scored) >= limit else 0.0
    if len(scored) == asked and scored[-1][0] >= bound:
        return None
    return {chunk_id: score for score, chunk_id in scored if score >= bound}


def nearer(branches: Iterable[Mapping[_Id, float]], limit: int) -> set[_Id]:
    """The best ``limit`` ids by their largest cosine, of branches that were each cut at ``limit`` or later.

    A cosine that a branch does not show cannot matter: whatever is among the best by its largest cosine is among the
    best of the branch in which it has that cosine.
    """
    largest: dict[_Id, float] = {}
    for scores in branches:
        for point_id, score in scores.items():
            largest[point_id] = max(score, largest.get(point_id, score))
    return set(cut(((score, point_id) for point_id, score in largest.items()), limit))


def cut(scored: Iterable[tuple[float, _Id]], limit: int) -> dict[_Id, float]:
    """Id -> score of the best ``limit``; of equal scores the smaller ids (UUIDs sort like their usual spelling)."""
    best = sorted(scored, key=lambda point: (-point[0], point[1]))[:limit]
    return {point_id: score for score, point_id in best}


def added_up(by_term: Iterable[Mapping[_Id, float]]) -> dict[_Id, float]:
    """Id -> sum of its scores for single terms, in the order of the terms."""
    sums: dict[_Id, float] = {}
    for scores in by_term:
        for chunk_id, score in scores.items():
            sums[chunk_id] = sums.get(chunk_id, 0.0) + score
    return sums
