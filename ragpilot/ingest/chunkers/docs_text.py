"""reStructuredText, AsciiDoc, Org and LaTeX, cut at headings; other prose at blank rows."""

from __future__ import annotations

import re

from ragpilot.ingest.chunkers.blank_lines import chunk_lines
from ragpilot.ingest.chunkers.lines import Cost, Lines
from ragpilot.ingest.chunkers.sections import Heading, chunk_sections, split_sections
from ragpilot.ingest.chunkers.spans import Span

_UNDERLINE = re.compile(r"^([!-/:-@\[-`{-~])\1{2,}\s*$")
_SHORTEST_UNDERLINE = 4
_LONGEST_HEADING = 200
_ROLE = re.compile(r":[\w:+.-]+:(?=`)|`+|\*+|(?<=\w)_+(?=\s|$)|\s*<[^<>`]*>(?=`)")
_ORG_BLOCK = re.compile(r"[ \t]{0,40}#\+(?:begin|(?P<end>end))_(?P<name>\w{1,40})", re.IGNORECASE)
_ORG_HEADING = re.compile(r"^(?P<mark>\*{1,8})[ \t]+(?P<text>\S.*)")
_TEX_HEADING = re.compile(r"^\s{0,8}\\(?P<mark>part|chapter|(?:sub){0,2}section|paragraph)\*?\{(?P<text>[^{}]*)\}")
_TEX_LEVELS = {"part": 1, "chapter": 2, "section": 3, "subsection": 4, "subsubsection": 5, "paragraph": 6}
_ADOC_HEADING = re.compile(r"^(=|#){1,6}[ \t]+\S")
_ADOC_UNDERLINES = "=-~^+"
_ADOC_NO_TITLE = re.compile(r"[\s.\[|:*=-]|//")
_ADOC_FENCE = re.compile(r"^(?:(-|\.|=|\*|_|\+|/)\1{3,}|\|===|```.*|--)\s*$")
_ADOC_MARKUP = re.compile(r"[`*]+|\{[\w-]+\}|<<[^>]*>>|\[\[[^\]]*\]\]|(?<!\w)_|_(?!\w)")
_ITEM = re.compile(r"^\s*(?:[-*+•]|\d+[.)]|\.\.)\s")


def chunk_docs_text(path: str, lines: Lines, max_chars: int) -> list[Span]:
    """Prose that is no Markdown, by its file's ending."""
    name = path.lower()
    if name.endswith((".rst", ".rest")):
        headings, fenced = _rst_headings(lines), set[int]()
    elif name.endswith((".adoc", ".asciidoc", ".asc")):
        headings, fenced = _adoc_headings(lines)
    elif name.endswith(".org"):
        fenced = {row for row, inside in enumerate(_rows_in_blocks(lines)) if inside}
        headings = [one for one in _marked_headings(lines, _ORG_HEADING) if one.start not in fenced]
    elif name.endswith(".tex"):
        headings, fenced = _marked_headings(lines, _TEX_HEADING), set[int]()
    else:
        return chunk_lines(path, lines, max_chars)
    return chunk_sections(path, lines, split_sections(lines, headings), _cost(lines, fenced), max_chars)


def _rst_headings(lines: Lines) -> list[Heading]:
    """Titles with an underline, with or without an overline; a style's level is the order of its first use."""
    headings: list[Heading] = []
    styles: list[tuple[str, bool]] = []
    row = 0
    while row + 1 < len(lines):
        over = _underline(lines, row) if row + 2 < len(lines) else ""
        title = row + 1 if over and _underline(lines, row + 2) == over else row
        overlined = title > row
        under = _underline(lines, title + 1)
        if under and _is_title(lines, title, overlined=overlined):
            style = (under, overlined)
            if style not in styles:
                styles.append(style)
            text = " ".join(_ROLE.sub("", lines.rows[title]).split())
            headings.append(Heading(row, title + 1, styles.index(style) + 1, text))
            row = title + 2
        else:
            row += 1
    return headings


def _underline(lines: Lines, row: int) -> str:
    """The character that a row repeats; empty when it is no adornment."""
    text = lines.rows[row]
    return text[0] if len(text) <= _LONGEST_HEADING and _UNDERLINE.match(text) else ""


def _is_title(lines: Lines, row: int, *, overlined: bool) -> bool:
    text, underline = lines.rows[row].rstrip(), lines.rows[row + 1].rstrip()
    if not text.strip() or len(text) > _LONGEST_HEADING or _UNDERLINE.match(text):
        return False
    if len(underline) < min(len(text), _SHORTEST_UNDERLINE):
        return False
    return overlined or (not text[0].isspace() and (row == 0 or lines.blank(row - 1)))


def _adoc_headings(lines: Lines) -> tuple[list[Heading], set[int]]:
    """``==`` headings outside delimited blocks, and the rows inside such blocks."""
    headings: list[Heading] = []
    fenced: set[int] = set()
    fence = ""
    for row, text in enumerate(lines.rows):
        mark = text.rstrip()
        if fence:
            fenced.add(row)
            fence = "" if mark == fence else fence
        elif (level := _adoc_underline(lines, row)) > 0:
            headings.append(Heading(row - 1, row, level, _adoc_plain(lines.rows[row - 1])))
        elif _ADOC_FENCE.match(mark):
            fence = "```" if mark.startswith("```") else mark
        elif len(mark) <= _LONGEST_HEADING and (heading := _ADOC_HEADING.match(mark)):
            level = len(mark) - len(mark.lstrip(heading.group(1)))
            closed = mark[level:].removesuffix(mark[:level])  # == Closed ==
            headings.append(Heading(row, row, level, _adoc_plain(closed)))
    return headings, fenced


def _adoc_plain(text: str) -> str:
    return " ".join(_ADOC_MARKUP.sub("", text).split())


def _adoc_underline(lines: Lines, row: int) -> int:
    """The level of the title that a row underlines, as long as it but for one character; 0 where it does not."""
    mark = lines.rows[row].rstrip()
    if row == 0 or len(mark) < _SHORTEST_UNDERLINE or len(mark) > _LONGEST_HEADING or mark.strip(mark[0]):
        return 0
    title = lines.rows[row - 1].rstrip()
    if abs(len(title) - len(mark)) > 1 or _ADOC_NO_TITLE.match(title) or not any(map(str.isalpha, title)):
        return 0
    if row > 1 and not lines.blank(row - 2) and not lines.rows[row - 2].startswith("["):
        return 0
    return _ADOC_UNDERLINES.find(mark[0]) + 1


def _marked_headings(lines: Lines, pattern: re.Pattern[str]) -> list[Heading]:
    """Headings that a mark at the beginning of their row makes, by its length or its name."""
    headings: list[Heading] = []
    for row, text in enumerate(lines.rows):
        if len(text) <= _LONGEST_HEADING and (match := pattern.match(text)) is not None:
            level = _TEX_LEVELS.get(match["mark"], len(match["mark"]))
            headings.append(Heading(row, row, level, " ".join(match["text"].split())))
    return headings


def _rows_in_blocks(lines: Lines) -> list[bool]:
    """For each row of an Org file, whether it is within ``#+BEGIN_…`` and ``#+END_…``."""
    inside, found = "", list[bool]()
    for text in lines.rows:
        mark = _ORG_BLOCK.match(text)
        if mark is not None and mark["end"] and mark["name"].lower() == inside:
            inside = ""
        found.append(bool(inside))
        if mark is not None and not mark["end"] and not inside:
            inside = mark["name"].lower()
    return found


def _cost(lines: Lines, fenced: set[int]) -> Cost:
    """Best at paragraphs, worse inside indented or delimited blocks."""

    def cost(row: int) -> float:
        if row in fenced:
            return 12.0
        indented = 3.0 if lines.indent(row) else 0.0
        if row and lines.blank(row - 1):
            return indented
        return indented + (1.5 if _ITEM.match(lines.rows[row]) else 5.0)

    return cost
