"""The block structure of Markdown as far as cutting needs it: headings, fences, tables, HTML, front matter."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum

from ragpilot.ingest.chunkers.lines import Lines
from ragpilot.ingest.chunkers.sections import Heading

_FENCE = re.compile(r"^(?P<indent>\s*)(?P<mark>`{3,}|~{3,})(?P<info>.*)$")
_ATX = re.compile(r"^ {0,3}(?P<level>#{1,6})(?:[ \t]+(?P<text>.*?))?(?:[ \t]+#+)?[ \t]*$")
_SETEXT = re.compile(r"^ {0,3}(?P<mark>=+|-+)[ \t]*$")
_TABLE_RULE = re.compile(r"^[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$")
_HTML = re.compile(r"^ {0,3}</?(?P<tag>[A-Za-z][\w-]*)(?=[\s/>]|$)")
_HTML_UNTIL = {"script": "</script>", "pre": "</pre>", "style": "</style>", "textarea": "</textarea>"}
_RULE = re.compile(r"^ {0,3}(?P<mark>[-*_])(?:[ \t]*(?P=mark)){2,}[ \t]*$")
_ITEM = re.compile(r"^(?P<lead>[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]{1,4})(?=\S)")
_INTERRUPTS = re.compile(r"^ {0,3}(?:[-*+][ \t]+\S|1[.)][ \t]+\S|>)")
"""What ends a paragraph without a blank row: items and quotes, which what follows goes on from, not a heading."""
_NO_PARAGRAPH = re.compile(r"^\s*(?:[-*+>|]|\d+[.)])(?:\s|$)|^ {4}|^\t|^\s*\|")
_INLINE = re.compile(r"!?\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])?|<[^>]+>|\{[#.:][^}]*\}|[`*]|(?<!\w)_+|_+(?!\w)")


_LONGEST_HEADING = 400


class Row(Enum):
    """What a row is to one who may cut before it."""

    TEXT = "text"
    START = "start"
    """The first row of a block that must stay whole if it can."""
    INSIDE = "inside"


@dataclass(slots=True)
class Blocks:
    """A document's headings in order, and for each row what it is."""

    headings: list[Heading] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    heads: dict[int, str] = field(default_factory=dict)
    """For each row of a table below its head, that head with its rule."""


def read_blocks(lines: Lines) -> Blocks:
    """One pass over the rows."""
    blocks = Blocks(rows=[Row.TEXT] * len(lines))
    row = _front_matter(lines, blocks)
    paragraph = -1  # where the paragraph began that the row before belongs to
    lazy = False  # whether the row before is of an item or a quote, which plain text then goes on from
    content = -1  # the column where the text of the list's item begins, inside of which no section is
    while row < len(lines):
        text = lines.rows[row]
        end = _block_end(lines, row)
        if end is not None:
            _mark(blocks, row, end)
            if _is_table(lines, row):
                blocks.heads.update(dict.fromkeys(range(row + 2, end + 1), lines.text(row, row + 1)))
            row, paragraph, lazy = end + 1, -1, False
            continue
        if text.strip():
            content = _item_column(lines, row, content)
        heading = _heading(lines, row, paragraph) if content < 0 or lines.indent(row) < content else None
        if heading is not None:
            blocks.headings.append(heading)
            paragraph, lazy = -1, False
        elif _RULE.match(text):
            paragraph, lazy = -1, False
        elif text.strip() and (lazy or _INTERRUPTS.match(text)):
            paragraph, lazy = -1, True
        elif not text.strip() or (paragraph < 0 and _NO_PARAGRAPH.match(text)):
            paragraph, lazy = -1, False
        elif paragraph < 0:
            paragraph = row
        row += 1
    return blocks


def _item_column(lines: Lines, row: int, content: int) -> int:
    """Where the text of the item begins that a row is in; -1 outside of lists."""
    text = lines.rows[row]
    if 0 <= content <= lines.indent(row):
        return content
    item = _ITEM.match(text) if not _RULE.match(text) else None
    return len(item["lead"].expandtabs(4)) if item is not None else -1


def plain(text: str) -> str:
    """A heading's text without links, code marks, emphasis and attributes."""
    return " ".join(_INLINE.sub(lambda match: match.group(1) or "", text).split())


def _front_matter(lines: Lines, blocks: Blocks) -> int:
    mark = lines.rows[0].rstrip()
    if mark in ("---", "+++"):
        for row in range(1, len(lines)):
            if lines.rows[row].rstrip() == mark:
                _mark(blocks, 0, row)
                return row + 1
    return 0


def _mark(blocks: Blocks, start: int, end: int) -> None:
    blocks.rows[start] = Row.START
    for row in range(start + 1, end + 1):
        blocks.rows[row] = Row.INSIDE


def _heading(lines: Lines, row: int, paragraph: int) -> Heading | None:
    text = lines.rows[row]
    if len(text) > _LONGEST_HEADING:
        return None
    if (atx := _ATX.match(text)) is not None:
        return Heading(row, row, len(atx["level"]), plain(atx["text"] or ""))
    if paragraph >= 0 and (underline := _SETEXT.match(text)) is not None:
        words = plain(" ".join(lines.rows[paragraph:row])[:_LONGEST_HEADING])
        return Heading(paragraph, row, 1 if underline["mark"][0] == "=" else 2, words)
    return None


def _block_end(lines: Lines, row: int) -> int | None:
    """The last row of the fence, HTML block or table that begins at ``row``; None where none begins."""
    text = lines.rows[row]
    if (fence := _FENCE.match(text)) is not None:
        return _fence_end(lines, row, fence)
    if text.lstrip().startswith("<"):
        return _html_end(lines, row)
    if _is_table(lines, row):
        end = row + 1
        while end + 1 < len(lines) and "|" in lines.rows[end + 1]:
            end += 1
        return end
    return None


def _is_table(lines: Lines, row: int) -> bool:
    """Whether a row is the head of a table: a rule stands below it."""
    if "|" not in lines.rows[row] or row + 1 >= len(lines) or _FENCE.match(lines.rows[row]):
        return False
    return "-" in lines.rows[row + 1] and _TABLE_RULE.match(lines.rows[row + 1]) is not None


def _fence_end(lines: Lines, row: int, fence: re.Match[str]) -> int | None:
    mark = fence["mark"]
    if mark[0] == "`" and "`" in fence["info"]:
        return None
    close = re.compile(rf"^\s*{re.escape(mark[0])}{{{len(mark)},}}\s*$")
    for end in range(row + 1, len(lines)):
        if close.match(lines.rows[end]):
            return end
    # A fence without an end runs to the end of the file; deeper in it may be the text of an indented example.
    return len(lines) - 1 if len(fence["indent"].expandtabs(4)) <= 3 else None


def _html_end(lines: Lines, row: int) -> int | None:
    text = lines.rows[row].lstrip()
    if text.startswith("<!--"):
        return _until(lines, row, "-->")
    tag = _HTML.match(lines.rows[row])
    if tag is None:
        return None
    if (mark := _HTML_UNTIL.get(tag["tag"].lower())) is not None:
        return _until(lines, row, mark)
    end = row
    while end + 1 < len(lines) and not lines.blank(end + 1):
        end += 1
    return end


def _until(lines: Lines, row: int, mark: str) -> int:
    for end in range(row, len(lines)):
        if mark in lines.rows[end].lower():
            return end
    return len(lines) - 1
