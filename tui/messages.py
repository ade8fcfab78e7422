"""What workers report and widgets ask for. Workers touch no widget: handlers take these and change the screen."""

from __future__ import annotations

from dataclasses import dataclass

from textual.message import Message

from ragpilot.errors import RagPilotError
from ragpilot.events import AnswerEvent
from ragpilot.types import CorpusInfo, Health, IndexStats, IngestProgress, IngestReport, Source, SourceText
from tui.backend import Backend


def as_error(error: Exception) -> RagPilotError:
    """The error itself where it is one of ours; a defect, in words that can be reported."""
    return error if isinstance(error, RagPilotError) else RagPilotError(f"{type(error).__name__}: {error}")


@dataclass
class ScreenReady(Message):
    """Every widget is there: now news may come."""


@dataclass
class Connected(Message):
    """A server was found or started."""

    backend: Backend


@dataclass
class ConnectFailed(Message):
    """No server could be found or started."""

    error: RagPilotError


@dataclass
class StatusArrived(Message):
    """What the server says of a corpus and of itself; ``stats`` is None where ``error`` kept them away."""

    stats: IndexStats | None
    health: dict[str, Health]
    error: RagPilotError | None = None


@dataclass
class IndexAdvanced(Message):
    """A run of ingestion goes on."""

    progress: IngestProgress


@dataclass
class IndexEnded(Message):
    """A run has ended; ``asked``: by the user, who waits to hear of it."""

    report: IngestReport
    asked: bool


@dataclass
class IndexFailed(Message):
    """A run was refused, or broke off."""

    error: RagPilotError
    asked: bool


@dataclass
class AnswerAdvanced(Message):
    """The next event of the answer that exchange ``number`` waits for."""

    number: int
    event: AnswerEvent


@dataclass
class AnswerFailed(Message):
    """The answer could not be had, or broke off."""

    number: int
    error: RagPilotError


@dataclass
class CorporaArrived(Message):
    """The corpora there are to ask about."""

    corpora: list[CorpusInfo]


@dataclass
class SourceArrived(Message):
    """The text of a source."""

    text: SourceText


@dataclass
class SourceOpened(Message):
    """A source was chosen, in the list or by its number in an answer."""

    source: Source


@dataclass
class ServerLost(Message):
    """The server went away; a question waits for it to be found again."""


@dataclass
class Trouble(Message):
    """Something asked for beside an answer failed; it is told and nothing else changes."""

    error: RagPilotError
