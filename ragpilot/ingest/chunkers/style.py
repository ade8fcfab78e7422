"""Style sheets by rule: CSS, SCSS, Less. Braces are counted, past strings, comments and interpolations."""

from __future__ import annotations

import re

from ragpilot.ingest.chunkers.lines import Cost, Lines
from ragpilot.ingest.chunkers.parts import Part, chunk_parts, fill
from ragpilot.ingest.chunkers.spans import Span

_TOKENS = re.compile(
    r"(?P<comment>/\*.*?(?:\*/|\Z)|(?<!:)//[^\n]*)"
    r"|(?P<string>\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|url\([^\n)]*\)|#\{[^\n{}]*\})"
    r"|(?P<mark>[{};\n])",
    re.DOTALL,
)
_LONGEST_NAME = 80


def chunk_style(path: str, lines: Lines, max_chars: int) -> list[Span]:
    """A style sheet as spans; a rule's symbol is its selector, an at-rule's its own words."""
    parts, cost = read_rules(lines)
    return chunk_parts(path, lines, parts, cost, max_chars)


def read_rules(lines: Lines) -> tuple[list[Part], Cost]:
    """The outermost rules and statements with the comments right above them, and what it costs to cut before a row."""
    text = lines.joined()
    depths = [0] * len(lines)
    comments: set[int] = set()
    parts: list[Part] = []
    head: list[str] = []
    begun, name = -1, ""
    row = depth = position = 0
    for token in _TOKENS.finditer(text):
        before = text[position : token.start()]
        position = token.end()
        kind, found = token.lastgroup, token.group()
        if begun < 0 and (before.strip() or kind == "string"):
            begun = row
        head.append(before)
        if kind == "comment":
            last = row + found.count("\n")
            if begun < 0 and not before.strip():
                comments.update(range(row, last + 1))
            for inner in range(row + 1, last + 1):
                depths[inner] = depth + 3
            row = last
        elif kind == "string":
            head.append(found)
        elif found == "\n":
            row += 1
            depths[row] = depth
            head.append(" ")
        elif found == "{":
            if depth == 0:
                begun, name = (row if begun < 0 else begun), "".join(head)
            depth += 1
            head = []
        else:
            depth = max(depth - (found == "}"), 0)
            if depth == 0 and begun >= 0:
                parts.append(_part(begun, row, name or "".join(head)))
                begun, name = -1, ""
            head = []
    return _with_comments(lines, parts, comments), _cost(lines, depths)


def _part(start: int, end: int, head: str) -> Part:
    name = " ".join(head.split())
    return Part(start, end, name if len(name) <= _LONGEST_NAME else name[:_LONGEST_NAME].rpartition(",")[0])


def _with_comments(lines: Lines, parts: list[Part], comments: set[int]) -> list[Part]:
    found: list[Part] = []
    floor = 0
    for part in parts:
        start = part.start
        while start > floor and start - 1 in comments:
            start -= 1
        found.append(Part(start, part.end, part.name))
        floor = part.end + 1
    return fill(lines, found)


def _cost(lines: Lines, depths: list[int]) -> Cost:
    def cost(row: int) -> float:
        closes = 5.0 if lines.rows[row].lstrip().startswith("}") else 0.0
        return 2.0 * depths[row] + closes - (0.5 if row and lines.blank(row - 1) else 0.0)

    return cost
