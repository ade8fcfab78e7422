"""What near misses say: each hit's own cosine, and what the question lacked, once. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from ragpilot.types import NearMiss

_MOST_DIGITS = 4
"""Scores are kept to so many."""


def against(value: float, needed: float) -> tuple[str, str]:
    """Two numbers with as many decimals, from two on, as it takes to tell them apart."""
    for digits in range(2, _MOST_DIGITS):
        if f"{value:.{digits}f}" != f"{needed:.{digits}f}":
            return f"{value:.{digits}f}", f"{needed:.{digits}f}"
    return f"{value:.{_MOST_DIGITS}f}", f"{needed:.{_MOST_DIGITS}f}"


def gate_missed(misses: Iterable[NearMiss], evidence: float) -> str | None:
    """What the question as a whole lacked, in words; None where no hit was rejected by the gate."""
    needed = next((miss.needed for miss in misses if miss.bound == "gate"), None)
    if needed is None:
        return None
    found, bound = against(evidence, needed)
    return f"evidence {found}, the gate needs {bound}"


def score_of(miss: NearMiss, *, needs: str = "the floor needs") -> str:
    """The hit's own cosine, and the floor where it was the floor that it missed."""
    if miss.bound == "gate":
        return f"{miss.score:.2f}"
    found, bound = against(miss.score, miss.needed)
    return f"{found}, {needs} {bound}"
