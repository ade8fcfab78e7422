"""One question and what became of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Markdown, Static

from ragpilot.errors import IndexMismatchError, RagPilotError
from ragpilot.events import Done
from ragpilot.types import Outcome, Source
from tui.keys import REBUILD, Keymap
from tui.messages import SourceOpened
from tui.text import clean_line, clean_lines, count, duration, plain
from tui.widgets.answer import Answer
from tui.widgets.blocks import cited_number
from tui.widgets.refusal import Failure, NotFound

EXTRACT_LABEL: Final = "Extract"
_QUESTION_LINES: Final = 12
_MODEL_SECONDS: Final = 2.0


class ExchangeState(StrEnum):
    """Where an exchange stands."""

    WAITING = "waiting"
    STREAMING = "streaming"
    ANSWERED = "answered"
    UNKNOWN = "unknown"
    NOT_FOUND = "not-found"
    STOPPED = "stopped"
    FAILED = "failed"


class Exchange(Vertical):
    """A question, its answer or what stands in its place, and a line about how it went.

    ``number`` counts from 1 in a session; ``sources`` are those of the answer, in the order in which ``[n]`` cites.
    """

    @dataclass
    class Chosen(Message):
        """The reader came back to this exchange."""

        exchange: Exchange

    def __init__(self, number: int, question: str, keymap: Keymap) -> None:
        super().__init__()
        self.number = number
        self.question = question
        self._keymap = keymap
        self.sources: tuple[Source, ...] = ()
        self.state = ExchangeState.WAITING
        self.reconnected = False
        """A lost server was looked for again on behalf of this question."""
        self._answer = Answer()
        self._meta = Static(markup=False, classes="meta")

    def compose(self) -> ComposeResult:
        """Question, answer, meta line; a refusal is mounted before the meta line when there is one."""
        yield Static(Content.assemble(("❯ ", "$primary bold"), _abridged(self.question)), markup=False, classes="asked")
        yield self._answer
        yield self._meta

    def on_mount(self) -> None:
        """There is no answer yet."""
        self._answer.display = False

    @property
    def answer(self) -> str:
        """The answer as far as it came, as it was sent."""
        return self._answer.text

    @property
    def _again(self) -> str:
        return f"{self._keymap.name('answer.retry')} asks again."

    def on_click(self) -> None:
        """A click anywhere on an exchange brings back its sources."""
        self.post_message(self.Chosen(self))

    @on(Markdown.LinkClicked)
    def _open_citation(self, event: Markdown.LinkClicked) -> None:
        """A citation opens the source it names; an answer holds no other links."""
        event.stop()
        number = cited_number(event.href)
        if number is not None and 0 < number <= len(self.sources):
            self.post_message(SourceOpened(self.sources[number - 1]))

    async def wait(self, words: str) -> None:
        """Nothing is asked yet; ``words`` say what is waited for."""
        await self._clear_refusal()
        self.state = ExchangeState.WAITING
        self._meta.update(plain(words))

    async def begin(self) -> None:
        """The question is on its way, for the first time or again."""
        await self._clear_refusal()
        if self.answer:
            await self._answer.reset()
        self._answer.display = False
        self.sources = ()
        self.state = ExchangeState.STREAMING
        self.tick(0.0)

    async def _clear_refusal(self) -> None:
        await self.query("NotFound, Failure").remove()

    def tick(self, seconds: float) -> None:
        """Show that time passes."""
        # Searching takes a fraction of a second; what takes longer is a model that loads, reads, or answers others.
        before = "Searching the sources" if seconds < _MODEL_SECONDS else "Waiting for the model"
        doing = "Answering" if self.answer else before
        self._meta.update(f"{doing} … {duration(seconds)}  ·  {self._keymap.name('answer.stop')} stops")

    def feed(self, text: str) -> None:
        """Take a piece of the answer."""
        self._answer.display = True
        self._answer.feed(text)

    async def finish(self, done: Done, seconds: float) -> None:
        """The answer is complete."""
        if done.outcome is Outcome.NOT_FOUND:
            await self._answer.settle()
            self._answer.display = False
            lacking = NotFound(done.near_misses, done.warnings, evidence=done.plan.get("evidence", 0.0))
            await self.mount(lacking, before=self._meta)
            self.state = ExchangeState.NOT_FOUND
            self._meta.update(f"Searched in {duration(seconds)}.")
            return
        await self._answer.settle()
        self.state = ExchangeState.UNKNOWN if done.outcome is Outcome.UNKNOWN else ExchangeState.ANSWERED
        self._meta.update(self._summary(done, seconds))

    async def stop(self) -> None:
        """The user has heard enough; what came stays."""
        await self._answer.settle()
        self.state = ExchangeState.STOPPED
        self._meta.update(f"Stopped. {self._again}")

    async def fail(self, error: RagPilotError, request_id: str = "") -> None:
        """The answer could not be had, or broke off; what came stays."""
        await self._answer.settle()
        again = self._again
        if isinstance(error, IndexMismatchError):
            again = f"{self._keymap.name('app.commands')} and “{REBUILD}” does that here; then {again}"
        await self.mount(Failure(error, again, request_id=request_id), before=self._meta)
        self.state = ExchangeState.FAILED
        self._meta.update("")

    def _summary(self, done: Done, seconds: float) -> Content:
        cited = sum(source.cited for source in self.sources)
        parts = [f"{count(len(self.sources), 'source')}, {cited} cited", duration(seconds)]
        if done.extract:
            parts.insert(0, "quoted from the sources, no language model")
        elif done.model:
            parts.insert(0, clean_line(done.model))
        if done.plan.get("searched"):
            parts.append("with the earlier question")
        notes = [*done.warnings]
        if done.unsupported:
            numbers = ", ".join(f"[{number}]" for number in done.unsupported)
            notes.insert(0, f"{numbers} in this answer names no source.")
        lines = [Content("  ·  ".join(parts)), *(plain(f"! {clean_line(note)}", "$text-warning") for note in notes)]
        if done.extract:
            lines[0] = Content.assemble((f" {EXTRACT_LABEL} ", "$text-accent on $accent-muted bold"), " ", lines[0])
        return Content("\n").join(lines)


def _abridged(question: str) -> Content:
    """A long paste is told by its first lines; the whole of it was asked."""
    lines = clean_lines(question)
    if len(lines) <= _QUESTION_LINES:
        return plain("\n  ".join(lines), "bold")
    shown = plain("\n  ".join(lines[: _QUESTION_LINES - 1]), "bold")
    return Content.assemble(shown, (f"\n  … {count(len(lines) - _QUESTION_LINES + 1, 'more line')}", "dim"))
