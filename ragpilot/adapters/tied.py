"""Cutting a branch of a search at its limit, where several chunks share the score at the cut.

An engine keeps whichever of them it came across first, which depends on when they were written and on what else is
stored. So more is asked for until the tie is seen whole, and the ids decide: what an actor gets follows from nothing
but what he may read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

_Id = TypeVar("_Id")

WIDER = 4
"""How many times more is asked for while a tie goes on."""


def shows_every_tie(scored: Sequence[tuple[float, object]], limit: int, asked: int) -> bool:
    """Whether all that could stand among the first ``limit`` are in ``scored``, the best of ``asked`` asked for.

    Scores descend; ``asked`` is larger than ``limit``, which is at least 1.
    """
    return len(scored) < asked or scored[-1][0] < scored[limit - 1][0]


def cut(scored: Sequence[tuple[float, _Id]], limit: int) -> dict[_Id, float]:
    """Id -> score of the best ``limit``; of equal scores the smaller ids."""
    best = sorted(scored, key=lambda point: (-point[0], str(point[1])))[:limit]
    return {point_id: score for score, point_id in best}
