"""That the time of some work grows as its text does: two sizes in one run, since no machine's seconds are another's."""

from __future__ import annotations

import time
from collections.abc import Callable

TIMES = 8
SLACK = 5
"""What caches, collections of garbage and a busy machine may add; quadratic work would take eight times as long."""
GRAIN = 0.004
"""Seconds below which nothing is measured."""
TRIES = 5


def assert_linear(work: Callable[[str], object], text: str) -> None:
    """Assert that a character of all of ``text`` takes ``work`` no more than five times as long as one of an eighth.

    Processor time of the quickest of a few tries counts.
    """
    part = max(GRAIN, min(_seconds(work, text[: len(text) // TIMES]) for _ in range(2)))
    taken = []
    for _ in range(TRIES):
        taken.append(_seconds(work, text))
        if taken[-1] <= part * TIMES * SLACK:
            return
    raise AssertionError(f"{min(taken):.3f} s for all of the text, {part:.3f} s for an eighth of it")


def _seconds(work: Callable[[str], object], text: str) -> float:
    started = time.process_time()
    work(text)
    return time.process_time() - started
