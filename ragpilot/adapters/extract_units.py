"""Prose in units that are shown whole or not at all, and the choice among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ragpilot.adapters.extract_code import excerpt
from ragpilot.adapters.extract_markup import CUT, fenced, shortened
from ragpilot.adapters.extract_words import Words

ROW = 96
"""Characters that count as one row of a paragraph, whose lines a reader's screen wraps."""
LONGEST_ROWS = 7
"""Rows that are shown of one paragraph, and of one table."""


@dataclass(frozen=True, slots=True)
class Unit:
    """A paragraph, an item of a list, a heading, a table, or code."""

    lines: tuple[str, ...]
    language: str | None = None
    """Of code; None: the lines are Markdown."""
    apart: bool = True
    """Whether a blank line stands before it."""
    heading: bool = False
    table: bool = False

    @property
    def rows(self) -> int:
        """What it takes on a screen."""
        if self.language is not None:
            return len(self.lines) + 3
        return sum(1 if self.table else -(-len(line) // ROW) for line in self.lines) + self.apart

    def bounded(self, words: Words, limit: int) -> Unit:
        """The unit, cut to what may be shown of it."""
        if self.language is not None:
            lines = excerpt(self.lines, words, self.language or "text", limit=max(4, limit - 5), begins=False)
            return replace(self, lines=tuple(lines))
        if self.rows <= LONGEST_ROWS + self.apart:
            return self
        return replace(self, lines=self._best_rows(words) if self.table else self._beginning())

    def _best_rows(self, words: Words) -> tuple[str, ...]:
        head, body = self.lines[:2], self.lines[2:]
        best = list(dict.fromkeys([*words.best_first(body), *range(len(body))]))
        return (*head, *(body[at] for at in sorted(best[: LONGEST_ROWS - 3])), f"| {CUT} |")

    def _beginning(self) -> tuple[str, ...]:
        lines: list[str] = []
        left = LONGEST_ROWS * ROW
        for line in self.lines:
            if left <= ROW // 2:
                lines[-1] += f" {CUT}"
                break
            lines.append(shortened(line, left))
            left -= -(-len(line) // ROW) * ROW
        return tuple(lines)


def choose_units(units: Sequence[Unit], words: Words, limit: int) -> set[int]:
    """Which units to show in about ``limit`` rows: the best ones with the headings above them, then what follows."""
    if sum(unit.rows for unit in units) <= limit + 1:
        return set(range(len(units)))
    chosen: set[int] = set()

    def take(*wanted: int) -> None:
        nonlocal chosen
        more = chosen | {at for at in wanted if 0 <= at < len(units)}
        gaps = sum(1 for at in more if at and at - 1 not in more) + (len(units) - 1 not in more)
        if not chosen or sum(units[at].rows for at in more) + 2 * gaps <= limit:
            chosen = more

    order = words.best_first(["\n".join(unit.lines) for unit in units]) or [0]
    for at in order:
        if at and units[at - 1].heading:
            take(at, at - 1)
        # What a colon announces belongs to it.
        if units[at].lines[-1].rstrip().endswith(":"):
            take(at, at + 1)
        if at and units[at - 1].lines[-1].rstrip().endswith(":"):
            take(at, at - 1)
        take(at)
    for distance in range(1, len(units)):
        take(order[0] + distance)
    return {at for at in chosen if not units[at].heading or at + 1 in chosen or len(chosen) == 1}


def rendered(units: Sequence[Unit], chosen: set[int]) -> list[str]:
    """The chosen units as Markdown: block quotes, and code in fences between them.

    Code stands outside the quotes because there nothing in it can be taken for a citation.
    """
    rows: list[str] = []
    for at, unit in enumerate(units):
        if at not in chosen:
            if not at or at - 1 in chosen:
                _quote(rows, [CUT], apart=True)
        elif unit.language is None:
            _quote(rows, unit.lines, apart=unit.apart or at - 1 not in chosen)
        else:
            rows += [*([""] if rows else []), *fenced(unit.lines, unit.language)]
    return rows


def _quote(rows: list[str], lines: Sequence[str], *, apart: bool) -> None:
    if rows and not rows[-1].startswith(">"):
        rows.append("")
    elif rows and apart:
        rows.append(">")
    rows += [f"> {line}" for line in lines]
