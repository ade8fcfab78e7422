"""The conversation: exchanges below each other, the newest in sight."""

from __future__ import annotations

from typing import Final

from textual.app import ComposeResult
from textual.containers import VerticalGroup, VerticalScroll

from tui.keys import Keymap
from tui.widgets.exchange import Exchange
from tui.widgets.welcome import Welcome

_KEPT: Final = 20
"""Exchanges that stay on the screen; each costs time whenever the one being written is drawn."""


class Conversation(VerticalScroll):
    """Follows its end while the reader stands there, and stays where it is once they have scrolled up."""

    def __init__(self, label: str, keymap: Keymap) -> None:
        super().__init__()
        self._keymap = keymap
        self.welcome = Welcome(label, keymap)
        self.exchanges: list[Exchange] = []
        self._thread = VerticalGroup()
        self._count = 0

    def compose(self) -> ComposeResult:
        """Empty but for the welcome."""
        with self._thread:
            yield self.welcome

    def on_mount(self) -> None:
        """Follow the end."""
        self.anchor()

    async def add(self, question: str) -> Exchange:
        """Begin an exchange and bring it into sight."""
        self._count += 1
        exchange = Exchange(self._count, question, self._keymap)
        self.exchanges.append(exchange)
        self.welcome.display = False
        await self._thread.mount(exchange)
        for old in self.exchanges[:-_KEPT]:
            await old.remove()
        self.exchanges = self.exchanges[-_KEPT:]
        self.anchor()
        return exchange

    async def clear(self) -> None:
        """A new conversation; numbers go on, so that what an old answer still sends finds no exchange."""
        for exchange in self.exchanges:
            await exchange.remove()
        self.exchanges = []
        self.welcome.display = True

    def show_beginning(self, exchange: Exchange) -> None:
        """Bring an exchange's question to the top, as far as there is something to scroll."""
        self.scroll_to_widget(exchange, top=True, animate=False)

    @property
    def last(self) -> Exchange | None:
        """The newest exchange."""
        return self.exchanges[-1] if self.exchanges else None
