"""The one screen that matters: questions, answers, sources."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Footer, Static

from ragpilot.errors import RagPilotError, ServerUnreachableError
from ragpilot.events import Done, Failed, Sources, Token, error_from_wire
from ragpilot.types import QUESTION_MAX_CHARS, Outcome, Source, Turn
from tui import keys
from tui.backend import Backend
from tui.keys import Keymap
from tui.memory import Memory
from tui.messages import AnswerAdvanced, AnswerFailed, ScreenReady, ServerLost, SourceOpened, as_error
from tui.screens.source import SourceScreen
from tui.text import clean, clean_line, count
from tui.widgets.conversation import Conversation
from tui.widgets.exchange import Exchange, ExchangeState
from tui.widgets.question import QuestionBox
from tui.widgets.sources import SourcesPanel, place
from tui.widgets.status import EXTRACT, StatusBar

_ANSWER = "answer"
_UNREAD_SECONDS = 2.0
"""An answer that was complete sooner has not been read while it came: it is shown from its beginning."""
_WIDTHS: list[tuple[int, str]] = [(0, "-narrow"), (100, "-wide")]
_HEIGHTS: list[tuple[int, str]] = [(0, "-short"), (20, "-tall")]


class AskScreen(Screen[None]):
    """Owns the conversation. The app tells it about the server; it asks the server by itself."""

    BINDINGS: ClassVar[list[BindingType]] = [*keys.ASK]
    HORIZONTAL_BREAKPOINTS = _WIDTHS
    VERTICAL_BREAKPOINTS = _HEIGHTS

    def __init__(self, label: str, keymap: Keymap, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._label = label
        self._clock = clock
        self._backend: Backend | None = None
        self._corpus: str | None = None
        self._searchable = False
        self._start_failed = False
        self._memory = Memory()
        self._current: Exchange | None = None
        self._began = 0.0
        self.conversation = Conversation(label, keymap)
        self.sources = SourcesPanel()
        self.question = QuestionBox()
        self.status = StatusBar()

    def compose(self) -> ComposeResult:
        """Header, conversation with the sources beside or below it, question, status, keys."""
        label = clean_line(self._label)
        yield Static(
            Content.assemble(("RagPilot", "$primary bold"), (f"  {label}", "$muted")), markup=False, id="header"
        )
        with Container(id="main"):
            yield self.conversation
            yield self.sources
        yield self.question
        yield self.status
        yield Footer(compact=True)

    def on_mount(self) -> None:
        """Be ready to type."""
        self.question.focus()
        self._ticker = self.set_interval(0.1, self._tick, pause=True)
        self.post_message(ScreenReady())

    # told by the app

    def starting(self) -> None:
        """A server is looked for."""
        self._start_failed = False
        self.status.change(notice="Starting …", trouble=False)
        self.call_later(self.conversation.welcome.clear_failure)
        self.refresh_bindings()

    async def connected(self, backend: Backend, corpus: str | None) -> None:
        """There is a server."""
        self._backend, self._corpus = backend, corpus
        self.status.change(notice="")
        if self._current is not None:
            await self._begin_or_wait(self._current)

    async def start_failed(self, error: RagPilotError) -> None:
        """There is no server, and none can be had."""
        self._backend = None
        self._start_failed = True
        self.status.change(notice="not connected", trouble=True, health={})
        if self._current is not None:
            await self._finish(self._current.fail(error))
        else:
            await self.conversation.welcome.fail(error)
        self.refresh_bindings()

    async def set_searchable(self, searchable: bool) -> None:
        """Whether a question would find anything yet."""
        self._searchable = searchable
        if searchable and self._current is not None and self._current.state is ExchangeState.WAITING:
            await self._begin_or_wait(self._current)

    async def set_corpus(self, corpus: str) -> None:
        """Ask another corpus, in a new conversation."""
        self._corpus = corpus
        await self.action_new_conversation()

    # asking

    @on(QuestionBox.Submitted)
    async def _ask(self, event: QuestionBox.Submitted) -> None:
        event.stop()
        if self._current is not None:
            self.question.give_back(event.question)
            self.notify("An answer is still being written; Esc stops it.", markup=False)
            return
        if len(event.question) > QUESTION_MAX_CHARS:
            self.question.give_back(event.question)
            length, limit = count(len(event.question), "character"), f"{QUESTION_MAX_CHARS:,}"
            self.notify(f"The question has {length}; the limit is {limit}.", severity="warning", markup=False)
            return
        await self._show_sources(())
        self._current = await self.conversation.add(event.question)
        await self._begin_or_wait(self._current)

    async def _begin_or_wait(self, exchange: Exchange) -> None:
        if self._backend is None:
            await exchange.wait("Waiting for the server …")
            if self._start_failed:
                self.post_message(ServerLost())
        elif not self._searchable:
            await exchange.wait("Waiting for the index: there is nothing to search yet …")
        else:
            self._current = exchange
            await exchange.begin()
            self._began = self._clock()
            self._ticker.resume()
            self._stream(self._backend, exchange.number, exchange.question, self._memory.turns())
        self.refresh_bindings()

    @work(exclusive=True, group=_ANSWER, exit_on_error=False)
    async def _stream(self, backend: Backend, number: int, question: str, conversation: tuple[Turn, ...]) -> None:
        try:
            answer = backend.ask(question, corpus=self._corpus, conversation=conversation)
            async with aclosing(answer) as events:
                async for event in events:
                    self.post_message(AnswerAdvanced(number, event))
        except Exception as error:  # noqa: BLE001 - a defect must end this exchange, neither hang it nor the program
            self.post_message(AnswerFailed(number, as_error(error)))

    @on(AnswerAdvanced)
    async def _advance(self, event: AnswerAdvanced) -> None:
        exchange = self._current
        if exchange is None or exchange.number != event.number:
            return  # of an answer that was stopped
        match event.event:
            case Token(text):
                exchange.feed(text)
            case Sources(sources):
                exchange.sources = sources
            case Done() as done:
                await self._complete(exchange, done)
            case Failed() as failed:
                error = error_from_wire(failed.code, failed.message)
                await self._finish(exchange.fail(error, failed.request_id))

    async def _complete(self, exchange: Exchange, done: Done) -> None:
        if done.outcome is not Outcome.NOT_FOUND:
            self._memory.add(exchange.question, exchange.answer)
        if done.model is not None:
            self.status.change(model=EXTRACT if done.extract else done.model)
        seconds, following = self._clock() - self._began, self.conversation.is_vertical_scroll_end
        await self._finish(exchange.finish(done, seconds))
        await self._show_sources(exchange.sources)
        if following and seconds < _UNREAD_SECONDS:
            # The first refresh gives the sources their room; by the second it is known what room is left.
            self.call_after_refresh(self.call_after_refresh, self.conversation.show_beginning, exchange)

    @on(AnswerFailed)
    async def _fail(self, event: AnswerFailed) -> None:
        exchange = self._current
        if exchange is None or exchange.number != event.number:
            return
        if isinstance(event.error, ServerUnreachableError) and not exchange.answer and not exchange.reconnected:
            exchange.reconnected = True
            self._backend = None
            self._ticker.pause()
            await exchange.wait("The server is gone; looking for it again …")
            self.post_message(ServerLost())
            return
        await self._finish(exchange.fail(event.error))

    async def _finish(self, ending: Awaitable[None]) -> None:
        """Nothing runs any more; ``ending`` gives the exchange its last look."""
        self._current = None
        self._ticker.pause()
        await ending
        self.refresh_bindings()

    def _tick(self) -> None:
        if self._current is not None and self._current.state is ExchangeState.STREAMING:
            self._current.tick(self._clock() - self._began)

    # sources

    async def _show_sources(self, sources: Sequence[Source]) -> None:
        await self.sources.show(sources)
        self.refresh_bindings()

    @on(SourceOpened)
    async def _open(self, event: SourceOpened) -> None:
        event.stop()
        if self._backend is not None:
            await self.app.push_screen(SourceScreen(self._backend, event.source, self._corpus))

    @on(Exchange.Chosen)
    async def _choose(self, event: Exchange.Chosen) -> None:
        event.stop()
        await self._show_sources(event.exchange.sources)

    # keys

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keys are offered where they do something."""
        last = self.conversation.last
        match action:
            case "stop":
                return self._current is not None
            case "retry":
                again = last is not None and last.state in (ExchangeState.FAILED, ExchangeState.STOPPED)
                return self._current is None and (again or self._start_failed)
            case "copy_answer":
                return last is not None and last is not self._current and bool(last.answer)
            case "focus_sources":
                return self.sources.display
            case _:
                return super().check_action(action, parameters)

    async def action_stop(self) -> None:
        """Stop the answer: its connection is closed, so the model stops too."""
        if (exchange := self._current) is not None:
            self.workers.cancel_group(self, _ANSWER)
            await self._finish(exchange.stop())

    async def action_retry(self) -> None:
        """Try again what failed or was stopped."""
        last = self.conversation.last
        if last is not None and last.state in (ExchangeState.FAILED, ExchangeState.STOPPED):
            last.reconnected = False
            self._current = last
            await self._begin_or_wait(last)
        elif self._start_failed:
            self.post_message(ServerLost())

    async def action_new_conversation(self) -> None:
        """Forget what was said, on the screen and in what is sent along."""
        await self.action_stop()
        self._memory.clear()
        await self._show_sources(())
        await self.conversation.clear()
        self.question.focus()
        self.refresh_bindings()

    def action_focus_question(self) -> None:
        """Back to typing."""
        self.question.focus()

    def action_focus_sources(self) -> None:
        """Into the list of sources."""
        self.sources.focus_list()

    def action_scroll_conversation(self, pages: int) -> None:
        """Read up or down without leaving the question."""
        if pages < 0:
            self.conversation.scroll_page_up(animate=False)
        else:
            self.conversation.scroll_page_down(animate=False)

    def action_copy_answer(self) -> None:
        """Put the last answer on the clipboard."""
        if (last := self.conversation.last) is not None and last.answer:
            self.app.copy_to_clipboard(clean(last.answer))
            self.notify("The answer is copied.", markup=False)

    def copy_source_path(self) -> None:
        """Put path and line of the chosen source on the clipboard."""
        if (source := self.sources.chosen) is not None:
            self.app.copy_to_clipboard(place(source))
            self.notify(f"Copied {place(source)}", markup=False)
