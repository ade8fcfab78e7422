"""What a session remembers: the questions typed, and the turns that a next question may refer to."""

from __future__ import annotations

from typing import Final

from ragpilot.types import Turn

_EXCHANGES: Final = 4
_CHARACTERS: Final = 4_000
"""Of each earlier question and answer."""
_BYTES: Final = 16_000
"""Of all turns together: a request, with a long question, must stay below the server's 64 kB."""


class Memory:
    """The last answered exchanges of a conversation, as they are sent with the next question."""

    def __init__(self) -> None:
        self._exchanges: list[tuple[str, str]] = []

    def add(self, question: str, answer: str) -> None:
        """Remember an answered question; what found nothing has nothing to refer to and is not told."""
        self._exchanges = [*self._exchanges, (question[:_CHARACTERS], answer[:_CHARACTERS])][-_EXCHANGES:]
        while sum(len(f"{asked}{answered}".encode()) for asked, answered in self._exchanges) > _BYTES:
            del self._exchanges[0]

    def clear(self) -> None:
        """Forget: a new conversation begins."""
        self._exchanges.clear()

    def turns(self) -> tuple[Turn, ...]:
        """Oldest first, question and answer by turns."""
        return tuple(
            turn for question, answer in self._exchanges for turn in (Turn("user", question), Turn("assistant", answer))
        )


class History:
    """The questions typed so far, walked through backwards and forwards; the unfinished one waits at the end."""

    def __init__(self) -> None:
        self._questions: list[str] = []
        self._at = 0
        self._draft = ""

    def add(self, question: str) -> None:
        """Append a question, unless it repeats the last one, and stand behind it."""
        if self._questions[-1:] != [question]:
            self._questions.append(question)
        self._at = len(self._questions)
        self._draft = ""

    def previous(self, current: str) -> str | None:
        """The question before; None at the first. ``current`` is kept when it is the unfinished one."""
        if self._at == 0:
            return None
        if self._at == len(self._questions):
            self._draft = current
        self._at -= 1
        return self._questions[self._at]

    def next(self) -> str | None:
        """The question after, at the end the unfinished one; None when already there."""
        if self._at == len(self._questions):
            return None
        self._at += 1
        return self._draft if self._at == len(self._questions) else self._questions[self._at]
