"""Lists of an answer: one widget a list where it holds words alone, a widget an item where it holds more.

A screen is laid out anew with every piece of an answer, and that costs by the number of widgets: four for each item of
a list would hold up the keyboard long before an answer is long.
"""

from __future__ import annotations

from dataclasses import dataclass

from rich.cells import cell_len
from textual.app import ComposeResult, RenderResult
from textual.containers import HorizontalGroup, VerticalGroup
from textual.content import Content
from textual.geometry import Size
from textual.widgets import _markdown as blocks  # the classes that Markdown.BLOCKS names; they have no public home
from textual.widgets.markdown import MarkdownBlock

_LEAST_WIDTH = 8
"""Cells that words keep beside their bullets, however deep the list."""


@dataclass(frozen=True, slots=True)
class Row:
    """A paragraph in a list: how far it is set in, the bullet before it (blanks, if it is not the first), its words."""

    indent: int
    bullet: str
    words: Content

    def lines(self, width: int) -> list[Content]:
        """Wrapped to ``width`` cells, each line set in behind the bullet."""
        behind = self.indent + cell_len(self.bullet)
        wrapped = self.words.wrap(max(width - behind, _LEAST_WIDTH)) or [Content()]
        first = Content.assemble(" " * self.indent, (self.bullet, "$text-primary"), wrapped[0])
        return [first, *(Content.assemble(" " * behind, line) for line in wrapped[1:])]


class AnswerList(blocks.MarkdownList):
    """A list that is drawn as lines of text; with a fence, a quote or a table in it, it is made of widgets."""

    DEFAULT_CSS = """
    AnswerList { margin: 0 0 1 0; }
    AnswerList AnswerList { margin: 0; }
    """

    flat: tuple[Row, ...] | None = None
    """The list as rows of words; None where it is made of widgets."""

    def items(self) -> list[tuple[str, blocks.MarkdownListItem]]:
        """Each item with its bullet."""
        return [(item.bullet, item) for item in self._blocks if isinstance(item, blocks.MarkdownListItem)]

    def rows(self, indent: int = 0) -> list[Row] | None:
        """The list, and those in it, as rows; None where it holds more than words."""
        rows: list[Row] = []
        for bullet, item in self.items():
            held = item._blocks  # noqa: SLF001 - as the list's own class does
            if not held or isinstance(held[0], AnswerList):
                rows.append(Row(indent, bullet, Content()))
            for at, block in enumerate(held):
                if isinstance(block, blocks.MarkdownParagraph):
                    rows.append(Row(indent, " " * cell_len(bullet) if at else bullet, block._content))  # noqa: SLF001
                elif isinstance(block, AnswerList) and (inner := block.rows(indent + cell_len(bullet))) is not None:
                    rows += inner
                else:
                    return None
        return rows

    def compose(self) -> ComposeResult:
        """Nothing, or a line of widgets an item."""
        rows = self.rows()
        self.flat = None if rows is None else tuple(rows)
        if self.flat is None:
            for symbol, item in self.items():
                bullet = blocks.MarkdownBullet()
                bullet.symbol = symbol
                yield HorizontalGroup(bullet, VerticalGroup(*item._blocks))  # noqa: SLF001
        self._blocks.clear()

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """As many lines as the words take."""
        if self.flat is None:
            return super().get_content_height(container, viewport, width)
        return len(self._lines(width))

    def render(self) -> RenderResult:
        """The lines in the width there is."""
        if self.flat is None:
            return super().render()
        return Content("\n").join(self._lines(self.size.width))

    def _lines(self, width: int) -> list[Content]:
        return [line for row in self.flat or () for line in row.lines(width)]

    async def _update_from_block(self, block: MarkdownBlock) -> None:
        rows = block.rows() if type(block) is type(self) and isinstance(block, AnswerList) else None
        if self.flat is None or rows is None:
            await super()._update_from_block(block)
            return
        self.flat = tuple(rows)
        self._copy_context(block)
        self.refresh(layout=True)


class BulletList(AnswerList, blocks.MarkdownBulletList):
    """A list with bullets."""


class OrderedList(AnswerList, blocks.MarkdownOrderedList):
    """A list with numbers, counted on from the first and set right to the widest."""

    def items(self) -> list[tuple[str, blocks.MarkdownListItem]]:
        """Each item with its number."""
        items = [item for _, item in super().items()]
        first = int(items[0].bullet) if items and items[0].bullet.isdigit() else 1
        numbers = [f"{number}. " for number in range(first, first + len(items))]
        width = max(map(len, numbers), default=0) + 1
        return [(number.rjust(width), item) for number, item in zip(numbers, items, strict=True)]
