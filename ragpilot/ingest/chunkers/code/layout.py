"""Nested units as segments: rows in order, none twice, each with the unit that names it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from ragpilot.ingest.chunkers.code.language import Kind
from ragpilot.ingest.chunkers.code.outline import Name, Unit
from ragpilot.ingest.chunkers.lines import Lines

_CLOSERS = re.compile(r"(?:[\s})\];,>]|\bend\b|#endif\b.*|#else\b.*|\bfi\b|\bdone\b|\besac\b)+", re.MULTILINE)
_SMALL = 60
"""Rows outside every declaration that are this short, and name nothing, go with their neighbour."""
_SMALL_HEAD = 160


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

    def names(self, start: int, end: int) -> list[str]:
        """Fields, constants and prototypes on some of these rows."""
        return [name.text for name in self.unit.names if start <= name.start <= end]


def segments(module: Unit, lines: Lines, max_chars: int, constructors: frozenset[str]) -> list[Segment]:
    """Every row that is not blank in one segment; what says nothing alone stands with a neighbour."""
    found: list[Segment] = []
    for segment in _flat(module):
        trimmed = lines.trim(segment.start, segment.end)
        if trimmed is not None:
            segment.start, segment.end = trimmed
            _place(segment, found, lines, max_chars, constructors)
    return found


def _flat(module: Unit) -> Iterator[Segment]:
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


def _place(segment: Segment, found: list[Segment], lines: Lines, max_chars: int, constructors: frozenset[str]) -> None:
    """Append the segment, or join it with the one before."""
    before = found[-1] if found else None
    if before is not None and _joined(before, segment, lines, max_chars, constructors):
        return
    found.append(segment)


def _joined(before: Segment, segment: Segment, lines: Lines, max_chars: int, constructors: frozenset[str]) -> bool:
    text = lines.text(segment.start, segment.end)
    if not segment.whole and not segment.head and _CLOSERS.fullmatch(text):
        before.end = segment.end
        return True
    if lines.size(before.start, segment.end) > max_chars:
        return False
    if _is_constructor(segment, before, constructors):
        before.end = segment.end
        before.unit.names.append(Name(segment.start, segment.start, segment.unit.name))
        return True
    if before.whole or before.names(before.start, before.end):
        # A remark or a bare call right below a declaration stays with it; below a blank row it stands alone.
        close = segment.start - before.end <= 1 and _inside(before.unit, segment.unit)
        if (
            not segment.whole
            and not segment.head
            and close
            and len(text) < _SMALL
            and not segment.names(segment.start, segment.end)
        ):
            before.end = segment.end
            return True
        return False
    small_head = before.head and before.unit.kind is Kind.SCOPE and lines.size(before.start, before.end) < _SMALL_HEAD
    small_rest = not before.head and lines.size(before.start, before.end) < _SMALL
    if before.unit.symbol and (small_head or small_rest) and _inside(segment.unit, before.unit):
        _prepend(segment, before)
        before.start, before.end, before.unit = segment.start, segment.end, segment.unit
        before.whole, before.also = segment.whole, segment.also
        return True
    return False


def _prepend(segment: Segment, before: Segment) -> None:
    segment.start = before.start
    segment.also = [*before.also, *segment.also]


def _is_constructor(segment: Segment, before: Segment, constructors: frozenset[str]) -> bool:
    if not segment.whole or not before.head or before.unit.kind is not Kind.TYPE:
        return False
    name = segment.unit.name
    return segment.unit in before.unit.children and (name in constructors or name == before.unit.name)


def _inside(unit: Unit, outer: Unit) -> bool:
    return not outer.symbol or unit.symbol == outer.symbol or unit.symbol.startswith(outer.symbol + ".")
