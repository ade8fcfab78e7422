from __future__ import annotations

import pytest
from textual import events

from ragpilot.types import QUESTION_MAX_CHARS
from tests.tui.host import ask, opened, reach, toasts, until
from tests.tui.scripted import ScriptedBackend
from tui.memory import History, Memory
from tui.widgets.exchange import ExchangeState as State

TRACEBACK = ["Traceback (most recent call last):", *[f'  File "x.py", line {n}, in f' for n in range(28)], "ValueError"]


@pytest.mark.asyncio
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
async def test_a_paste_keeps_all_its_lines_and_does_not_ask(end: str) -> None:
    backend = ScriptedBackend()
    async with opened(backend) as (app, pilot):
        app.ask.question.post_message(events.Paste(end.join(TRACEBACK)))
        await until(pilot, lambda: app.ask.question.text)
        assert app.ask.question.text.split("\n") == TRACEBACK
        assert backend.asked == []
        await pilot.press("enter")
        await until(pilot, lambda: backend.asked)
        assert backend.asked[0].question == "\n".join(TRACEBACK)


@pytest.mark.asyncio
async def test_a_paste_loses_what_a_terminal_would_obey() -> None:
    async with opened(ScriptedBackend()) as (app, pilot):
        app.ask.question.post_message(events.Paste("a\x1b]52;c;eA==\x07b\u202ec\x9bd"))
        await until(pilot, lambda: app.ask.question.text)
        assert app.ask.question.text == "a]52;c;eA==bcd"


@pytest.mark.asyncio
async def test_a_paste_that_was_none_is_cleared_at_once_and_comes_back() -> None:
    pasted = "where is the budget? " * 5_000
    async with opened(ScriptedBackend()) as (app, pilot):
        app.ask.question.post_message(events.Paste(f"{pasted}\n{pasted}"))
        await until(pilot, lambda: app.ask.question.text)
        await pilot.press("up", "left", "ctrl+u")
        assert app.ask.question.text == ""
        await pilot.press("a")
        assert app.ask.question.text == "a"
        await pilot.press("ctrl+u", "ctrl+z", "ctrl+z", "ctrl+z")
        assert app.ask.question.text == f"{pasted}\n{pasted}"


@pytest.mark.asyncio
@pytest.mark.parametrize("key", ["shift+enter", "ctrl+j"])
async def test_a_new_line_does_not_ask(key: str) -> None:
    backend = ScriptedBackend()
    async with opened(backend) as (app, pilot):
        await pilot.press("a", key, "b")
        assert app.ask.question.text == "a\nb"
        assert backend.asked == []
        assert app.ask.question.size.height == 2, "the box grows with the question"


@pytest.mark.asyncio
async def test_keys_in_one_burst_act_in_their_order() -> None:
    """As a terminal without bracketed paste sends a paste, or a fast typist's line arrives."""
    backend = ScriptedBackend(hold=True)
    async with opened(backend) as (app, pilot):
        for key in ("o", "n", "e", "enter", "t", "w", "o", "ctrl+j", "x"):
            app.post_message(events.Key(key, key if len(key) == 1 else None))
        await until(pilot, lambda: backend.asked and app.ask.question.text.endswith("x"))
        assert backend.asked[0].question == "one"
        assert app.ask.question.text == "two\nx"


@pytest.mark.asyncio
async def test_nothing_is_not_asked() -> None:
    backend = ScriptedBackend()
    async with opened(backend) as (_, pilot):
        await pilot.press("enter", "space", "ctrl+j", "enter")
        await pilot.pause()
        assert backend.asked == []


@pytest.mark.asyncio
async def test_a_question_over_the_limit_is_refused_here() -> None:
    backend = ScriptedBackend()
    async with opened(backend) as (app, pilot):
        app.ask.question.text = "x" * (QUESTION_MAX_CHARS + 1)
        await pilot.press("enter")
        await until(pilot, lambda: toasts(app))
        assert toasts(app) == ["The question has 16,001 characters; the limit is 16,000."]
        assert backend.asked == []
        assert app.ask.question.text


@pytest.mark.asyncio
async def test_up_and_down_walk_through_what_was_asked() -> None:
    async with opened(ScriptedBackend()) as (app, pilot):
        for question in ("first?", "second?\nof two lines"):
            await reach(pilot, await ask(app, pilot, question), State.ANSWERED)
        box = app.ask.question
        await pilot.press("d", "r", "a", "f", "t", "up")
        assert box.text == "second?\nof two lines"
        await pilot.press("up")
        assert box.text == "second?\nof two lines", "the first up moves to its first line"
        await pilot.press("up")
        assert box.text == "first?"
        await pilot.press("up", "down", "down", "down")
        assert box.text == "draft"
        await pilot.press("down")
        assert box.text == "draft"


@pytest.mark.asyncio
async def test_keys_can_be_remapped_and_are_named_as_they_are() -> None:
    backend = ScriptedBackend(hold=True)
    async with opened(backend, keymap={"question.ask": "ctrl+s", "answer.stop": "ctrl+g"}) as (app, pilot):
        await pilot.press("a", "enter")
        assert backend.asked == []
        await pilot.press("ctrl+s")
        await until(pilot, lambda: backend.asked)
        await pilot.press("escape")
        await pilot.pause()
        exchange = app.ask.conversation.last
        assert exchange is not None
        assert exchange.state is State.STREAMING
        await pilot.press("ctrl+g")
        await reach(pilot, exchange, State.STOPPED)


def test_history_keeps_no_repetition() -> None:
    history = History()
    assert history.previous("draft") is None
    assert history.next() is None
    for question in ("a", "b", "b"):
        history.add(question)
    assert [history.previous("draft"), history.previous(""), history.previous("")] == ["b", "a", None]
    assert [history.next(), history.next(), history.next()] == ["b", "draft", None]


def test_memory_holds_the_last_turns_within_what_a_request_may_carry() -> None:
    memory = Memory()
    for number in range(9):
        memory.add(f"question {number}", "answer")
    assert [turn.content for turn in memory.turns()][::2] == [f"question {number}" for number in range(5, 9)]
    memory.add("long", "é" * 100_000)
    assert sum(len(turn.content.encode()) for turn in memory.turns()) <= 16_000
    assert [turn.role for turn in memory.turns()] == ["user", "assistant"] * (len(memory.turns()) // 2)
    memory.clear()
    assert memory.turns() == ()
