"""Text on its way into a widget: cleaned, literal, and cut to the cells there are.

Documents, model output, paths and errors are other people's text. Whatever of it is shown goes through ``clean`` or
``clean_line``; widgets take it with ``markup=False`` or as ``Content``, so that brackets stay brackets.
"""

from __future__ import annotations

from typing import Final

from rich.cells import cell_len, split_graphemes
from textual.content import Content

from ragpilot.terminal_text import clean, clean_line

__all__ = ["clean", "clean_line", "clean_lines", "count", "duration", "plain", "shorten_end", "shorten_start"]

ELLIPSIS: Final = "…"


def clean_lines(text: str) -> list[str]:
    """Cleaned text as lines, whichever breaks it was written with."""
    return clean(text.replace("\r\n", "\n").replace("\r", "\n")).split("\n")


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
