"""Where a piece of code begins: its signature, and the first paragraph of its documentation, in any language."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

SIGNATURE_LINES = 7
DOC_LINES = 5

_DECORATION = re.compile(r"\s*(?:@\w|#!?\[|\[\[?\w|template\b)")
_QUOTES = re.compile(r"\s*[rRuUbB]{0,2}(\"\"\"|''')")
_DOC_SIGNS = re.compile(r"^[\s/*!#;%'\"-]*|[\s*/\"']*$")
_TAG = re.compile(r"(?:[@:\\]\w|</?(?:param|returns?|remarks)\b|(?:Args|Arguments|Parameters|Returns|Raises):?$)")
_CLOSES = re.compile(r"\*/|-->|\*\)|\"\"\"|'''")
_OPEN, _CLOSE = re.compile(r"[(\[]"), re.compile(r"[)\]]")


@dataclass(frozen=True, slots=True)
class Opening:
    """Rows of what is declared where some lines begin."""

    signature: Sequence[int]
    documentation: Sequence[int]
    """The first paragraph of what is said about it, with the row that ends all of it."""


def opening_of(lines: Sequence[str], sign: str) -> Opening:
    """Where the thing that begins here is declared, and the first paragraph of what is said about it."""
    start, before = 0, range(0)
    while start < len(lines) and (found := comment_at(lines, start, sign)):
        before, start = found, found.stop
        while start < len(lines) and not lines[start].strip():
            start += 1
    if start >= len(lines):
        return Opening((), _first_paragraph(lines, before))
    signature = range(start, _signature_end(lines, start))
    inside = _docstring(lines, signature.stop)
    return Opening(signature, _first_paragraph(lines, inside or before))


def _signature_end(lines: Sequence[str], start: int) -> int:
    depth, end = 0, start
    for end in range(start, min(start + SIGNATURE_LINES, len(lines))):
        depth += len(_OPEN.findall(lines[end])) - len(_CLOSE.findall(lines[end]))
        if depth <= 0 and not _DECORATION.match(lines[end]):
            following = lines[end + 1].lstrip() if end + 1 < len(lines) else ""
            if not following.startswith(("where", "{", "->", ": ")):
                break
    return end + 1


def comment_at(lines: Sequence[str], start: int, sign: str) -> range | None:
    """The comment that begins at ``start``: a block, or a run of lines that open with ``sign``."""
    text = lines[start].lstrip()
    if text.startswith(("/*", "<!--", "(*")):
        closing = {"/": "*/", "<": "-->", "(": "*)"}[text[0]]
        end = next((at for at in range(start, len(lines)) if closing in lines[at]), len(lines) - 1)
        return range(start, end + 1)
    if not sign or not text.startswith(sign) or _DECORATION.match(text):
        return None
    end = start
    while end < len(lines) and lines[end].lstrip().startswith(sign) and not _DECORATION.match(lines[end]):
        end += 1
    return range(start, end)


def _docstring(lines: Sequence[str], start: int) -> range | None:
    """The string of several lines that stands at ``start``."""
    opened = _QUOTES.match(lines[start]) if start < len(lines) else None
    if opened is None:
        return None
    quotes = opened.group(1)
    if quotes in lines[start][opened.end() :]:
        return range(start, start + 1)
    end = next((at for at in range(start + 1, len(lines)) if quotes in lines[at]), len(lines) - 1)
    return range(start, end + 1)


def _first_paragraph(lines: Sequence[str], documentation: range) -> list[int]:
    """The lines of the first paragraph, and the one that closes the whole, so that a highlighter sees its end."""
    found: list[int] = []
    said = False
    for at in documentation:
        text = _DOC_SIGNS.sub("", lines[at])
        if said and (not text or _TAG.match(text) or len(found) == DOC_LINES):
            break
        said = said or bool(text)
        found.append(at)
    last = documentation.stop - 1
    closes = bool(found) and _CLOSES.search(lines[last])
    return [*found, last] if closes and last not in found else found
