from __future__ import annotations

from dataclasses import replace

import pytest

from ragpilot.errors import (
    IngestRunningError,
    PermissionDeniedError,
    RagPilotError,
    RootError,
    ServerUnreachableError,
    StoreDamagedError,
)
from ragpilot.types import Health, LeftOut
from tests.tui.host import Connector, ask, opened, reach, seen, toasts, until
from tests.tui.scripted import ScriptedBackend, progress, report, stats
from tui.widgets.exchange import ExchangeState as State


@pytest.mark.asyncio
async def test_a_question_may_be_asked_while_the_server_starts() -> None:
    connector = Connector(ScriptedBackend())
    connector.hold.clear()
    async with opened(connector) as (app, pilot):
        assert "Starting …" in seen(app)
        exchange = await ask(app, pilot)
        assert exchange.state is State.WAITING
        assert "Waiting for the server …" in seen(app)
        connector.hold.set()
        await reach(pilot, exchange, State.ANSWERED)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ServerUnreachableError("Port 5200 is taken [/].", hint="Set [server] port."), "Set [server] port."),
        (OSError("too many files"), "OSError: too many files"),
    ],
)
async def test_a_server_that_cannot_start_is_told_and_tried_again(error: Exception, words: str) -> None:
    connector = Connector(error, ScriptedBackend())
    async with opened(connector) as (app, pilot):
        await until(pilot, lambda: "RagPilot cannot start" in seen(app))
        assert words in seen(app)
        assert "not connected" in seen(app)
        assert "Ctrl+R tries again." in seen(app)
        await pilot.press("ctrl+r")
        await until(pilot, lambda: "1,204 points" in seen(app))
        assert "RagPilot cannot start" not in seen(app)
    assert connector.calls == 2


@pytest.mark.asyncio
async def test_the_status_bar_tells_corpus_points_model_and_health() -> None:
    backend = ScriptedBackend()
    backend.parts["model"] = Health(ok=False, detail="refused")
    async with opened(backend) as (app, pilot):
        await until(pilot, lambda: "1,204 points" in seen(app) and not app._indexing)
        assert "default  1,204 points" in seen(app)
        assert "● model away" in seen(app)
        backend.parts["model"] = Health(ok=True, detail="extracts from the sources; no language model")
        backend.given_stats = stats(1300, share=0.5)
        await pilot.press("f5")
        await until(pilot, lambda: "● ready" in seen(app))
        await until(pilot, lambda: "default  1,300 points  header vectors 50 % in  extract" in seen(app))


@pytest.mark.asyncio
async def test_every_start_asks_for_a_run_and_an_unchanged_index_is_not_talked_about() -> None:
    backend = ScriptedBackend()
    async with opened(backend, corpus="docs") as (app, pilot):
        await until(pilot, lambda: backend.runs == [("docs", False)])
        await until(pilot, lambda: "1,204 points" in seen(app))
        assert toasts(app) == []


@pytest.mark.asyncio
async def test_the_first_run_shows_progress_and_a_question_waits_for_something_to_search() -> None:
    backend = ScriptedBackend(points=0, run=[progress("chunks"), report(added=120, unchanged=0)])
    backend.run_release.clear()
    async with opened(backend, size=(110, 30)) as (app, pilot):
        await until(pilot, lambda: "reading files 480/1,200" in seen(app))
        assert "420/s  3.0 s left  120 files" in seen(app)
        assert "Nothing is indexed yet: indexing now." in seen(app)
        exchange = await ask(app, pilot)
        assert "Waiting for the index" in seen(app)
        assert backend.asked == []
        backend.given_stats = stats(1204)
        backend.run_release.set()
        await reach(pilot, exchange, State.ANSWERED)
        await until(pilot, lambda: toasts(app))
        assert toasts(app) == ["Files: 120 added; 1,204 points, 0.4 s."]


@pytest.mark.asyncio
async def test_a_question_is_answered_while_vectors_are_still_to_come() -> None:
    backend = ScriptedBackend(points=0, run=[progress("chunks"), progress("headers"), report()])
    backend.run_release.clear()
    async with opened(backend) as (app, pilot):
        exchange = await ask(app, pilot)
        await reach(pilot, exchange, State.ANSWERED)
        assert "header vectors 480/1,200" in seen(app)


@pytest.mark.asyncio
async def test_a_waiting_question_can_be_stopped() -> None:
    backend = ScriptedBackend(points=0, run=[progress("chunks"), report()])
    backend.run_release.clear()
    async with opened(backend) as (app, pilot):
        exchange = await ask(app, pilot)
        await pilot.press("escape")
        await reach(pilot, exchange, State.STOPPED)
        backend.run_release.set()
        await until(pilot, lambda: "0 points" in seen(app))
        assert backend.asked == []


@pytest.mark.asyncio
@pytest.mark.parametrize("error", [PermissionDeniedError("You may not."), IngestRunningError("A run is under way.")])
async def test_a_refused_run_is_no_trouble_at_the_start(error: RagPilotError) -> None:
    backend = ScriptedBackend(points=0, run=[error])
    async with opened(backend) as (app, pilot):
        exchange = await ask(app, pilot)
        await reach(pilot, exchange, State.ANSWERED)
        assert toasts(app) == []
        await pilot.press("f5")
        await until(pilot, lambda: toasts(app))
        assert toasts(app) == [error.message], "who asks for a run is told why there is none"


@pytest.mark.asyncio
async def test_a_run_that_fails_is_told() -> None:
    backend = ScriptedBackend(run=[RootError("The root /x[/] is gone.", hint="Make it.")])
    async with opened(backend) as (app, pilot):
        await until(pilot, lambda: toasts(app))
        assert toasts(app) == ["The root /x[/] is gone. Make it."]
        await reach(pilot, await ask(app, pilot), State.ANSWERED)


@pytest.mark.asyncio
async def test_what_a_run_could_not_do_is_told() -> None:
    failed = (LeftOut("a[/].py", "unreadable"), LeftOut("b.py", "unreadable"))
    backend = ScriptedBackend(run=[report(outcome="partial", failed=failed, warnings=("The disk is nearly full.",))])
    async with opened(backend) as (app, pilot):
        await until(pilot, lambda: len(toasts(app)) == 2)
        assert toasts(app) == ["2 files failed; the first: a[/].py: unreadable", "The disk is nearly full."]


@pytest.mark.asyncio
async def test_an_empty_folder_is_loud() -> None:
    backend = ScriptedBackend(points=0, run=[report(outcome="nothing", chunks=0, unchanged=0)])
    async with opened(backend) as (app, pilot):
        await until(pilot, lambda: toasts(app))
        assert toasts(app)[0].startswith("There was nothing to index here.")


@pytest.mark.asyncio
async def test_statistics_that_cannot_be_had_are_told_in_the_bar() -> None:
    backend = ScriptedBackend()
    backend.given_stats = StoreDamagedError("The store cannot be read.")
    async with opened(backend) as (app, pilot):
        await until(pilot, lambda: "The store cannot be read." in seen(app))
        await until(pilot, lambda: backend.runs)


@pytest.mark.asyncio
async def test_what_a_run_says_of_itself_is_told_once() -> None:
    step, told = progress(), "It is cut anew."
    backend = ScriptedBackend(run=[replace(step, note=told), replace(step, note=told), report(notes=(told,))])
    async with opened(backend) as (app, pilot):
        await until(pilot, lambda: len(backend.runs) == 1 and not app._indexing)
        await until(pilot, lambda: toasts(app) == [told])


@pytest.mark.asyncio
async def test_a_rebuild_is_a_command() -> None:
    backend = ScriptedBackend()
    async with opened(backend) as (app, pilot):
        await until(pilot, lambda: len(backend.runs) == 1 and not app._indexing)
        app.action_rebuild()
        await until(pilot, lambda: len(backend.runs) == 2)
        assert backend.runs[1] == (None, True)
        await until(pilot, lambda: toasts(app) == ["Nothing has changed; 1,204 points, 0.4 s."])


@pytest.mark.asyncio
async def test_two_runs_at_once_are_not_asked_for() -> None:
    backend = ScriptedBackend(run=[progress(), report()])
    backend.run_release.clear()
    async with opened(backend) as (app, pilot):
        await until(pilot, lambda: "header vectors 480/1,200" in seen(app))
        await pilot.press("f5")
        await until(pilot, lambda: toasts(app) == ["A run is under way."])
        assert len(backend.runs) == 1
