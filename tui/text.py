"""Text on its way to the terminal: freed of what a terminal would obey, and cut to the cells there are.

Documents, model output, paths and errors are other people's text. Whatever of it is shown goes through ``clean``
or ``clean_line`` here; widgets take it with ``markup=False`` or as ``Content``, so that brackets stay brackets.
"""

from __future__ import annotations

from typing import Final

from rich.cells import cell_len, split_graphemes
from textual.content import Content

ELLIPSIS: Final = "…"

_REMOVED: Final = dict.fromkeys(
    (
        *(code for code in range(0x20) if chr(code) not in "\n\t"),  # C0: escape sequences begin with one of these
        *range(0x7F, 0xA0),  # delete, and C1: the eight-bit forms of CSI, OSC and their like
        0x061C,  # marks and overrides that change the order in which text is shown
        *(0x200E, 0x200F),
        *range(0x202A, 0x202F),
        *range(0x2066, 0x206A),
        0xFEFF,
        *range(0xFFF9, 0xFFFC),  # interlinear annotation: hides what stands between two marks
        *range(0xE0000, 0xE0080),  # tags: a second, invisible alphabet
    )
)
_LONE: Final = dict.fromkeys(range(0xD800, 0xE000), "\ufffd")
_LINES: Final = {0x2028: "\n", 0x2029: "\n"}
_TABLE: Final = {**_REMOVED, **_LONE, **_LINES}


def clean(text: str) -> str:
    r"""``text`` without anything that a terminal would obey or that no terminal can write.

    C0 and C1 controls go, bidirectional overrides go, and with them every escape sequence (CSI, OSC 52, titles)
    loses its beginning: what remains of it is shown as the plain letters it is made of. Removing single
    characters, never sequences, makes the result of a stream the same whatever its pieces. Line breaks of all
    kinds become ``\n``; a surrogate that stands alone becomes the replacement character.
    """
    if text.isascii() and text.isprintable():
        return text
    return text.replace("\r\n", "\n").replace("\r", "\n").translate(_TABLE)


def clean_line(text: str) -> str:
    """As ``clean``, on one line: breaks and tabs become single spaces."""
    cleaned = clean(text)
    return " ".join(cleaned.split()) if not cleaned.isprintable() else cleaned


def plain(text: str, style: str = "") -> Content:
    """Cleaned text as content: no markup is read in it."""
    return Content.styled(clean(text), style) if style else Content(clean(text))


def shorten_end(text: str, width: int) -> str:
    """``text`` in at most ``width`` cells, its end given up first."""
    if cell_len(text) <= width:
        return text
    kept, used = [], 1
    for grapheme, cells in _graphemes(text):
        if used + cells > width:
            break
        kept.append(grapheme)
        used += cells
    return "".join(kept) + ELLIPSIS if width > 0 else ""


def shorten_start(text: str, width: int) -> str:
    """``text`` in at most ``width`` cells, its start given up first: of a path, the file's name stays."""
    if cell_len(text) <= width:
        return text
    kept, used = [], 1
    for grapheme, cells in reversed(_graphemes(text)):
        if used + cells > width:
            break
        kept.append(grapheme)
        used += cells
    return ELLIPSIS + "".join(reversed(kept)) if width > 0 else ""


def _graphemes(text: str) -> list[tuple[str, int]]:
    spans, _ = split_graphemes(text)
    return [(text[start:end], cells) for start, end, cells in spans]


def count(number: int, noun: str) -> str:
    """``1 source``, ``1,204 sources``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def duration(seconds: float) -> str:
    """``0.4 s``, ``12 s``, ``3 min 20 s``, ``1 h 5 min``."""
    if seconds < 10:
        return f"{max(seconds, 0.0):.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"
