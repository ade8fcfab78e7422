"""Documents under headings: sections with breadcrumbs, tiny ones joined, long ones cut."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ragpilot.ingest.chunkers.labels import BREADCRUMB, header, numbered
from ragpilot.ingest.chunkers.lines import Cost, Cut, Lines, cut
from ragpilot.ingest.chunkers.spans import Span
from ragpilot.ingest.chunkers.words import first_sentence, phrase

_TINY = 24
"""A section with fewer characters below its heading says nothing without its neighbour."""
_MOST_TITLES = 3
_BELOW_HEADING = 20.0
"""What it costs to part a heading from what stands below it."""


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading on rows ``start`` to ``end`` (two for an underlined one)."""

    start: int
    end: int
    level: int
    text: str


@dataclass(slots=True)
class Section:
    """Rows ``start`` to ``end`` under the headings of ``trail``; ``body`` is the first row below its own heading."""

    start: int
    end: int
    body: int
    trail: tuple[str, ...]
    also: tuple[str, ...] = ()
    """Headings of later siblings that it took in."""

    def title(self) -> str:
        """``Guide › Install › Linux``; empty above the first heading."""
        names = [*self.trail[-1:], *self.also]
        shown = ", ".join(names[:_MOST_TITLES]) + (", …" if len(names) > _MOST_TITLES else "")
        return BREADCRUMB.join([*self.trail[:-1], shown]) if self.trail else ""


def split_sections(lines: Lines, headings: Sequence[Heading]) -> list[Section]:
    """Every row in one section, in order; the first may stand above all headings."""
    found: list[Section] = []
    if not headings or headings[0].start > 0:
        found.append(Section(0, (headings[0].start if headings else len(lines)) - 1, 0, ()))
    trail: list[Heading] = []
    for index, heading in enumerate(headings):
        while trail and trail[-1].level >= heading.level:
            trail.pop()
        trail.append(heading)
        end = headings[index + 1].start - 1 if index + 1 < len(headings) else len(lines) - 1
        names = tuple(above.text for above in trail if above.text)
        found.append(Section(heading.start, end, heading.end + 1, names))
    return found


def join_tiny(sections: Sequence[Section], lines: Lines, max_chars: int) -> list[Section]:
    """A heading with next to nothing below it goes with the section that follows under it or beside it."""
    joined: list[Section] = []
    for section in sections:
        before = joined[-1] if joined else None
        if before is None or not _tiny(before, lines):
            joined.append(section)
        elif section.trail[: len(before.trail)] == before.trail:
            section.start = before.start
            joined[-1] = section
        elif lines.size(before.start, section.end) > max_chars:
            joined.append(section)
        elif section.trail[:-1] == before.trail[:-1] and section.trail:
            before.end, before.also = section.end, (*before.also, section.trail[-1])
        else:
            joined.append(section)
    return joined


def chunk_sections(
    path: str,
    lines: Lines,
    sections: Sequence[Section],
    cost: Cost,
    max_chars: int,
    again: Callable[[int], str] = lambda _: "",
) -> list[Span]:
    """Sections as spans: breadcrumb as title and in the header, with the first sentence.

    ``again`` gives what a piece that begins at a row says first, since it means nothing without: a table's head.
    """
    below = {row for section in sections if (row := _first_row(lines, section)) is not None}

    def cost_below(row: int) -> float:
        return cost(row) + (_BELOW_HEADING if row in below else 0.0)

    spans: list[Span] = []
    for section in join_tiny(sections, lines, max_chars):
        cuts = list(_cut(lines, section, cost_below, max_chars, again))
        names = [*section.trail, *section.also]
        for index, piece in enumerate(cuts):
            opening = max(piece.start, section.body) if index == 0 else piece.start
            doc = first_sentence(lines.text(opening, piece.end)[:600]) if opening <= piece.end else ""
            title = section.title() or posixpath.basename(path)
            if len(cuts) > 1:
                title += f" ({index + 1}/{len(cuts)})"
            spans += numbered([piece], title, None, header(path, phrase(" ".join(names)), doc=doc))
    return spans


def _cut(lines: Lines, section: Section, cost: Cost, max_chars: int, again: Callable[[int], str]) -> Iterator[Cut]:
    start = section.start
    while start <= section.end:
        first = again(start)
        room = max_chars - len(first) - 1 if first else max_chars
        for piece in cut(lines, start, section.end, room, cost):
            start = piece.end + 1
            yield piece._replace(text=f"{first}\n{piece.text}") if first else piece
            if again(_next_row(lines, start)) != first:
                break  # the next piece has other room
        else:
            return


def _next_row(lines: Lines, row: int) -> int:
    """The first row from ``row`` on that is not blank."""
    while row < len(lines) and lines.blank(row):
        row += 1
    return row


def _first_row(lines: Lines, section: Section) -> int | None:
    """The first row below a section's own heading; None where nothing stands there."""
    row = _next_row(lines, section.body)
    return row if section.start < row <= section.end else None


def _tiny(section: Section, lines: Lines) -> bool:
    return sum(len(row.strip()) for row in lines.rows[section.body : section.end + 1]) < _TINY
