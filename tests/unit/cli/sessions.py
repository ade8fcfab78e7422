"""A session that answers as it is told, in the place of the one that commands open."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ragpilot import cli_commands, cli_index, cli_status
from ragpilot.cli_session import IngestEvent, Session
from ragpilot.config import Environment
from ragpilot.errors import RagPilotError
from ragpilot.events import AnswerEvent, Done, Sources, Token
from ragpilot.types import (
    Bounds,
    CorpusInfo,
    EmbedderIdentity,
    Health,
    IndexStats,
    IngestReport,
    LeftOut,
    NearMiss,
    Outcome,
    Source,
)

SOURCE = Source("src/app.py", "App.run", 0.7123, "id-1", "run", 10, 42, "src/app.py:10-42", "code-python")
ANSWER: list[AnswerEvent] = [
    Token("It runs "),
    Token("at start [1]."),
    Sources((SOURCE,)),
    Done(Outcome.ANSWERED, "r1", model="m"),
]
NOT_FOUND: list[AnswerEvent] = [
    Token("Not found in the indexed sources."),
    Sources(()),
    Done(
        Outcome.NOT_FOUND,
        "r2",
        near_misses=(NearMiss("docs/a.md", None, 3, 3, 0.31, "floor", 0.35),),
        warnings=("two readings",),
    ),
]
BOUNDS = Bounds(0.35, "embedder", None, "settings")
STATS = IndexStats(
    "default", 12, datetime(2026, 1, 2, tzinfo=UTC), 3, {"docs-markdown": 2, "code-python": 10}, 1.0, 0.5,
    EmbedderIdentity("minilm", 384), BOUNDS, {"ignored": 1200, "binary": 3},
)  # fmt: skip


def report(outcome: Any = "complete", *, failed: int = 0, left_out: int = 0) -> IngestReport:
    lost = tuple(LeftOut(f"bad{n}.py", "unreadable", "why") for n in range(failed))
    left = tuple(LeftOut(f"x{n}.png", "binary") for n in range(left_out))
    hidden = (LeftOut("c.py", "github-token, jwt"),) * left_out
    return IngestReport("default", outcome, 2, 1, 1000, 0, 5432, 30, left, lost, 1.25, 0.5, ("careful",), hidden)


class FakeSession:
    """Gives what it was made with; an error instead of an event is raised."""

    def __init__(
        self,
        events: list[AnswerEvent | RagPilotError] | None = None,
        *,
        found: dict[str, Any] | None = None,
        runs: list[list[IngestEvent | RagPilotError]] | None = None,
        address: str | None = None,
    ) -> None:
        self.address = address
        self.events = events or []
        self.found = found or {}
        self.runs = runs or []
        self.asked: list[Any] = []
        self.opened: list[tuple[Environment, str]] = []

    async def ask(self, question: str, *, top_k: int | None, corpus: str | None) -> AsyncGenerator[AnswerEvent, None]:
        self.asked.append((question, top_k, corpus))
        for event in self.events:
            if isinstance(event, RagPilotError):
                raise event
            yield event

    async def search(self, question: str, *, k: int, corpus: str | None) -> dict[str, Any]:
        self.asked.append((question, k, corpus))
        return self.found

    async def index(
        self, corpus: str, *, path: Path | None, rebuild: bool, bodies: bool, broad: bool
    ) -> AsyncGenerator[IngestEvent, None]:
        self.asked.append((corpus, path, rebuild, bodies, broad))
        for event in self.runs.pop(0):
            if isinstance(event, RagPilotError):
                raise event
            yield event

    async def stats(self, corpus: str | None) -> IndexStats:
        return STATS

    async def corpora(self) -> list[CorpusInfo]:
        return [CorpusInfo("default", True, 12, None, 384, "minilm")]

    async def health(self) -> dict[str, Health]:
        return {"store": Health(True, "open"), "model": Health(False, "away\x1b[31m")}


def install(monkeypatch: pytest.MonkeyPatch, session: FakeSession) -> FakeSession:
    @asynccontextmanager
    async def opened(environment: Environment, role: str, environ: Mapping[str, str]) -> AsyncIterator[Session]:
        session.opened.append((environment, role))
        yield session

    for module in (cli_commands, cli_index, cli_status):
        monkeypatch.setattr(module, "open_session", opened)
    for module in (cli_commands, cli_status):
        monkeypatch.setattr(module, "untouched", lambda *_: False)
    return session
