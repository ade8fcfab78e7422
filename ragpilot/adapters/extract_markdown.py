"""Markdown to units: paragraphs, items, headings, tables and fences, without what a terminal cannot show."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from ragpilot.adapters.extract_code import dedented
from ragpilot.adapters.extract_markup import shortened
from ragpilot.adapters.extract_units import Unit

LONGEST_LINE = 1500
"""Characters of one line of prose that are looked at: more are never shown."""

_FENCE = re.compile(r"\s*(?P<mark>`{3,}|~{3,})\s*(?P<info>[^`]*)$")
_HEADING = re.compile(r" {0,3}#{1,6}[ \t]+(?P<text>.*?)[ \t#]*$")
_UNDERLINE = re.compile(r" {0,3}(?:={2,}|-{2,})[ \t]*$")
_TABLE_RULE = re.compile(r"\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$")
_ITEM = re.compile(r"(?:[-*+]|\d{1,3}[.)])[ \t]")
_PART = re.compile(r"\((\d+)/\d+\)$")

_CODE = re.compile(r"(?<!`)(`+)(?!`).+?(?<!`)\1(?!`)")
_BADGE = re.compile(r"\[!\[[^\]]*\]\([^)]*\)\](?:\([^)]*\)|\[[^\]]*\])")
_IMAGE = re.compile(r"!\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])")
_MARKUP = re.compile(r"<!--.*?(?:-->|$)|</?[A-Za-z](?![\w.+-]*[:@])[^<>]*>")
_DEFINITION = re.compile(r" {0,3}\[[^\]]+\]:\s")
_OPEN_TAG = re.compile(r"<(?=[A-Za-z/!?])(?![A-Za-z][\w.+-]*[:@])")
_LINK_WITHIN = re.compile(r"\[([^\]]*)\]\((?!https?://)[^)]*\)")
_NUMBER = re.compile(r"\[(\d{1,3}(?:\s*[,;–-]\s*\d{1,3})*)\](?!\()")


def markdown_units(lines: Sequence[str], title: str) -> list[Unit]:
    """The units of ``lines`` in order.

    Args:
        lines: Markdown, without blank lines at either end.
        title: of the chunk. A first heading that only repeats it is left out; a part number in it tells that the
            lines may begin within a fence.
    """
    units = [unit for unit in _read(lines, title) if unit.lines]
    if units and units[0].heading and _letters(units[0].lines[0]) in _letters(title):
        del units[0]
    return units


def inert(line: str) -> str:
    """A line of prose as others may show it; inline code is left as it is.

    Images, tags and links that lead nowhere from here are reduced to their text, and no number in brackets can be
    taken for a citation.
    """
    line = shortened(line, LONGEST_LINE)
    parts: list[str] = []
    end = 0
    for code in _CODE.finditer(line):
        parts += [_without_markup(line[end : code.start()]), code.group()]
        end = code.end()
    return "".join([*parts, _without_markup(line[end:])])


def heading_unit(text: str) -> Unit:
    """A heading in bold: a real one would stand out of the quote that it is in."""
    text = inert(text).replace("**", "").strip()
    return Unit((f"**{text}**",) if text else (), heading=True)


def prose_unit(lines: Sequence[str], *, apart: bool) -> Unit:
    """A paragraph or an item, without the lines of which nothing but images and tags would be left."""
    return Unit(tuple(shown for line in lines if (shown := inert(line)).strip()), apart=apart)


def _read(lines: Sequence[str], title: str) -> Iterator[Unit]:
    at = _end_of_what_began_before(lines, title)
    if at:
        yield Unit(tuple(dedented(lines[: at - 1])), "text")
    paragraph: list[str] = []
    apart, listed = True, False
    while at < len(lines):
        line = lines[at]
        block = _block(lines, at, indented=apart and not listed and not paragraph)
        if paragraph and (block or not line.strip() or _ITEM.match(line)):
            yield prose_unit(paragraph, apart=apart)
            paragraph, apart = [], False
        if block is not None:
            unit, at = block
            yield unit
            apart, listed = True, False
            continue
        if _UNDERLINE.match(line):
            if paragraph:
                yield heading_unit(" ".join(paragraph))
            paragraph, apart, listed = [], True, False
        elif line.strip() and not _DEFINITION.match(line):
            listed = bool(_ITEM.match(line)) or (listed and line[:1] in " \t") or (listed and bool(paragraph))
            paragraph.append(line)
        else:
            apart = True
        at += 1
    if paragraph:
        yield prose_unit(paragraph, apart=apart)


def _block(lines: Sequence[str], at: int, *, indented: bool) -> tuple[Unit, int] | None:
    """The unit other than a paragraph that begins at ``at``, and where the next one does."""
    line = lines[at]
    if (fence := _FENCE.match(line)) is not None:
        close = re.compile(rf"\s*{re.escape(fence['mark'][0])}{{{len(fence['mark'])},}}\s*$")
        stop = _stop(lines, at + 1, lambda row: close.match(row) is None)
        info = re.match(r"[\w+#-]*", fence["info"])
        return Unit(tuple(dedented(lines[at + 1 : stop])), info.group() if info else ""), stop + 1
    if (heading := _HEADING.match(line)) is not None:
        return heading_unit(heading["text"]), at + 1
    if line.lstrip().startswith("|"):
        stop = _stop(lines, at, lambda row: row.lstrip().startswith("|"))
        if stop > at + 1 and _TABLE_RULE.match(lines[at + 1]):
            return Unit(tuple(inert(row) for row in lines[at:stop]), table=True), stop
        return Unit(tuple(lines[at:stop]), "text"), stop
    if indented and line.startswith(("    ", "\t")):
        stop = _stop(lines, at, lambda row: row.startswith(("    ", "\t")))
        return Unit(tuple(dedented(lines[at:stop])), "text"), stop
    return None


def _stop(lines: Sequence[str], start: int, goes_on: Callable[[str], bool]) -> int:
    return next((at for at in range(start, len(lines)) if not goes_on(lines[at])), len(lines))


def _end_of_what_began_before(lines: Sequence[str], title: str) -> int:
    """Behind the row that closes front matter, or a fence that began before these lines, a later part; 0 without."""
    if lines[0].rstrip() == "---":
        return _stop(lines, 1, lambda row: row.rstrip() != "---") + 1 if "---" in lines[1:] else 1
    part = _PART.search(title)
    if part is None or part.group(1) == "1":
        return 0
    fences = [(at, fence["info"].strip()) for at, line in enumerate(lines) if (fence := _FENCE.match(line))]
    if fences and not fences[0][1] and (len(fences) % 2 or any(info for _, info in fences[1::2])):
        return fences[0][0] + 1
    return 0


def _without_markup(text: str) -> str:
    text = _LINK_WITHIN.sub(r"\1", _IMAGE.sub(r"\1", _BADGE.sub("", text)))
    text = _OPEN_TAG.sub(r"\\<", _MARKUP.sub("", text))
    return _NUMBER.sub(r"\\[\1\\]", text)


def _letters(text: str) -> str:
    return " ".join(re.findall(r"\w+", text)).lower()
