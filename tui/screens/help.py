"""Keys, and what the marks mean."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Footer, Static

from tui import keys
from tui.keys import Keymap

MARKS = (
    ("[1]", "a number in an answer names the source of that number; a click opens it"),
    ("0.71", "a source's score: the cosine of question and passage, at most 1"),
    ("changed", "the file is no longer what was indexed; index again"),
    ("Extract", "no language model speaks: passages are quoted from the sources"),
    ("Not found", "nothing indexed is close enough; what came closest is no source"),
)


class HelpScreen(ModalScreen[None]):
    """One page; it scrolls where the terminal is small."""

    CSS_PATH = "help.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*keys.CLOSE]

    def __init__(self, keymap: Keymap) -> None:
        super().__init__()
        self._keymap = keymap

    def compose(self) -> ComposeResult:
        """Keys by where they work, then the marks."""
        with Vertical(id="frame"):
            yield Static("RagPilot: keys and marks", markup=False, id="title")
            with VerticalScroll() as page:
                page.can_focus = True
                for title, bindings in keys.SECTIONS:
                    rows = [
                        (self._keymap.names(binding.id), binding.tooltip or binding.description)
                        for binding in bindings
                        if binding.id
                    ]
                    yield Static(_table(title, rows), markup=False, classes="section")
                yield Static(_table("Marks", MARKS), markup=False, classes="section")
            yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        """Be ready to scroll."""
        self.query_one(VerticalScroll).focus()


def _table(title: str, rows: list[tuple[str, str]] | tuple[tuple[str, str], ...]) -> Content:
    lines = [Content.styled(title, "bold")]
    lines += [Content.assemble((f"  {key:<22}", "$text-accent"), text) for key, text in rows]
    return Content("\n").join(lines)
