"""Segments that say nothing alone, joined with a neighbour: closing brackets, bare heads, banners, constructors."""

from __future__ import annotations

import re
from bisect import insort
from collections.abc import Iterable

from ragpilot.ingest.chunkers.code.language import Kind
from ragpilot.ingest.chunkers.code.layout import Segment
from ragpilot.ingest.chunkers.code.outline import Name, Unit
from ragpilot.ingest.chunkers.lines import Lines

_CLOSER = re.compile(
    r"(?:[\s})\];,>]|\(\))*(?:\b(?:end|fi|done|esac)\b[\s})\];,.]*|#(?:endif|else|endregion)\b.*)?(?:(?<=.)(?://|/\*|#).*)?"
    r"|(?:[A-Z0-9]+_)*END(?:_[A-Z0-9]+)*"
)
_LONGEST_CLOSER = 80
_OPENER = re.compile(
    r"[\w$.!\"' ]{0,24}[{(\[:]|(?:else|try|do|then|begin|finally|ensure)\b[ \w]{0,16}[{:]?"
    r"|class <<.*|private|protected|public|module_function|extension\b.*"
    r"|(?:[A-Z0-9]+_)*BEGIN(?:_[A-Z0-9]+)*|#[ \t]*(?:if|ifdef|ifndef|region)\b.*"
)
"""What only begins something: ``else:``, ``const (``, ``theme: {``, ``#if DEBUG``."""
_REMARKS = ("#", "//", "/*", "*", "--", ";")
_HEADING = re.compile(r"[ \t]*(?://|/\*|\*|--|;|#(?![\w\[!]))")
_BODY = re.compile(r"(?:=>|\)|\b(?:static|init|do|else))[ \t]*\{.*\w")
"""A block on the row that it begins in: ``static { load(); }``, ``watch(total, () => { save(); })``."""
_LABEL = re.compile(r"[ \t]*(?:#|(?:public|protected|private)\b[\w \t]*:)")
"""What stands left of the members that it opens."""
_SMALL = 60
"""Rows outside every declaration that are this short, and name nothing, go with their neighbour."""
_SMALL_HEAD = 160
_SMALL_REMARK = 200


def join(flat: Iterable[Segment], lines: Lines, max_chars: int, constructors: frozenset[str]) -> list[Segment]:
    """Every row that is not blank in one segment, in order, without blank rows at the edges."""
    found: list[Segment] = []
    for segment in flat:
        trimmed = lines.trim(segment.start, segment.end)
        if trimmed is None:
            continue
        segment.start, segment.end = trimmed
        before = found[-1] if found else None
        if before is not None:
            _exchange(before, segment, lines, max_chars)
            fits = lines.size(before.start, segment.end) <= max_chars
            if _belongs_above(before, segment, lines, fits=fits, constructors=constructors):
                before.end = segment.end
                continue
            cut_anyway = lines.size(segment.start, segment.end) > max_chars
            if (fits or cut_anyway) and _belongs_below(before, segment, lines):
                segment.start, segment.also = before.start, [*before.also, *segment.also]
                found.pop()
        found.append(segment)
    return found


def _exchange(before: Segment, segment: Segment, lines: Lines, max_chars: int) -> None:
    """Give closing brackets to what they close, and a heading that stands between blank rows to what is below."""
    row = segment.start
    if not segment.whole and not segment.head:
        while row < segment.end and _closes(lines.rows[row]) and lines.size(before.start, row) <= max_chars:
            row += 1
        if row > segment.start:
            before.end, (segment.start, segment.end) = row - 1, lines.trim(row, segment.end) or (row, segment.end)
    if before.unit.kind is Kind.CALLABLE or segment.start - before.end <= 1 or not segment.declares:
        return
    first = before.end + 1
    while first > before.start + 1 and _HEADING.match(lines.rows[first - 1]):
        first -= 1
    floor = before.unit.declared_at if before.head else before.start
    if floor < first <= before.end and lines.blank(first - 1) and lines.size(first, segment.end) <= max_chars:
        segment.start = first
        before.end = (lines.trim(before.start, first - 1) or (before.start, before.start))[1]


def _belongs_above(
    before: Segment, segment: Segment, lines: Lines, *, fits: bool, constructors: frozenset[str]
) -> bool:
    """Closing brackets; a constructor after its type's head; a remark or a call right below a declaration."""
    rows = lines.rows[segment.start : segment.end + 1]
    if not segment.whole and not segment.head and all(map(_closes, rows)):
        return True
    if not fits:
        return False
    if _is_constructor(segment, before, constructors):
        name = Name(segment.start, segment.start, segment.unit.name)
        insort(before.unit.names, name, key=lambda other: other.start)
        if segment.unit.name != before.unit.name:
            before.also.append(segment.unit.symbol)
        return True
    if _is_bare_function_head(before, segment, lines):
        before.also.append(segment.unit.symbol)
        return True
    tail = segment.unit.kind is Kind.CALLABLE  # what follows the functions inside a long one
    close = (tail or segment.start - before.end <= 1) and _inside(before.unit, segment.unit)
    if not close or not segment.bare or before.bare or lines.size(segment.start, segment.end) >= _SMALL:
        return False
    return not _opens(lines, segment) and not _has_a_body(segment, lines)


def _belongs_below(before: Segment, segment: Segment, lines: Lines) -> bool:
    """The bare head of a scope; a small remark between declarations; anything so short inside a type."""
    size = lines.size(before.start, before.end)
    if not _inside(segment.unit, before.unit):
        return False
    if before.head and before.unit.kind is Kind.SCOPE and (before.unit.symbol or before.start):
        return size < _SMALL_HEAD and not before.names(before.start, before.end)
    if _opens(lines, before):
        return True
    if not before.bare or before.start == 0:
        return False
    rows = lines.rows[before.start : before.end + 1]
    is_remark = size < _SMALL_REMARK and all(not row.strip() or row.lstrip().startswith(_REMARKS) for row in rows)
    return is_remark or (size < _SMALL and bool(before.unit.symbol) and not _has_a_body(before, lines, ended=True))


def _has_a_body(segment: Segment, lines: Lines, *, ended: bool = False) -> bool:
    """Whether rows that declare nothing are a statement in its own right: one with others inside it.

    ``ended``: its end must be among them too, for what only begins one goes with what is below.
    """
    rows = [row for row in range(segment.start, segment.end + 1) if not lines.blank(row)]
    while rows and _LABEL.match(lines.rows[rows[0]]):
        del rows[0]
    if not rows or _HEADING.match(lines.rows[rows[0]]):
        return False
    indent = lines.indent(rows[0])
    if ended and lines.indent(rows[-1]) > indent:
        return False
    inside = any(lines.indent(row) > indent and not _HEADING.match(lines.rows[row]) for row in rows[1:])
    return inside or _BODY.search(lines.rows[rows[0]]) is not None


def _opens(lines: Lines, segment: Segment) -> bool:
    """Whether a segment is one row that only begins what comes below it."""
    row = lines.rows[segment.start].strip()
    one = segment.bare and segment.start == segment.end and len(row) < _LONGEST_CLOSER
    return one and _OPENER.fullmatch(row) is not None


def _is_bare_function_head(before: Segment, segment: Segment, lines: Lines) -> bool:
    """The head of a long function with nothing but what is declared first inside it."""
    if not before.head or before.unit.kind is not Kind.CALLABLE or segment.unit not in before.unit.children:
        return False
    return lines.size(before.start, before.end) < _SMALL_HEAD


def _closes(row: str) -> bool:
    """Whether a row only closes what was opened, with a remark at most; a remark alone closes nothing."""
    text = row.strip()
    return len(text) < _LONGEST_CLOSER and _CLOSER.fullmatch(text) is not None


def _is_constructor(segment: Segment, before: Segment, constructors: frozenset[str]) -> bool:
    if not segment.whole or not before.head or before.unit.kind is not Kind.TYPE:
        return False
    name = segment.unit.name
    return segment.unit in before.unit.children and (name in constructors or name == before.unit.name)


def _inside(unit: Unit, outer: Unit) -> bool:
    return not outer.symbol or unit.symbol == outer.symbol or unit.symbol.startswith(outer.symbol + ".")
