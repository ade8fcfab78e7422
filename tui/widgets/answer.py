"""One answer on the screen, while it streams and when it is whole."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import ClassVar, Final

from textual.containers import Vertical
from textual.content import Content
from textual.timer import Timer
from textual.widgets import Markdown, Static
from textual.widgets.markdown import MarkdownStream

from tui.text import clean
from tui.widgets.blocks import AnswerMarkdown

_RICH_CHARACTERS: Final = 20_000
_RICH_LINES: Final = 150
"""Lines outside fences: each may be a list item or a table row, and those are what takes time to draw."""
_PIECE_CHARACTERS: Final = 4_000
_FENCES: Final = ("```", "~~~")


class Answer(Vertical):
    """Text that arrives in pieces of any size and is drawn as Markdown a few times a second.

    Drawing costs more the longer the text, so what stands past a limit (some 4,000 words, or 150 lines of lists
    and tables) is shown as plain text, in parts of bounded size: no answer, however long, holds up the keyboard.
    ``text`` is always the whole answer as it came.
    """

    PACE: ClassVar[float] = 0.08
    """Seconds between two drawings of a short answer; of a longer one it is more, since drawing takes longer."""

    def __init__(self) -> None:
        super().__init__()
        self.text = ""
        self._markdown = AnswerMarkdown()
        self._stream: MarkdownStream | None = None
        self._timer: Timer | None = None
        self._pending = ""
        self._rich = ""
        self._lines = 0
        self._fenced = False
        self._full = False
        self._piece: Static | None = None
        self._piece_text = ""
        self._drawing = asyncio.Lock()

    def compose(self) -> list[Markdown]:
        """The Markdown; plain parts are mounted behind it when they are needed."""
        return [self._markdown]

    def feed(self, text: str) -> None:
        """Take the next piece of the answer."""
        self.text += text
        self._pending += text
        if self._timer is None:
            self._timer = self.set_timer(self.PACE * (1 + len(self._rich) / 4_000 + self._lines / 30), self._draw)

    async def settle(self) -> None:
        """The answer is whole, or will not go on: draw it once more from its full text."""
        if self._timer is not None:
            self._timer.stop()
        try:
            await self._draw()
        finally:
            await self._stop_stream()
        await self._markdown.update(self._rich)

    async def reset(self) -> None:
        """Empty again, for another attempt."""
        await self.settle()
        self.text = self._pending = self._rich = self._piece_text = ""
        self._lines, self._fenced, self._full, self._piece = 0, False, False, None
        await self.query_children(Static).remove()
        await self._markdown.update("")

    async def on_unmount(self) -> None:
        """Leave no task behind."""
        await self._stop_stream()

    async def _stop_stream(self) -> None:
        if self._stream is not None:
            stream, self._stream = self._stream, None
            with suppress(Exception):  # a step of the drawing failed; the full drawing behind it shows everything
                await stream.stop()

    async def _draw(self) -> None:
        async with self._drawing:
            await self._draw_pending()

    async def _draw_pending(self) -> None:
        self._timer = None
        text, self._pending = clean(self._pending), ""
        rich, plain = self._divide(text)
        if rich:
            self._rich += rich
            if self._stream is None:
                self._stream = Markdown.get_stream(self._markdown)
            await self._stream.write(rich)
        if plain:
            await self._append_plain(plain)

    def _divide(self, text: str) -> tuple[str, str]:
        """What of ``text`` may still become Markdown, and what must stay plain; cut at a line's end if possible."""
        if self._full:
            return "", text
        room = max(_RICH_CHARACTERS - len(self._rich), 0)
        begun = self._rich[self._rich.rfind("\n") + 1 :]  # a line may come in several pieces
        end = 0
        for line in text[:room].splitlines(keepends=True):
            if not line.endswith("\n"):
                break
            end += len(line)
            whole, begun = (begun + line).strip(), ""
            if whole.startswith(_FENCES):
                self._fenced = not self._fenced
            elif whole and not self._fenced:
                self._lines += 1
            if self._lines >= _RICH_LINES:
                self._full = True
                return text[:end], text[end:]
        if len(text) < room:
            return text, ""
        self._full = True
        return text[: end or room], text[end or room :]

    async def _append_plain(self, text: str) -> None:
        while text:
            if self._piece is None or len(self._piece_text) >= _PIECE_CHARACTERS:
                self._piece, self._piece_text = Static(markup=False, classes="plain"), ""
                await self.mount(self._piece)
            room = _PIECE_CHARACTERS - len(self._piece_text)
            self._piece_text += text[:room]
            text = text[room:]
            self._piece.update(Content(self._piece_text))
