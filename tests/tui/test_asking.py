from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from textual.widgets import Markdown

from ragpilot.errors import (
    ChatModelTimeoutError,
    ChatModelUnavailableError,
    IndexMismatchError,
    RagPilotError,
    ServerUnreachableError,
)
from ragpilot.events import AnswerEvent, Failed, Sources, Token
from ragpilot.types import NOT_FOUND_ANSWER, Outcome, Turn
from tests.tui.host import Connector, ask, opened, reach, seen, toasts, until
from tests.tui.scripted import ANSWER, SOURCES, ScriptedBackend, answered, done, not_found, source
from tests.tui.scripted import NEAR_MISSES as MISSES
from tui.commands import COMMANDS
from tui.widgets import conversation
from tui.widgets.exchange import ExchangeState as State
from tui.widgets.refusal import NEAR_MISSES, Failure, NotFound


@pytest.mark.asyncio
async def test_an_answer_streams_and_brings_its_sources() -> None:
    backend = ScriptedBackend(hold=True)
    async with opened(backend, size=(120, 40)) as (app, pilot):
        exchange = await ask(app, pilot)
        await until(pilot, lambda: exchange.answer == ANSWER)
        assert exchange.state is State.STREAMING
        assert "Answering … 0.0 s  ·  Esc stops" in seen(app)
        assert not app.ask.sources.display, "sources come after the last token"
        backend.release.set()
        await reach(pilot, exchange, State.ANSWERED)
        await until(pilot, lambda: app.ask.sources.display)
        shown = seen(app)
        assert "llama3.2:3b  ·  4 sources, 2 cited  ·  0.0 s" in shown
        assert "Sources  2 of 4 cited" in shown
        assert "[1] app/budget.py:10-18" in shown
        assert "Budget.fit_2 changed" in shown
        assert "0.75" in shown
        assert exchange.query_one(Markdown).source == ANSWER
        assert app.ask.question.text == ""
    assert backend.closed


@pytest.mark.asyncio
async def test_time_that_passes_is_shown() -> None:
    now = [0.0]
    backend = ScriptedBackend(answered(""), hold=True)
    async with opened(backend, clock=lambda: now[0]) as (app, pilot):
        await ask(app, pilot)
        await until(pilot, lambda: "Searching the sources … 0.0 s" in seen(app))
        now[0] = 83.0
        await until(pilot, lambda: "Waiting for the model … 1 min 23 s  ·  Esc stops" in seen(app))


@pytest.mark.asyncio
async def test_an_extract_is_labelled() -> None:
    backend = ScriptedBackend(answered(extract=True, model="extractive"))
    async with opened(backend, size=(120, 40)) as (app, pilot):
        exchange = await ask(app, pilot)
        await reach(pilot, exchange, State.ANSWERED)
        shown = seen(app)
        assert " Extract  quoted from the sources, no language model" in shown
        assert "default  1,204 points  extract" in shown


@pytest.mark.asyncio
async def test_what_was_searched_with_an_earlier_question_says_so() -> None:
    for plan, told in (({"searched": "how are limits set? why?"}, True), ({}, False)):
        async with opened(ScriptedBackend(answered(plan=plan)), size=(160, 40)) as (app, pilot):
            await reach(pilot, await ask(app, pilot), State.ANSWERED)
            assert ("with the earlier question" in seen(app)) is told


@pytest.mark.asyncio
async def test_what_is_to_be_known_of_an_answer_is_told() -> None:
    events = answered(warnings=("The answer was cut at the generation limit. [/b]",), unsupported=(9, 11))
    async with opened(ScriptedBackend(events), size=(120, 40)) as (app, pilot):
        await reach(pilot, await ask(app, pilot), State.ANSWERED)
        assert "! [9], [11] in this answer names no source." in seen(app)
        assert "! The answer was cut at the generation limit. [/b]" in seen(app)


@pytest.mark.asyncio
async def test_what_the_gate_rejected_shows_its_scores_and_the_evidence_once() -> None:
    misses = tuple(replace(miss, bound="gate", needed=0.5, score=0.6 + at / 100) for at, miss in enumerate(MISSES))
    end = done(Outcome.NOT_FOUND, model=None, near_misses=misses, plan={"evidence": 0.4})
    async with opened(ScriptedBackend([Token(NOT_FOUND_ANSWER), Sources(()), end]), size=(80, 24)) as (app, pilot):
        exchange = await ask(app, pilot)
        await until(pilot, lambda: exchange.query(NotFound))
        await until(pilot, lambda: NEAR_MISSES in seen(app))
        shown = seen(app)
        assert shown.count("Closest, but under the bound: evidence 0.40, the gate needs 0.50") == 1
        assert "0.60  docs/guide.md:10-24  Install" in shown
        assert "0.61  " in shown


@pytest.mark.asyncio
async def test_not_found_is_a_calm_state_of_its_own() -> None:
    backend = ScriptedBackend(not_found())
    async with opened(backend, size=(80, 24)) as (app, pilot):
        exchange = await ask(app, pilot)
        await reach(pilot, exchange, State.NOT_FOUND)
        await until(pilot, lambda: exchange.query(NotFound))
        shown = seen(app)
        assert shown.count(NOT_FOUND_ANSWER) == 1
        assert NEAR_MISSES in shown
        assert "0.31, needs 0.35  docs/guide.md:10-24  Install" in shown
        assert "terminal/main.py:1-9" in shown, "of a long path the end is shown"
        assert not app.ask.sources.display
        assert not exchange.query(Failure)
        await reach(pilot, await ask(app, pilot, "and now?"), State.NOT_FOUND)
    assert backend.asked[1].conversation == (), "what found nothing has nothing to refer to"


@pytest.mark.asyncio
async def test_an_unknown_answer_keeps_its_sources() -> None:
    events: list[AnswerEvent] = [*answered("I don't know.")[:-1], done(Outcome.UNKNOWN)]
    async with opened(ScriptedBackend(events)) as (app, pilot):
        await reach(pilot, await ask(app, pilot), State.UNKNOWN)
        await until(pilot, lambda: app.ask.sources.display)
        assert "I don't know." in seen(app)


@pytest.mark.asyncio
async def test_an_error_says_what_happened_and_what_to_do() -> None:
    error = ChatModelUnavailableError("The model [/x] is away.", hint="Start it.")
    async with opened(ScriptedBackend([error], answered())) as (app, pilot):
        exchange = await ask(app, pilot)
        await reach(pilot, exchange, State.FAILED)
        shown = seen(app)
        assert "No answer" in shown
        assert "The model [/x] is away." in shown
        assert "Start it." in shown
        assert "Ctrl+R asks again." in shown
        await pilot.press("ctrl+r")
        await reach(pilot, exchange, State.ANSWERED)
        assert not exchange.query(Failure)
        assert exchange.answer == ANSWER


@pytest.mark.asyncio
async def test_an_index_that_does_not_fit_is_rebuilt_from_here() -> None:
    error = IndexMismatchError("The index is another's.", hint="Build it anew with `ragpilot index --rebuild`.")
    async with opened(ScriptedBackend([error])) as (app, pilot):
        await reach(pilot, await ask(app, pilot), State.FAILED)
        assert "Ctrl+P and “Rebuild the index” does that here; then Ctrl+R asks again." in " ".join(seen(app).split())
    assert "Rebuild the index" in {command.title for command in COMMANDS}


@pytest.mark.asyncio
async def test_a_failure_in_mid_answer_keeps_what_came() -> None:
    events: list[AnswerEvent] = [Token("So far"), Failed("model_timeout", "The model fell silent.", "req-77")]
    async with opened(ScriptedBackend(events)) as (app, pilot):
        exchange = await ask(app, pilot)
        await reach(pilot, exchange, State.FAILED)
        shown = seen(app)
        assert "So far" in shown
        assert "The model fell silent." in shown
        assert "request req-77" in shown


@pytest.mark.asyncio
async def test_a_defect_ends_the_exchange_and_not_the_program() -> None:
    class Broken:
        def __aiter__(self) -> AsyncIterator[AnswerEvent]:
            raise ZeroDivisionError("[/oops]")

        async def aclose(self) -> None: ...

    backend = ScriptedBackend()
    backend.ask = lambda *_, **__: Broken()  # type: ignore[method-assign, assignment]
    async with opened(backend) as (app, pilot):
        await reach(pilot, await ask(app, pilot), State.FAILED)
        assert "ZeroDivisionError: [/oops]" in seen(app)


@pytest.mark.asyncio
async def test_escape_stops_and_closes_the_stream() -> None:
    backend = ScriptedBackend([Token("So far"), *answered()], hold=True)
    async with opened(backend) as (app, pilot):
        exchange = await ask(app, pilot)
        await until(pilot, lambda: exchange.answer.startswith("So far"))
        await pilot.press("escape")
        async with asyncio.timeout(5):
            await backend.asked[0].closed.wait()
        assert backend.asked[0].closed_early
        await reach(pilot, exchange, State.STOPPED)
        assert "So far" in seen(app)
        assert "Stopped. Ctrl+R asks again." in seen(app)
        backend.hold = False
        await pilot.press("ctrl+r")
        await reach(pilot, exchange, State.ANSWERED)
        assert backend.asked[1].question == backend.asked[0].question


@pytest.mark.asyncio
async def test_one_answer_at_a_time() -> None:
    backend = ScriptedBackend(hold=True)
    async with opened(backend) as (app, pilot):
        await ask(app, pilot)
        app.ask.question.text = "another"
        await pilot.press("enter")
        await until(pilot, lambda: toasts(app))
        assert len(backend.asked) == 1
        assert app.ask.question.text == "another", "what was typed is not lost"


@pytest.mark.asyncio
async def test_earlier_answers_are_sent_along_until_a_new_conversation() -> None:
    backend = ScriptedBackend(answered("It is there."))
    async with opened(backend, corpus="docs") as (app, pilot):
        await reach(pilot, await ask(app, pilot, "first?"), State.ANSWERED)
        await reach(pilot, await ask(app, pilot, "second?"), State.ANSWERED)
        await pilot.press("ctrl+n")
        await until(pilot, lambda: app.ask.conversation.last is None)
        assert app.ask.conversation.welcome.display
        assert not app.ask.sources.display
        await reach(pilot, await ask(app, pilot, "third?"), State.ANSWERED)
    first, second, third = backend.asked
    assert first.conversation == ()
    assert second.conversation == (Turn("user", "first?"), Turn("assistant", "It is there."))
    assert third.conversation == ()
    assert {asked.corpus for asked in backend.asked} == {"docs"}


@pytest.mark.asyncio
async def test_a_lost_server_is_looked_for_once_and_the_question_asked_again() -> None:
    gone = ScriptedBackend([ServerUnreachableError("The server closed the connection.")])
    there = ScriptedBackend()
    connector = Connector(gone, there)
    async with opened(connector) as (app, pilot):
        exchange = await ask(app, pilot)
        await reach(pilot, exchange, State.ANSWERED)
    assert connector.calls == 2
    assert gone.closed
    assert [asked.question for asked in there.asked] == ["where is it?"]


@pytest.mark.asyncio
async def test_a_server_that_stays_away_is_told() -> None:
    error = ServerUnreachableError("The server closed the connection.")
    async with opened(Connector(ScriptedBackend([error]), RagPilotError("No port is free."), ScriptedBackend())) as (
        app,
        pilot,
    ):
        exchange = await ask(app, pilot)
        await reach(pilot, exchange, State.FAILED)
        assert "No port is free." in seen(app)
        await pilot.press("ctrl+r")
        await reach(pilot, exchange, State.ANSWERED)


@pytest.mark.asyncio
async def test_a_broken_off_answer_is_not_asked_again_by_itself() -> None:
    connector = Connector(ScriptedBackend([Token("half"), ServerUnreachableError("It ended.")]))
    async with opened(connector) as (app, pilot):
        exchange = await ask(app, pilot)
        await reach(pilot, exchange, State.FAILED)
        assert exchange.answer == "half"
    assert connector.calls == 1


@pytest.mark.asyncio
async def test_the_conversation_follows_its_end_until_it_is_scrolled_up() -> None:
    lines: list[AnswerEvent] = [Token(f"line {number}\n\n") for number in range(60)]
    backend = ScriptedBackend([*lines, Sources(SOURCES), done()], hold=True)
    async with opened(backend, size=(80, 24)) as (app, pilot):
        exchange = await ask(app, pilot)
        thread = app.ask.conversation
        await until(pilot, lambda: "line 59" in seen(app))
        await pilot.press("pageup")
        await pilot.pause()
        at = thread.scroll_y
        assert at < thread.max_scroll_y
        exchange.feed("more\n\n" * 20)
        await until(pilot, lambda: exchange.query_one(Markdown).source.endswith("more\n\n"))
        assert thread.scroll_y == at
        thread.scroll_end(animate=False)
        await pilot.pause()
        exchange.feed("the end\n\n")
        await until(pilot, lambda: "the end" in seen(app))


@pytest.mark.asyncio
@pytest.mark.parametrize("lines", [6, 60])
@pytest.mark.parametrize(("seconds", "first"), [(0.5, True), (30.0, False)])
async def test_an_answer_that_came_at_once_is_shown_from_its_beginning(seconds: float, first: bool, lines: int) -> None:
    now = iter([0.0])
    backend = ScriptedBackend(answered("line\n\n" * lines))
    async with opened(backend, size=(80, 24), clock=lambda: next(now, seconds)) as (app, pilot):
        await reach(pilot, await ask(app, pilot, "all of it?"), State.ANSWERED)
        await until(pilot, lambda: app.ask.sources.display)
        await until(pilot, lambda: ("all of it?" in seen(app)) == first)
        assert (app.ask.conversation.scroll_y == app.ask.conversation.max_scroll_y) != first


@pytest.mark.asyncio
async def test_a_long_session_keeps_only_its_newest_exchanges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversation, "_KEPT", 3)
    async with opened(ScriptedBackend(answered("Short.", [source(1)]))) as (app, pilot):
        for number in range(5):
            await reach(pilot, await ask(app, pilot, f"question {number}"), State.ANSWERED)
        assert len(app.ask.conversation.exchanges) == 3
        assert app.ask.conversation.exchanges[-1].question == "question 4"


@pytest.mark.asyncio
async def test_timeouts_are_told_like_any_error() -> None:
    async with opened(ScriptedBackend([ChatModelTimeoutError("No first token within 300 s.")])) as (app, pilot):
        await reach(pilot, await ask(app, pilot), State.FAILED)
        assert "No first token within 300 s." in seen(app)
