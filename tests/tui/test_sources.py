from __future__ import annotations

import pytest
from textual.widgets import Static

from ragpilot.errors import UnknownSourceError
from ragpilot.types import SourceText
from tests.tui.host import ask, opened, reach, seen, toasts, until
from tests.tui.scripted import SOURCES, ScriptedBackend, answered, source
from tui.screens.source import SourceScreen, render_source
from tui.widgets.exchange import ExchangeState as State
from tui.widgets.sources import SourceRow


@pytest.mark.asyncio
async def test_a_source_opens_with_the_lines_around_it() -> None:
    backend = ScriptedBackend()
    async with opened(backend, size=(110, 36)) as (app, pilot):
        await reach(pilot, await ask(app, pilot), State.ANSWERED)
        await until(pilot, lambda: app.ask.sources.display)
        await pilot.press("f2", "enter")
        await until(pilot, lambda: isinstance(app.screen, SourceScreen) and "# after" in seen(app))
        shown = seen(app)
        assert "app/budget.py:10-18" in shown
        assert "Budget.fit_1  ·  code-python  ·  score 0.7500" in shown
        assert " 8   # before" in shown
        assert "10 ▎ line 10" in shown
        assert "18 ▎ line 18" in shown
        assert "19   # after" in shown
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(app.screen, SourceScreen))
        await pilot.press("escape")
        assert app.ask.question.has_focus


@pytest.mark.asyncio
async def test_a_changed_file_is_said_to_be_one() -> None:
    async with opened(ScriptedBackend(), size=(110, 36)) as (app, pilot):
        await reach(pilot, await ask(app, pilot), State.ANSWERED)
        await until(pilot, lambda: app.ask.sources.display)
        await pilot.press("f2", "down", "enter")
        await until(pilot, lambda: "this is the indexed text" in seen(app))


@pytest.mark.asyncio
async def test_a_source_that_is_gone_is_told() -> None:
    backend = ScriptedBackend()

    async def gone(*_: object, **__: object) -> SourceText:
        raise UnknownSourceError("There is no source [/x].")

    backend.source = gone  # type: ignore[method-assign]
    async with opened(backend, size=(110, 36)) as (app, pilot):
        await reach(pilot, await ask(app, pilot), State.ANSWERED)
        await until(pilot, lambda: app.ask.sources.display)
        await pilot.press("f2", "enter")
        await until(pilot, lambda: "There is no source [/x]." in seen(app))
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(app.screen, SourceScreen))


@pytest.mark.asyncio
async def test_a_citation_in_an_answer_opens_its_source() -> None:
    async with opened(ScriptedBackend(answered("It is there [2].")), size=(110, 36)) as (app, pilot):
        exchange = await ask(app, pilot)
        await reach(pilot, exchange, State.ANSWERED)
        await until(pilot, lambda: app.ask.sources.display)
        lines = seen(app).split("\n")
        row = next(at for at, line in enumerate(lines) if "It is there [2]." in line)
        await pilot.click(offset=(lines[row].index("[2]") + 1, row))
        await until(pilot, lambda: isinstance(app.screen, SourceScreen))
        assert "assembly_of_blocks_for_the_prompt.py:20-28" in seen(app)


@pytest.mark.asyncio
async def test_a_citation_of_nothing_opens_nothing() -> None:
    async with opened(ScriptedBackend(answered("It is there [9].")), size=(110, 36)) as (app, pilot):
        await reach(pilot, await ask(app, pilot), State.ANSWERED)
        lines = seen(app).split("\n")
        row = next(at for at, line in enumerate(lines) if "[9]" in line)
        await pilot.click(offset=(lines[row].index("[9]") + 1, row))
        await pilot.pause()
        assert app.screen is app.ask


@pytest.mark.asyncio
async def test_an_earlier_exchange_brings_back_its_sources() -> None:
    backend = ScriptedBackend(answered("First."), answered("Second.", [source(7, path="other.py")]))
    async with opened(backend, size=(110, 36)) as (app, pilot):
        first = await ask(app, pilot, "first?")
        await reach(pilot, first, State.ANSWERED)
        await reach(pilot, await ask(app, pilot, "second?"), State.ANSWERED)
        await until(pilot, lambda: "other.py:70-78" in seen(app))
        await pilot.click(first, offset=(3, 0))
        await until(pilot, lambda: "app/budget.py:10-18" in seen(app))


@pytest.mark.asyncio
async def test_the_path_of_a_source_is_copied() -> None:
    async with opened(ScriptedBackend(), size=(110, 36)) as (app, pilot):
        await reach(pilot, await ask(app, pilot), State.ANSWERED)
        await until(pilot, lambda: app.ask.sources.display)
        await pilot.press("f2", "down", "c")
        await until(pilot, lambda: toasts(app))
        assert app.clipboard == "app/prompting/context/assembly_of_blocks_for_the_prompt.py:20-28"


@pytest.mark.asyncio
async def test_labels_are_literal_and_hold_nothing_a_terminal_obeys() -> None:
    hostile = [
        source(1, path="src/app/[id]/page.tsx"),
        source(2, path="[/][link=http://x]\x1b]52;c;eA==\x07.py"),
        source(3, path="a\nb\u202e.py"),
    ]
    async with opened(ScriptedBackend(answered("Here.", hostile)), size=(140, 36)) as (app, pilot):
        await reach(pilot, await ask(app, pilot, "[/b] [red]what?"), State.ANSWERED)
        await until(pilot, lambda: app.ask.sources.display)
        shown = seen(app)
        assert "[/b] [red]what?" in shown
        assert "src/app/[id]/page.tsx:10-18" in shown
        assert "[/][link=http://x]]52;c;eA==.py:20-28" in shown
        assert "a b.py:30-38" in shown
        assert not any(ord(char) < 32 and char != "\n" for char in shown)


@pytest.mark.asyncio
@pytest.mark.parametrize("width", [12, 20, 40, 80])
async def test_a_row_never_leaves_its_width(width: int) -> None:
    async with opened(ScriptedBackend(), size=(max(width, 30), 20)) as (app, pilot):
        for item in (*SOURCES, source(10, path="日本語/とても長い名前のファイル.py", cited=True)):
            row = SourceRow(3, item)
            row.styles.width = width
            for height in (1, 2):
                row.styles.height = height
                await app.ask.conversation.mount(row)
                await pilot.pause()
                lines = row.render().split("\n")
                assert len(lines) == height
                assert all(line.cell_length <= width for line in lines)
                await row.remove()
                row = SourceRow(3, item)
                row.styles.width = width


def test_the_text_of_a_source_is_numbered_from_where_it_begins() -> None:
    content, at = render_source(SourceText(source(1), "a\tb\r\n[/x]\n", "", "", 10))
    assert at == 0
    assert content.plain == "10 ▎ a   b\n11 ▎ [/x]"
    content, at = render_source(SourceText(source(1), "own", "", "", 9))
    assert at == 1
    assert content.plain == " 9   \n10 ▎ own"


@pytest.mark.asyncio
async def test_panels_stand_beside_or_below_by_the_room_there_is() -> None:
    async with opened(ScriptedBackend(), size=(120, 30)) as (app, pilot):
        await reach(pilot, await ask(app, pilot), State.ANSWERED)
        await until(pilot, lambda: app.ask.sources.display)
        assert app.ask.sources.region.x > app.ask.conversation.region.x
        await pilot.resize_terminal(80, 24)
        await until(pilot, lambda: app.ask.sources.region.x == 0)
        assert app.ask.sources.region.y >= app.ask.conversation.region.bottom
        await pilot.resize_terminal(40, 15)
        await until(pilot, lambda: app.ask.size.width == 40)
        assert app.ask.question.region.bottom <= 15
        assert app.ask.conversation.region.height >= 3
        assert "[1]" in seen(app)
        assert app.query(Static)
