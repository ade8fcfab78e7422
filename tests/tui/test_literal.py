from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from textual.app import App, ComposeResult
from textual.containers import VerticalGroup

from ragpilot.errors import RagPilotError
from tests.tui.scripted import HOSTILE, NEAR_MISSES, SOURCES, stats, visible
from tui import themes
from tui.keys import Keymap
from tui.widgets.exchange import Exchange
from tui.widgets.refusal import Failure, NearMissRow
from tui.widgets.sources import SourceRow
from tui.widgets.status import StatusBar
from tui.widgets.welcome import Welcome

TUI = Path(themes.__file__).parent


class Host(App[None]):
    """Every widget that shows what others wrote, with one text in every place of it."""

    def __init__(self, text: str) -> None:
        super().__init__(css_path=[TUI / "app.tcss", TUI / "screens" / "ask.tcss"])
        self.text = text
        self.bar = StatusBar()

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return themes.VARIABLES

    def compose(self) -> ComposeResult:
        text = self.text
        with VerticalGroup():
            yield Exchange(1, text, Keymap())
            yield Failure(RagPilotError(text, hint=text), text, title=text, request_id=text)
            yield NearMissRow(replace(NEAR_MISSES[0], path=text, symbol=text))
            row = SourceRow(1, replace(SOURCES[0], file_path=text, symbol=text))
            row.styles.height = 2
            yield row
            yield Welcome(text, Keymap())
            yield self.bar

    def on_mount(self) -> None:
        self.bar.change(corpus=self.text, notice=self.text, stats=stats(3), model=self.text)


@pytest.mark.asyncio
@pytest.mark.parametrize("text", HOSTILE)
async def test_every_widget_shows_other_peoples_text_as_it_is(text: str) -> None:
    app = Host(text)
    async with asyncio.timeout(20), app.run_test(size=(200, 50)) as pilot:
        await pilot.pause()
        shown = "\n".join(
            "".join(segment.text for segment in strip) for strip in app.screen._compositor.render_strips()
        )
        assert shown.count(visible(text)) >= 12
        assert not any((ord(char) < 32 and char != "\n") or 127 <= ord(char) < 160 for char in shown)
