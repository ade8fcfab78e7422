"""Markdown, cut at headings; fences, tables and HTML blocks stay whole when they fit.

A table that does not has its head on every piece.
"""

from __future__ import annotations

import re

from ragpilot.ingest.chunkers.lines import Cost, Lines
from ragpilot.ingest.chunkers.markdown_blocks import Blocks, Row, read_blocks
from ragpilot.ingest.chunkers.sections import chunk_sections, split_sections
from ragpilot.ingest.chunkers.spans import Span

_LARGEST_HEAD = 3
"""A table's head is not repeated where it takes more than this part of a piece."""
_ITEM = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s")


def chunk_markdown(path: str, lines: Lines, max_chars: int) -> list[Span]:
    """A Markdown document as spans."""
    blocks = read_blocks(lines)
    sections = split_sections(lines, blocks.headings)

    def table_head(row: int) -> str:
        head = blocks.heads.get(row, "")
        return head if len(head) <= max_chars // _LARGEST_HEAD else ""

    return chunk_sections(path, lines, sections, _cost(lines, blocks), max_chars, table_head)


def _cost(lines: Lines, blocks: Blocks) -> Cost:
    def cost(row: int) -> float:
        before = row - 1
        while before > 0 and lines.blank(before):
            before -= 1
        after_blank = before < row - 1
        if blocks.rows[row] is Row.INSIDE:
            return 12.0 if after_blank else 14.0
        introduced = 2.0 if blocks.rows[row] is Row.START and lines.rows[before].rstrip().endswith(":") else 0.0
        if _ITEM.match(lines.rows[row]):
            return 1.0 + (1.0 if lines.indent(row) else 0.0)
        if after_blank:
            return introduced + (1.5 if lines.indent(row) else 0.0)
        return 4.0 + introduced

    return cost
