"""Nested units as segments: rows in order, none twice, each with the unit that names it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from ragpilot.ingest.chunkers.code.language import Kind
from ragpilot.ingest.chunkers.code.outline import Name, Unit
from ragpilot.ingest.chunkers.lines import Lines

_PARAGRAPH = 40
"""Shorter constants, as a module's logger, do not stand alone for a blank row above."""
_ROWS = 2
"""What goes on for more rows below its first stands alone even without one."""


@dataclass(slots=True)
class Segment:
    """Rows ``start`` to ``end`` (from 0, both included) of one unit."""

    start: int
    end: int
    unit: Unit
    whole: bool
    """All of the unit; otherwise its head, or what stands between or after its children."""
    also: list[str] = field(default_factory=list)
    """Symbols of other units on the same rows."""

    @property
    def head(self) -> bool:
        """Whether the unit is declared here."""
        return self.start <= self.unit.declared_at <= self.end

    @property
    def declares(self) -> bool:
        """Whether the unit's own name stands for these rows."""
        return bool(self.unit.symbol) and (self.whole or self.head)

    @property
    def bare(self) -> bool:
        """Whether nothing is declared on these rows, not even a field."""
        heads = self.head and bool(self.unit.symbol or self.start)  # a module is not declared in its first row
        return not self.whole and not heads and not self.names(self.start, self.end)

    def named(self, start: int, end: int) -> list[Name]:
        """Fields, constants and prototypes that begin on some of these rows."""
        names = self.unit.names
        first = bisect_left(names, start, key=_row)
        last = bisect_right(names, end, lo=first, key=_row)
        return names[first:last]

    def names(self, start: int, end: int) -> list[str]:
        """What they are called."""
        return [name.text for name in self.named(start, end)]


def _row(name: Name) -> int:
    return name.start


def flatten(module: Unit) -> Iterator[Segment]:
    """Units in the order of their rows. A row that several share goes to the first, which then names the others."""
    last: Segment | None = None
    stack: list[tuple[Unit, int]] = [(module, 0)]  # a unit, and which of its children is next
    position = 0
    while stack:
        unit, index = stack.pop()
        if index < len(unit.children):
            child = unit.children[index]
            stack.append((unit, index + 1))
            reach = child.start - 1
            if index == 0 and unit.kind is not Kind.SCOPE:
                reach = max(reach, unit.declared_at)
            if reach >= position:
                yield (last := Segment(position, min(reach, unit.end), unit, whole=False))
                position = last.end + 1
            if child.end < position:
                if last is not None:
                    last.also += _symbols(child)
                position = max(position, child.start)
            else:
                position = max(position, child.start)
                stack.append((child, 0))
        elif unit.end >= position:
            yield (last := Segment(position, unit.end, unit, whole=not unit.children))
            position = unit.end + 1


def set_apart(segments: Iterable[Segment], lines: Lines) -> Iterator[Segment]:
    """The same rows; between declarations, what has a comment or a paragraph of its own is a segment of its own."""
    for segment in segments:
        position = segment.start
        for row in () if segment.declares else _paragraphs(segment, lines):
            if row > position:
                yield Segment(position, row - 1, segment.unit, whole=False)
                position = row
        yield replace(segment, start=position)


def _paragraphs(segment: Segment, lines: Lines) -> Iterator[int]:
    """The rows where one begins."""
    before: Name | None = None
    for name in segment.named(segment.start, segment.end):
        if before is not None and name.start <= before.end:
            continue  # another name of the same statement
        floor = segment.start if before is None else before.end + 1
        first = name.start  # with what opens it: a bracket, the comment of a block
        while first > floor and not lines.blank(first - 1):
            first -= 1
        if before is not None:
            yield from _nameless(before.end, first - 1, lines)
        adjoins = first == floor
        alone = name.documented or name.end - name.start >= _ROWS
        after = before is not None and (before.end - before.start >= _ROWS or (before.documented and not adjoins))
        if (
            alone
            or after
            or (not adjoins and lines.size(first, _paragraph_end(name.end, segment.end, lines)) >= _PARAGRAPH)
        ):
            yield first
        before = name
    if before is not None:
        yield from _nameless(before.end, segment.end, lines)


def _nameless(named: int, end: int, lines: Lines) -> Iterator[int]:
    """Where statements begin that go on for a while behind a paragraph of names."""
    row = _paragraph_end(named, end, lines) + 1
    if row <= end and lines.size(row, end) >= _PARAGRAPH:
        yield row


def _paragraph_end(row: int, end: int, lines: Lines) -> int:
    while row < end and not lines.blank(row + 1):
        row += 1
    return row


def _symbols(unit: Unit) -> list[str]:
    """The symbols of a unit and all below it."""
    symbols: list[str] = []
    stack = [unit]
    while stack:
        unit = stack.pop()
        symbols.append(unit.symbol)
        stack += reversed(unit.children)
    return symbols
