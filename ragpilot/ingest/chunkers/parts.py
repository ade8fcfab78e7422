"""Texts that are a list of named parts: sections of a configuration, rules, statements, messages.

The cutters of these formats only say where a part begins and what it is called; packing small ones together,
cutting large ones and naming the spans happens here.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from ragpilot.ingest.chunkers.labels import header, numbered, shared_symbol
from ragpilot.ingest.chunkers.lines import Cost, Cut, Lines, cut
from ragpilot.ingest.chunkers.spans import Span
from ragpilot.ingest.chunkers.words import phrase

_SMALL = 200
"""What has no name and fewer characters is packed with a neighbour as small, up to half a chunk."""
_TRIFLE = 60
"""With fewer, named ones are packed with each other, and what has no name with a neighbour of any size."""
_MOST_TITLES = 3
_MOST_DETAIL_CHARS = 600


@dataclass(frozen=True, slots=True)
class Part:
    """Rows ``start`` to ``end`` (from 0, both included). ``name`` may be empty; ``apart``: never packed with others."""

    start: int
    end: int
    name: str
    apart: bool = False
    also: tuple[str, ...] = ()
    """Names of parts that were packed with it; the symbol is then what all of them lie in."""


PieceName = Callable[[Part, Cut], str]
"""What a piece of a part that had to be cut is called, such as the nearest key above it; empty: as the part."""


def whole_name(part: Part, _piece: Cut) -> str:
    """Pieces are called as their part."""
    return part.name


def fill(lines: Lines, parts: Iterable[Part]) -> list[Part]:
    """The parts in order, and nameless ones for all rows between them."""
    filled: list[Part] = []
    position = 0
    for part in parts:
        if part.end < position:
            continue
        if part.start > position:
            filled.append(Part(position, part.start - 1, ""))
        filled.append(replace(part, start=max(part.start, position)))
        position = part.end + 1
    if position < len(lines):
        filled.append(Part(position, len(lines) - 1, ""))
    return filled


def chunk_parts(
    path: str,
    lines: Lines,
    parts: Sequence[Part],
    cost: Cost,
    max_chars: int,
    *,
    piece_name: PieceName = whole_name,
) -> list[Span]:
    """Parts as spans: small neighbours packed together, large ones cut.

    The symbol is the part's name, and of several that are packed what their names have in common.
    """
    spans: list[Span] = []
    for part in _packed(lines, parts, max_chars):
        cuts = list(cut(lines, part.start, part.end, max_chars, cost))
        for number, piece in enumerate(cuts, 1):
            name = piece_name(part, piece) if len(cuts) > 1 else part.name
            title = _title([name, *part.also]) or posixpath.basename(path)
            if len(cuts) > 1 and name == part.name:
                title += f" ({number}/{len(cuts)})"
            head = header(path, phrase(name), details=[*part.also, piece.text[:_MOST_DETAIL_CHARS]])
            spans += numbered([piece], title, shared_symbol([name, *part.also]), head)
    return spans


def _packed(lines: Lines, parts: Sequence[Part], max_chars: int) -> list[Part]:
    packed: list[Part] = []
    for given in parts:
        trimmed = lines.trim(given.start, given.end)
        if trimmed is None:
            continue
        part = replace(given, start=trimmed[0], end=trimmed[1])
        if packed and _pack(packed[-1], part, lines, max_chars):
            part = _joined(packed.pop(), part)
        packed.append(part)
    return packed


def _joined(before: Part, part: Part) -> Part:
    names = [name for one in (before, part) for name in (one.name, *one.also) if name]
    unique = tuple(dict.fromkeys(names)) or ("",)
    return Part(before.start, part.end, unique[0], before.apart or part.apart, unique[1:])


def _pack(before: Part, part: Part, lines: Lines, max_chars: int) -> bool:
    """Whether two neighbours share a span: trifles, and what has no name with what is beside it."""
    sizes = _size(before, lines), _size(part, lines)
    joined = lines.size(before.start, part.end)
    if before.apart or part.apart:
        opens = part.apart and not before.name and sizes[0] < _TRIFLE
        closes = before.apart and not part.name and not _says_anything(part, lines)
        return (opens or closes) and joined <= max_chars
    if before.name and part.name:
        trifles = sizes[1] < _TRIFLE and sizes[0] < _TRIFLE * (1 + len(before.also))
        return trifles and joined <= max_chars // 2
    if min(sizes) < _TRIFLE and (joined <= max_chars or _says_nothing(before, part, lines, max_chars)):
        return True
    return max(sizes) < _SMALL and joined <= max_chars // 2


def _says_nothing(before: Part, part: Part, lines: Lines, max_chars: int) -> bool:
    """Whether one of the two is nothing but brackets beside one that is cut anyway."""
    small, large = (before, part) if _size(before, lines) < _TRIFLE else (part, before)
    return _size(large, lines) > max_chars and not _says_anything(small, lines)


def _says_anything(part: Part, lines: Lines) -> bool:
    return any(map(str.isalnum, lines.text(part.start, part.end)))


def _size(part: Part, lines: Lines) -> int:
    return lines.size(part.start, part.end)


def _title(names: Sequence[str]) -> str:
    shown = [name for name in names if name]
    return ", ".join(shown[:_MOST_TITLES]) + (", …" if len(shown) > _MOST_TITLES else "")
