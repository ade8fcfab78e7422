"""Markdown as answers hold it: the parser, and blocks that stay cheap and literal while text streams in.

Answers are other people's text. HTML stays visible as letters, links are shown in full instead of hiding where they
lead, a bare ``events.py`` is no web address, and ``[1]: …`` at a line's start is no definition that vanishes.
"""

from __future__ import annotations

import re
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.content import Content
from textual.highlight import highlight
from textual.widgets import Markdown, Static
from textual.widgets import _markdown as blocks  # the classes that Markdown.BLOCKS names; they have no public home
from textual.widgets.markdown import MarkdownBlock

from tui.widgets.lists import BulletList, OrderedList

CITATION_SCHEME: Final = "source:"
_CITATION: Final = re.compile(r"\[(\d{1,3})\]")
_HIGHLIGHT_LIMIT: Final = 6_000
"""Characters of a fence that are coloured; a longer one is shown plain, since each new token colours it anew."""
_CELL_STYLES: Final = {".strong": "bold", ".em": "italic", ".s": "strike", ".code_inline": "bold"}


def make_parser() -> MarkdownIt:
    """A CommonMark parser with tables and strikethrough, made for answers (see the module)."""
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    parser.disable(["reference", "link", "image", "autolink", "html_block", "html_inline"])
    parser.inline.ruler.before("emphasis", "citation", _citation)
    return parser


def _citation(state: StateInline, silent: bool) -> bool:
    """``[3]`` becomes a link to source 3, unless it stands behind something that it may be an index of."""
    match = _CITATION.match(state.src, state.pos, state.posMax)
    before = state.src[state.pos - 1 : state.pos]
    behind_another = not state.pending and bool(state.tokens) and state.tokens[-1].type == "link_close"
    if match is None or before.isalnum() or (before and before in "_)]" and not behind_another):
        return False
    if not silent:
        opening = state.push("link_open", "a", 1)
        opening.attrs = {"href": f"{CITATION_SCHEME}{match.group(1)}"}
        state.push("text", "", 0).content = match.group(0)
        state.push("link_close", "a", -1)
    state.pos = match.end()
    return True


def cited_number(href: str) -> int | None:
    """The source's number in the target of a citation; None for any other target."""
    number = href.removeprefix(CITATION_SCHEME)
    return int(number) if href.startswith(CITATION_SCHEME) and number.isascii() and number.isdigit() else None


class CodeFence(blocks.MarkdownFence):
    """A fence whose language is taken at its word: guessing one costs more than drawing the code."""

    @classmethod
    def highlight(cls, code: str, language: str, ansi: bool = False, dark: bool = False) -> Content:  # noqa: ARG003
        """The code in colours; plain when it is long or its language unknown."""
        name = language.split(maxsplit=1)[0] if language.strip() else "text"
        if name == "text" or len(code) > _HIGHLIGHT_LIMIT:
            return Content(code).stylize_before("$text")
        return highlight(code, language=name)


class PlainTable(blocks.MarkdownTable):
    """A table in one widget: a widget a cell, with its text as a markup tooltip, is neither cheap nor literal."""

    def compose(self) -> ComposeResult:
        """One Static that draws the whole table."""
        yield Static(self._draw(self), markup=False)

    def _draw(self, block: blocks.MarkdownTable) -> Table:
        headers, rows = block._get_headers_and_rows()  # noqa: SLF001 - one class in two halves
        table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, border_style="dim", header_style="bold")
        for header in headers:
            table.add_column(_cell(header), overflow="fold")
        for row in rows:
            table.add_row(*map(_cell, row))
        return table

    async def _update_from_block(self, block: MarkdownBlock) -> None:
        if isinstance(block, PlainTable):
            self.query_one(Static).update(self._draw(block))
        else:
            await super()._update_from_block(block)


def _cell(content: Content) -> Text:
    text = Text(content.plain)
    for span in content.spans:
        if isinstance(span.style, str) and span.style in _CELL_STYLES:
            text.stylize(_CELL_STYLES[span.style], span.start, span.end)
    return text


class AnswerMarkdown(Markdown):
    """Markdown made of the blocks above. No link is ever opened: a citation is reported, all else is text."""

    def __init__(self) -> None:
        super().__init__(parser_factory=make_parser, open_links=False)

    def get_block_class(self, block_name: str) -> type[MarkdownBlock]:
        """The block of this module where there is one, else Textual's own."""
        return _BLOCKS.get(block_name) or super().get_block_class(block_name)


_BLOCKS: Final[dict[str, type[MarkdownBlock]]] = {
    "fence": CodeFence,
    "code_block": CodeFence,
    "table_open": PlainTable,
    "bullet_list_open": BulletList,
    "ordered_list_open": OrderedList,
}
