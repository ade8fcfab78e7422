"""Nested units as segments: rows in order, none twice, each with the unit that names it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

from ragpilot.ingest.chunkers.code.language import Kind
from ragpilot.ingest.chunkers.code.outline import Name, Unit


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
    trifles: bool = False
    """Nothing but members of one short row each."""

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
        return not self.whole and not self.head and not self.names(self.start, self.end)

    def names(self, start: int, end: int) -> list[str]:
        """Fields, constants and prototypes on some of these rows."""
        names = self.unit.names
        first = bisect_left(names, start, key=_row)
        last = bisect_right(names, end, lo=first, key=_row)
        return [name.text for name in names[first:last]]


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


def _symbols(unit: Unit) -> list[str]:
    """The symbols of a unit and all below it."""
    symbols: list[str] = []
    stack = [unit]
    while stack:
        unit = stack.pop()
        symbols.append(unit.symbol)
        stack += reversed(unit.children)
    return symbols
