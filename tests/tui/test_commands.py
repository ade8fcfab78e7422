from __future__ import annotations

import pytest
from textual.command import CommandPalette

from tests.tui.host import ask, opened, reach, seen, toasts, until
from tests.tui.scripted import ANSWER, ScriptedBackend
from tui import keys
from tui.commands import COMMANDS
from tui.screens.help import HelpScreen
from tui.widgets.exchange import ExchangeState as State


@pytest.mark.asyncio
async def test_the_palette_offers_what_would_do_something() -> None:
    async with opened(ScriptedBackend(), size=(100, 40)) as (app, pilot):
        await until(pilot, lambda: "1,204 points" in seen(app))
        await pilot.press("ctrl+p")
        await until(pilot, lambda: "New conversation" in seen(app))
        assert "Copy answer" not in seen(app)
        assert "Stop the answer" not in seen(app)
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(app.screen, CommandPalette))
        await reach(pilot, await ask(app, pilot), State.ANSWERED)
        await pilot.press("ctrl+p")
        await until(pilot, lambda: "Copy answer" in seen(app))
        await pilot.press(*"copy ans")
        await until(pilot, lambda: "Rebuild" not in seen(app))
        await pilot.press("enter")
        await until(pilot, lambda: toasts(app))
        assert app.clipboard == ANSWER


@pytest.mark.asyncio
async def test_another_corpus_is_asked_in_a_new_conversation() -> None:
    backend = ScriptedBackend()
    async with opened(backend, size=(100, 30)) as (app, pilot):
        await reach(pilot, await ask(app, pilot), State.ANSWERED)
        await pilot.press("ctrl+o")
        await until(pilot, lambda: "handbook" in seen(app))
        assert "77 points" in seen(app)
        await pilot.press(*"hand", "enter")
        await until(pilot, lambda: app.ask.conversation.last is None)
        await until(pilot, lambda: backend.runs[-1] == ("handbook", False))
        await reach(pilot, await ask(app, pilot), State.ANSWERED)
        assert backend.asked[-1].corpus == "handbook"
        assert backend.asked[-1].conversation == ()


@pytest.mark.asyncio
async def test_light_and_dark() -> None:
    async with opened(ScriptedBackend()) as (app, pilot):
        assert app.theme == "ragpilot-dark"
        await pilot.press("ctrl+t")
        assert app.current_theme.name == "ragpilot-light"
        await pilot.press("ctrl+t")
        assert app.theme == "ragpilot-dark"


@pytest.mark.asyncio
async def test_help_names_every_key_as_it_is_mapped() -> None:
    async with opened(ScriptedBackend(), size=(110, 60), keymap={"conversation.new": "f9"}) as (app, pilot):
        await pilot.press("f1")
        await until(pilot, lambda: isinstance(app.screen, HelpScreen))
        await pilot.pause()
        shown = seen(app)
        for section, bindings in keys.SECTIONS:
            assert section in shown
            assert all(binding.tooltip in shown for binding in bindings if binding.id)
        assert "Shift+Enter, Ctrl+J" in shown
        assert "F9" in shown
        assert "Ctrl+N" not in shown
        await pilot.press("f1", "escape")
        await until(pilot, lambda: app.screen is app.ask)


@pytest.mark.asyncio
async def test_quitting_ends_with_zero_and_closes_the_connection() -> None:
    backend = ScriptedBackend(hold=True)
    async with opened(backend) as (app, pilot):
        await ask(app, pilot)
        await until(pilot, lambda: backend.asked)
        await pilot.press("ctrl+q")
    assert app.return_code == 0
    assert backend.closed
    assert backend.asked[0].closed_early


def test_bindings_have_ids_of_their_own_and_tell_what_they_do() -> None:
    bindings = [binding for _, group in (*keys.SECTIONS, ("", keys.CLOSE)) for binding in group if not binding.system]
    assert all(binding.id and binding.tooltip for binding in bindings)
    assert len({binding.id for binding in bindings}) == len(bindings)
    assert len({command.title for command in COMMANDS}) == len(COMMANDS)
