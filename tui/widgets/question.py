"""The question box."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Final

from textual import events, on
from textual.binding import BindingType
from textual.content import Content
from textual.message import Message
from textual.widgets import TextArea

from tui import keys
from tui.memory import History
from tui.text import clean_lines

PLACEHOLDER: Final = "Ask about the code"


class QuestionBox(TextArea):
    """Takes questions of one line or many: Enter asks, and a paste keeps all its lines and never asks by itself."""

    BINDINGS: ClassVar[list[BindingType]] = [*keys.QUESTION]

    @dataclass
    class Submitted(Message):
        """A question was asked; the box is empty already. Whoever cannot take it gives it back."""

        question: str

    @dataclass
    class Pressed(Message, bubble=False):
        """A key was pressed that acts on what was typed before it.

        Actions of keys with priority run at once, while letters typed before them may still wait to be inserted.
        This waits behind them.
        """

        act: Callable[[], object]

    def __init__(self) -> None:
        super().__init__(
            soft_wrap=True,
            show_line_numbers=False,
            tab_behavior="focus",
            highlight_cursor_line=False,
            placeholder=Content(PLACEHOLDER),
        )
        self.asked = History()

    def give_back(self, question: str) -> None:
        """The question was not taken: it stands in the box again, before what was typed since."""
        since = self.text
        self.text = f"{question}\n{since}" if since else question
        self.move_cursor(self.document.end)

    def on_paste(self, event: events.Paste) -> None:
        """Insert pasted text whole: terminals send its line breaks as CR, and it may hold what a terminal obeys."""
        event.stop()
        event.prevent_default()
        if result := self._replace_via_keyboard("\n".join(clean_lines(event.text)), *self.selection):
            self.move_cursor(result.end_location)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Earlier and later questions are reached from the first and the last line alone."""
        if action == "earlier":
            return self.navigator.is_first_wrapped_line(self.cursor_location)
        if action == "later":
            return self.navigator.is_last_wrapped_line(self.cursor_location)
        return super().check_action(action, parameters)

    def action_submit(self) -> None:
        """Ask, unless there is nothing to ask."""
        self.post_message(self.Pressed(self._submit))

    def action_newline(self) -> None:
        """Begin a new line."""
        self.post_message(self.Pressed(lambda: self.insert("\n")))

    def action_clear(self) -> None:
        """Begin anew: what was typed or pasted goes, however long it is; undo brings it back."""
        self.clear()

    @on(Pressed)
    def _act(self, event: Pressed) -> None:
        event.act()

    def _submit(self) -> None:
        if question := self.text.strip():
            self.asked.add(question)
            self.clear()
            self.post_message(self.Submitted(question))

    def action_earlier(self) -> None:
        """Show the question before."""
        self._show(self.asked.previous(self.text))

    def action_later(self) -> None:
        """Show the question after, in the end the unfinished one."""
        self._show(self.asked.next())

    def _show(self, question: str | None) -> None:
        if question is not None:
            self.text = question
            self.move_cursor(self.document.end)
