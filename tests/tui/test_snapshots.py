"""How the states look. Deterministic: a clock that stands, a cursor that does not blink, scripted servers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from textual.pilot import Pilot

from ragpilot.errors import ChatModelUnavailableError
from tests.tui.host import Connector, ask, reach, seen, until
from tests.tui.scripted import ANSWER, ScriptedBackend, answered, not_found, progress, report
from tui.app import RagPilotApp
from tui.screens.source import SourceScreen
from tui.widgets.exchange import ExchangeState as State
from tui.widgets.sources import SourceRow

Steps = Callable[[RagPilotApp, Pilot[None]], Awaitable[None]]

QUESTION = "Where is the context budget enforced, and what is cut first?"


async def nothing(app: RagPilotApp, pilot: Pilot[None]) -> None:
    await until(pilot, lambda: not app._indexing)


async def indexing(app: RagPilotApp, pilot: Pilot[None]) -> None:
    await until(pilot, lambda: app.ask.status.status.progress is not None)


async def streaming(app: RagPilotApp, pilot: Pilot[None]) -> None:
    exchange = await ask(app, pilot, QUESTION)
    await until(
        pilot, lambda: exchange.answer == ANSWER and all(words in seen(app) for words in ("count too", "Answering"))
    )


async def answered_with_sources(app: RagPilotApp, pilot: Pilot[None]) -> None:
    await reach(pilot, await ask(app, pilot, QUESTION), State.ANSWERED)
    await until(pilot, lambda: app.ask.sources.query(SourceRow) and QUESTION[:30] in seen(app))


async def not_found_at_all(app: RagPilotApp, pilot: Pilot[None]) -> None:
    await reach(pilot, await ask(app, pilot, "How do I bake bread?"), State.NOT_FOUND)


async def failed(app: RagPilotApp, pilot: Pilot[None]) -> None:
    await reach(pilot, await ask(app, pilot, QUESTION), State.FAILED)


async def source_open(app: RagPilotApp, pilot: Pilot[None]) -> None:
    await answered_with_sources(app, pilot)
    await pilot.press("f2", "enter")
    await until(pilot, lambda: isinstance(app.screen, SourceScreen) and "line" in str(app.screen._code.visual))


FOOTER: dict[Steps, str] = {
    nothing: " Ctrl+N New  Ctrl+Q Quit",
    indexing: " Ctrl+N New  Ctrl+Q Quit",
    streaming: " Esc Stop  Ctrl+N New  Ctrl+Q",
    answered_with_sources: "F2 Sources  Ctrl+N New  F4 Copy",
    not_found_at_all: "Ctrl+N New  F4 Copy",
    failed: "Ctrl+R Again  Ctrl+N New  Ctrl+Q",
    source_open: "Esc Close",
}
"""The keys offered, in their own line, are drawn a moment after the state they belong to."""

AWAY = ChatModelUnavailableError(
    "The model llama3.2:3b cannot be reached at http://127.0.0.1:11434.",
    hint='Start Ollama, or set [chat] kind = "extractive".',
)


def first_run() -> ScriptedBackend:
    backend = ScriptedBackend(points=0, run=[progress("chunks"), report()])
    backend.run_release.clear()
    return backend


CASES: dict[str, tuple[Callable[[], ScriptedBackend], Steps, tuple[int, int], bool]] = {
    "idle": (ScriptedBackend, nothing, (80, 24), True),
    "indexing": (first_run, indexing, (80, 24), True),
    "streaming": (lambda: ScriptedBackend(hold=True), streaming, (80, 24), True),
    "answered": (ScriptedBackend, answered_with_sources, (80, 24), True),
    "not_found": (lambda: ScriptedBackend(not_found()), not_found_at_all, (80, 24), True),
    "error": (lambda: ScriptedBackend([AWAY]), failed, (80, 24), True),
    "extract_wide": (
        lambda: ScriptedBackend(answered(extract=True, model="extractive")),
        answered_with_sources,
        (200, 60),
        True,
    ),
    "answered_light": (ScriptedBackend, answered_with_sources, (110, 32), False),
    "source_light": (ScriptedBackend, source_open, (80, 24), False),
}


@pytest.mark.parametrize("case", CASES)
def test_state(case: str, snap_compare: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("NO_COLOR", "TEXTUAL_THEME", "TEXTUAL_ANIMATIONS"):
        monkeypatch.delenv(variable, raising=False)
    make, steps, size, dark = CASES[case]
    app = RagPilotApp(Connector(make()), label="demo", dark=dark, clock=lambda: 0.0)

    async def run(pilot: Pilot[None]) -> None:
        app.ask.question.cursor_blink = False
        await pilot.pause()
        await steps(app, pilot)
        await until(pilot, lambda: FOOTER[steps] in seen(app))
        app.clear_notifications()
        await pilot.pause()

    assert snap_compare(app, terminal_size=size, run_before=run)
