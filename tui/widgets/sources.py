"""The sources of an answer, beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from rich.cells import cell_len
from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import ListItem, ListView, Static

from ragpilot.types import Source
from tui import keys
from tui.messages import SourceOpened
from tui.text import clean_line, count, shorten_end, shorten_start

_LEAST_NAME: Final = 8
"""Cells that a name beside a path must have to be worth showing."""
_NARROW: Final = 32
STALE: Final = "changed"
"""Said of a source whose file is no longer what was indexed."""


def place(source: Source) -> str:
    """Path and lines, as editors take them: ``ragpilot/prompting.py:40-78``."""
    lines = f"{source.start_line}" if source.start_line == source.end_line else f"{source.start_line}-{source.end_line}"
    return f"{clean_line(source.file_path)}:{lines}"


class SourceRow(ListItem):
    """Number, path and lines, score, symbol, and the mark of a changed file: on two lines, or on one if that is all."""

    def __init__(self, number: int, source: Source) -> None:
        super().__init__(classes="-cited" if source.cited else "")
        self.number = number
        self.source = source

    def render(self) -> Content:
        """What fits: of a path its end, of a name its beginning."""
        source, width = self.source, max(self.size.width, 12)
        number = f"[{self.number}]".rjust(4) + " "
        mark = (f" {STALE}" if width >= _NARROW else " !") if source.stale else ""
        score = f" {source.score:.2f}"
        name = clean_line(source.symbol or source.title)
        one_line = self.size.height < 2
        room = width - len(number) - len(score) - (len(mark) if one_line else 0)
        path = shorten_start(place(source), room)
        first = [
            (number, "$text-accent bold" if source.cited else "$muted"),
            (path, "bold" if source.cited else ""),
        ]
        room -= cell_len(path)
        if one_line:
            beside = shorten_end(f"  {name}", room) if room > _LEAST_NAME else ""
            first += [(beside, "$muted"), (mark, "$text-warning")]
            room -= cell_len(beside)
        first += [(" " * max(room, 0), ""), (score, "$text-accent" if source.cited else "$muted")]
        if one_line:
            return Content.assemble(*first)
        below = shorten_end(name, width - len(number) - len(mark))
        second = [(" " * len(number), ""), (below, "$muted"), (mark, "$text-warning")]
        return Content.assemble(*first, "\n", *second)


class SourcesPanel(Vertical):
    """The sources of one exchange as a list; hidden while there are none."""

    def __init__(self) -> None:
        super().__init__()
        self._title = Static(markup=False, classes="title")
        self._list = SourceList()
        self.display = False

    def compose(self) -> ComposeResult:
        """A title line and the list."""
        yield self._title
        yield self._list

    async def show(self, sources: Sequence[Source]) -> None:
        """Replace what is shown."""
        self.display = bool(sources)
        cited = sum(source.cited for source in sources)
        self._title.update(
            Content.assemble(("Sources", "bold"), (f"  {cited} of {len(sources)} cited", "$muted"))
            if cited
            else Content.assemble((count(len(sources), "source").capitalize(), "bold"))
        )
        await self._list.clear()
        await self._list.extend([SourceRow(number, source) for number, source in enumerate(sources, 1)])
        if sources:
            self._list.index = 0

    def focus_list(self) -> None:
        """Give the list the keyboard."""
        if self.display:
            self._list.focus()

    @property
    def chosen(self) -> Source | None:
        """The source under the cursor."""
        row = self._list.highlighted_child
        return row.source if isinstance(row, SourceRow) and self.display else None

    @on(ListView.Selected)
    def _open(self, event: ListView.Selected) -> None:
        event.stop()
        if isinstance(event.item, SourceRow):
            self.post_message(SourceOpened(event.item.source))


class SourceList(ListView):
    """The list, with its keys."""

    BINDINGS: ClassVar[list[BindingType]] = [*keys.SOURCES]
