"""What stands in an answer's place when there is none: the calm not-found answer, and the failure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from ragpilot.errors import RagPilotError
from ragpilot.near_misses import gate_missed, score_of
from ragpilot.types import NOT_FOUND_ANSWER, NearMiss
from tui.text import clean_line, plain, shorten_start

NEAR_MISSES: Final = "Closest, but under the bound"
_SHOWN: Final = 5


class NotFound(Vertical):
    """The not-found answer: not an error, and nothing of it is a source."""

    def __init__(self, near_misses: Sequence[NearMiss], notes: Sequence[str] = (), *, evidence: float = 0.0) -> None:
        super().__init__()
        self._evidence = evidence
        self._near_misses = near_misses[:_SHOWN]
        self._notes = notes

    def compose(self) -> ComposeResult:
        """The answer's words, what they mean, and what came closest."""
        yield Static(NOT_FOUND_ANSWER, markup=False, classes="headline")
        yield Static("No passage is close enough to this question, so there is no answer.", markup=False)
        for note in self._notes:
            yield Static(plain(note), markup=False, classes="note")
        if self._near_misses:
            lacking = gate_missed(self._near_misses, self._evidence)
            title = f"{NEAR_MISSES}: {lacking}" if lacking else NEAR_MISSES
            yield Static(title, markup=False, classes="near-title")
            for miss in self._near_misses:
                yield NearMissRow(miss)


class NearMissRow(Static):
    """One rejected passage: its score, the floor it missed, and where it stands. Not a source: it cannot be opened."""

    def __init__(self, miss: NearMiss) -> None:
        super().__init__(markup=False)
        self._miss = miss

    def render(self) -> Content:
        """One line, the path cut from its start where it does not fit."""
        miss = self._miss
        score = f"{score_of(miss, needs='needs')}  "
        place = f"{clean_line(miss.path)}:{miss.start_line}-{miss.end_line}"
        symbol = f"  {clean_line(miss.symbol)}" if miss.symbol else ""
        place = shorten_start(place, max(self.size.width - len(score), 8))
        line = Content.assemble((score, "dim"), place, (symbol, "dim"))
        return line.truncate(self.size.width, ellipsis=True) if self.size.width else line


class Failure(Vertical):
    """What happened, and what to do."""

    def __init__(self, error: RagPilotError, again: str, *, title: str = "No answer", request_id: str = "") -> None:
        super().__init__()
        self._title = title
        self._error = error
        self._again = again
        self._request_id = request_id

    def compose(self) -> ComposeResult:
        """Title, message, hint, the key that tries again."""
        yield Static(plain(self._title), markup=False, classes="headline")
        yield Static(plain(self._error.message), markup=False)
        if self._error.hint:
            yield Static(plain(self._error.hint), markup=False, classes="hint")
        request = f"  ·  request {clean_line(self._request_id)}" if self._request_id else ""
        yield Static(plain(f"{self._again}{request}"), markup=False, classes="again")
