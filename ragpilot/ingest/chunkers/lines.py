"""A text as rows, with sizes at hand, and cutting at rows to a bounded number of characters."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import NamedTuple

Cost = Callable[[int], float]
"""How bad it is to begin a piece at a row (from 0): 0 is a natural boundary."""

_ZERO_WIDTH_JOINER = "\u200d"
_FILL = 0.4
"""A boundary that leaves the piece before it emptier than this costs up to ``_EMPTY`` more."""
_EMPTY = 10.0
_LEAST_FILL = 0.1
"""Emptier than this a piece is only where nothing else can be, and so is what is left for the last one: a row is not
worth a span."""
_LONG_RULE, _FEW_CHARACTERS = 200, 8
"""A row of so many characters, of which few are different and none is a letter, is a rule."""


class Lines:
    r"""The rows of a text, from 0. Only ``\n`` ends a row, as in git and in editors; a ``\r`` before it is dropped."""

    def __init__(self, text: str) -> None:
        self._set([row.removesuffix("\r") for row in text.split("\n")])

    def _set(self, rows: list[str]) -> None:
        self.rows = rows
        self._blank = [not row.strip() for row in self.rows]
        self._ends = [0, *accumulate(len(row) + 1 for row in self.rows)]

    def __len__(self) -> int:
        return len(self.rows)

    def size(self, start: int, end: int) -> int:
        """Characters of rows ``start`` to ``end``, both included, joined by newlines; 0 when there are none."""
        return self._ends[end + 1] - self._ends[start] - 1 if end >= start else 0

    def text(self, start: int, end: int) -> str:
        """Rows ``start`` to ``end``, both included, joined by newlines."""
        return "\n".join(self.rows[start : end + 1])

    def blank(self, row: int) -> bool:
        """Whether nothing but white space stands in the row."""
        return self._blank[row]

    def only(self, start: int, end: int) -> Lines:
        """As many rows, of which all but ``start`` to ``end`` are empty: a part of a text that keeps its numbers."""
        part = Lines("")
        part._set([text if start <= row <= end else "" for row, text in enumerate(self.rows)])
        return part

    def joined(self) -> str:
        """All rows."""
        return "\n".join(self.rows)

    def trim(self, start: int, end: int) -> tuple[int, int] | None:
        """The same range without blank rows at its edges; None when all of it is blank."""
        while start <= end and self.blank(start):
            start += 1
        while end >= start and self.blank(end):
            end -= 1
        return (start, end) if start <= end else None

    def indent(self, row: int) -> int:
        """White-space characters before the first other one."""
        line = self.rows[row]
        return len(line) - len(line.lstrip())


class Cut(NamedTuple):
    """A piece of a text: rows ``start`` to ``end``, and its text, which is less than the rows for a huge row."""

    start: int
    end: int
    text: str


def cut(lines: Lines, start: int, end: int, max_chars: int, cost: Cost) -> Iterator[Cut]:
    """Rows ``start`` to ``end`` in pieces of at most ``max_chars`` characters, without blank edges.

    A range that fits stays whole. Otherwise the pieces are of like size and begin where ``cost`` is lowest; a row
    that is too long in itself is cut at white space or, without any, at characters.
    """
    while (trimmed := lines.trim(start, end)) is not None:
        start, end = trimmed
        size = lines.size(start, end)
        if size <= max_chars:
            yield Cut(start, end, lines.text(start, end))
            return
        if len(lines.rows[start]) > max_chars:
            for part in cut_row(lines.rows[start], max_chars):
                yield Cut(start, start, part)
            start += 1
            continue
        after = _boundary(lines, start, end, max_chars, cost)
        last = lines.trim(start, after - 1)
        assert last is not None, "a piece begins at a row that is not blank"  # noqa: S101
        yield Cut(start, last[1], lines.text(start, last[1]))
        start = after


def _boundary(lines: Lines, start: int, end: int, max_chars: int, cost: Cost) -> int:
    """The row at which the next piece begins, so that the one from ``start`` fits; at least ``start + 1``."""
    size = lines.size(start, end)
    target = size / -(-size // max_chars)
    fallback = start + 1
    best: tuple[bool, float, float, int] | None = None
    row = start + 1
    while row < len(lines) and (used := lines.size(start, row - 1)) <= max_chars:
        fallback = row
        if not lines.blank(row):
            emptiness = max(0.0, 1.0 - used / (target * _FILL))
            stump = min(used, lines.size(row, end)) < target * _LEAST_FILL
            candidate = (stump, cost(row) + _EMPTY * emptiness, abs(target - used), row)
            best = candidate if best is None or candidate < best else best
        row += 1
    return best[3] if best is not None else fallback


def cut_row(row: str, max_chars: int) -> Iterator[str]:
    """One long row in pieces of at most ``max_chars``: at white space or punctuation where some is near.

    Of a rule (``# =====``) that is so long, the first piece says all.
    """
    if _is_long_rule(row):
        yield row.strip()[:max_chars]
        return
    position = 0
    while position < len(row):
        stop = min(position + max_chars, len(row))
        if stop < len(row):
            stop = _row_boundary(row, position, stop)
        piece = row[position:stop]
        if piece.strip():
            yield piece
        position = stop


def _is_long_rule(row: str) -> bool:
    few = len(row) >= _LONG_RULE and row.isascii() and len(set(row)) <= _FEW_CHARACTERS
    return few and not any(map(str.isalnum, row))


def _row_boundary(row: str, position: int, stop: int) -> int:
    nearest = position + max(1, (stop - position) // 2)
    for marks in (" \t", ";,>})]"):
        found = max(row.rfind(mark, nearest, stop) for mark in marks)
        if found > 0:
            return found + 1
    # Not inside a cluster such as a joined emoji or an accented letter, unless it fills the whole piece.
    while stop > nearest and _continues(row[stop], row[stop - 1]):
        stop -= 1
    return stop


def _continues(character: str, before: str) -> bool:
    return _ZERO_WIDTH_JOINER in (character, before) or unicodedata.category(character).startswith(("M", "Sk"))


def paragraph_cost(lines: Lines) -> Cost:
    """Boundaries of plain text: best after a blank row, then at rows that are not indented."""

    def cost(row: int) -> float:
        if row and lines.blank(row - 1):
            return 0.0
        return 2.0 if lines.indent(row) else 1.0

    return cost
