"""Formats whose parts begin at rows that can be told by their look: sections, targets, stages, keys, messages."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

from ragpilot.ingest.chunkers.lines import Cost, Lines
from ragpilot.ingest.chunkers.parts import Part, fill

_LONGEST_ROW = 400
"""Longer rows are data and begin nothing."""

_DEEPEST = 16
"""Columns of indentation that tell anything about structure."""

NameOf = Callable[[re.Match[str]], str]


def first_group(match: re.Match[str]) -> str:
    """The name of most parts: the first group that matched, without quotes around all of it."""
    name = next((group for group in match.groups() if group), "").strip()
    return name[1:-1] if name[:1] in ('"', "'") and name.find(name[0], 1) == len(name) - 1 else name


def split_at(
    lines: Lines,
    start: re.Pattern[str],
    comments: tuple[str, ...],
    *,
    name: NameOf = first_group,
    inside: Collection[int] = (),
    apart: bool = False,
) -> list[Part]:
    """One part from each row that matches ``start`` to the next, with the comments right above; all rows are in one.

    ``inside`` are rows within strings or block comments, where nothing begins. With ``apart``, parts are not
    packed with others unless the group ``together`` matched, and strings right above them are their descriptions.
    """
    begun: list[tuple[int, str, bool]] = []
    for row, text in enumerate(lines.rows):
        if row in inside or len(text) > _LONGEST_ROW or (match := start.match(text)) is None:
            continue
        first = row
        floor = begun[-1][0] + 1 if begun else 0
        while first > floor and (
            lines.rows[first - 1].lstrip().startswith(comments) or (apart and first - 1 in inside)
        ):
            first -= 1
        begun.append((first, name(match), apart and not match.groupdict().get("together")))
    ends = [row - 1 for row, _, _ in begun[1:]] + [len(lines) - 1]
    return fill(lines, (Part(row, end, title, alone) for (row, title, alone), end in zip(begun, ends, strict=False)))


def indent_cost(lines: Lines) -> Cost:
    """Rows with the least indentation are the best to begin at; closing brackets are not, blank rows above are."""

    def cost(row: int) -> float:
        text = lines.rows[row].lstrip()
        closes = text.startswith(("}", "]", ")", "</"))
        blank_before = row > 0 and lines.blank(row - 1)
        return min(lines.indent(row), _DEEPEST) * 0.5 + (6.0 if closes else 0.0) - (0.4 if blank_before else 0.0)

    return cost


def rows_between(lines: Lines, mark: str) -> set[int]:
    """Rows inside strings over several rows that ``mark`` opens and closes, the opening row excepted."""
    rows: set[int] = set()
    opened = False
    for row, text in enumerate(lines.rows):
        if opened:
            rows.add(row)
        if text.count(mark) % 2:
            opened = not opened
    return rows
