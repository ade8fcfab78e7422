"""The app on scripted servers, and waits that are bounded."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from textual.pilot import Pilot

from ragpilot.errors import RagPilotError
from tests.tui.scripted import ScriptedBackend
from tui.app import RagPilotApp
from tui.backend import Backend
from tui.widgets.exchange import Exchange, ExchangeState

BOUND = 20.0


class Connector:
    """Gives each of ``found`` in turn, the last one again and again; an error among them is raised."""

    def __init__(self, *found: ScriptedBackend | Exception) -> None:
        self.found = list(found)
        self.calls = 0
        self.hold = asyncio.Event()
        self.hold.set()

    async def __call__(self) -> Backend:
        self.calls += 1
        await self.hold.wait()
        backend = self.found.pop(0) if len(self.found) > 1 else self.found[0]
        if isinstance(backend, Exception):
            raise backend
        return backend


@asynccontextmanager
async def opened(
    *found: ScriptedBackend | RagPilotError | Connector, size: tuple[int, int] = (100, 30), **given: Any
) -> AsyncIterator[tuple[RagPilotApp, Pilot[None]]]:
    connector = found[0] if isinstance(found[0], Connector) else Connector(*found)  # type: ignore[arg-type]
    app = RagPilotApp(connector, **{"label": "demo", "clock": lambda: 0.0, **given})
    async with asyncio.timeout(BOUND), app.run_test(size=size, notifications=True) as pilot:
        app.ask.question.cursor_blink = False
        await pilot.pause()
        yield app, pilot


async def until(pilot: Pilot[None], condition: Callable[[], object]) -> None:
    """Let the app work until ``condition`` holds."""
    async with asyncio.timeout(BOUND):
        while not condition():
            await pilot.pause(0.01)
    await pilot.pause()


async def ask(app: RagPilotApp, pilot: Pilot[None], question: str = "where is it?") -> Exchange:
    """Type a question and ask it; returns its exchange once there is one."""
    before = app.ask.conversation.last
    app.ask.question.text = question
    await pilot.press("enter")
    await until(pilot, lambda: app.ask.conversation.last is not before)
    exchange = app.ask.conversation.last
    assert exchange is not None
    return exchange


async def reach(pilot: Pilot[None], exchange: Exchange, state: ExchangeState) -> None:
    await until(pilot, lambda: exchange.state is state)


def seen(app: RagPilotApp) -> str:
    """What stands on the screen, line by line."""
    lines = ["".join(segment.text for segment in strip) for strip in app.screen._compositor.render_strips()]
    return "\n".join(line.rstrip() for line in lines)


def toasts(app: RagPilotApp) -> list[str]:
    return [notification.message for notification in app._notifications]
