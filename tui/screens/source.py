"""A source's text, with the lines around it."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import ClassVar

from pygments.lexers import find_lexer_class_for_filename  # type: ignore[import-untyped]
from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import ScrollableContainer, Vertical
from textual.content import Content
from textual.highlight import highlight
from textual.screen import ModalScreen
from textual.widgets import Footer, Static

from ragpilot.types import Source, SourceText
from tui import keys
from tui.backend import Backend
from tui.messages import SourceArrived, Trouble, as_error
from tui.text import clean_line, clean_lines, plain
from tui.widgets.refusal import Failure
from tui.widgets.sources import place

CONTEXT_LINES = 10
_LOAD = "load"


class SourceScreen(ModalScreen[None]):
    """Opens at once and fills when the text has come."""

    CSS_PATH = "source.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*keys.CLOSE]

    def __init__(self, backend: Backend, source: Source, corpus: str | None) -> None:
        super().__init__()
        self._backend = backend
        self._source = source
        self._corpus = corpus
        self._code = Static("Loading …", markup=False, id="code")
        self._scroll = ScrollableContainer(self._code, id="scroll")

    def compose(self) -> ComposeResult:
        """Where it is, what it is, the text."""
        source = self._source
        about = [clean_line(part) for part in (source.symbol or source.title, source.source_type) if part]
        if source.score:
            about.append(f"score {source.score:.4f}")
        with Vertical(id="frame"):
            yield Static(plain(place(source), "bold"), markup=False, id="place")
            yield Static(plain("  ·  ".join(about), "$muted"), markup=False, id="about")
            yield self._scroll
            yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        """Ask for the text."""
        self._scroll.focus()
        self._load()

    @work(exclusive=True, group=_LOAD, exit_on_error=False)
    async def _load(self) -> None:
        try:
            text = await self._backend.source(self._source.id, self._corpus, CONTEXT_LINES)
        except Exception as error:  # noqa: BLE001 - the screen must not wait for what will not come
            self.post_message(Trouble(as_error(error)))
        else:
            self.post_message(SourceArrived(text))

    @on(SourceArrived)
    def _show(self, event: SourceArrived) -> None:
        event.stop()
        code, at = render_source(event.text)
        self._code.update(code)
        if event.text.source.stale:
            self.query_one("#about", Static).update(
                plain("The file has changed since it was indexed: this is the indexed text.", "$text-warning")
            )
        self._scroll.scroll_to(y=max(at - 3, 0), animate=False)

    @on(Trouble)
    async def _fail(self, event: Trouble) -> None:
        event.stop()
        self._code.display = False
        await self._scroll.mount(Failure(event.error, "Esc closes.", title="The source cannot be shown"))


def render_source(text: SourceText) -> tuple[Content, int]:
    """Numbered lines in the colours of their language, the source's own set off from those around it.

    Returns the content, and the index of the source's first line in it.
    """
    source = text.source
    before = clean_lines(text.before) if text.first_line < source.start_line else []
    after = clean_lines(text.after) if text.after else []
    own = clean_lines(text.text.rstrip("\r\n"))
    code = "\n".join([*before, *own, *after]).expandtabs(4)
    lines = highlight(code, language=_language(source.file_path)).split("\n", allow_blank=True)
    width = len(str(text.first_line + len(lines)))
    first, last = len(before), len(before) + len(own)
    rows = []
    for index, line in enumerate(lines):
        inside = first <= index < last
        number = f"{text.first_line + index:>{width}} "
        gutter = Content.assemble(
            (number, "$text-accent" if inside else "$faint"), ("▎ " if inside else "  ", "$accent")
        )
        rows.append(Content.assemble(gutter, line) if inside else Content.assemble(gutter, line).stylize("dim"))
    return Content("\n").join(rows), first


def _language(path: str) -> str:
    lexer = find_lexer_class_for_filename(PurePosixPath(path).name)
    return lexer.aliases[0] if lexer is not None and lexer.aliases else "text"
