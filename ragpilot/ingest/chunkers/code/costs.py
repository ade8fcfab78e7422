"""Where an oversized piece of code may be cut: at statements, the outermost first."""

from __future__ import annotations

from tree_sitter import Node

from ragpilot.ingest.chunkers.code.outline import last_row
from ragpilot.ingest.chunkers.lines import Cost, Lines

_NOWHERE = 40.0
"""The cost of a row where no node begins."""
_INSIDE = 12
_INSIDE_PARAGRAPH = 5.5
"""What it costs more to cut a string or a comment than to cut at its level; less at its blank rows."""
_CLOSER = 25.0
_AFTER_COMMENT = 12.0
_BETWEEN_COMMENTS = 6.0
_CLOSING = ("}", ")", "]", "end", "else", "elif", "catch", "finally", "fi", "done", "esac", "then", "{")


def statement_cost(root: Node, lines: Lines) -> Cost:
    """Depth of the outermost node that begins at a row; blank rows before it invite, a comment before it forbids."""
    depths, inside, comments = _depths(root, lines)

    def cost(row: int) -> float:
        blank_before = row > 0 and lines.blank(row - 1)
        value = depths.get(row, _NOWHERE) - (0.5 if blank_before else 0.0)
        if blank_before and row in inside:
            value -= _INSIDE_PARAGRAPH
        elif lines.rows[row].lstrip().startswith(_CLOSING):
            value += _CLOSER
        elif row - 1 in comments:
            value += _BETWEEN_COMMENTS if row in comments else _AFTER_COMMENT
        return value

    return cost


def _depths(root: Node, lines: Lines) -> tuple[dict[int, int], set[int], set[int]]:
    """For each row the depth of the outermost node there, rows inside one token, and rows of comments.

    A cursor and not recursion, and not into what stands on one row: as many steps as there are rows, about.
    """
    depths: dict[int, int] = {}
    inside: set[int] = set()
    comments: set[int] = set()
    cursor = root.walk()
    depth = 0
    while True:
        node = cursor.node
        assert node is not None, "a cursor stands on a node"  # noqa: S101
        start, end = node.start_point.row, last_row(node, lines)
        if node.is_named:
            depths.setdefault(start, depth)
            if "comment" in node.type:
                comments.update(range(start, end + 1))
        if end > start:
            if cursor.goto_first_child():
                depth += 1
                continue
            for row in range(start + 1, end + 1):
                if row not in depths:
                    depths[row] = depth + _INSIDE
                    inside.add(row)
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return depths, inside, comments
            depth -= 1
