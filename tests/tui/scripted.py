"""A server of the same shape as ``tui.backend.Backend``, in memory: it says what a test has written down."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from ragpilot.errors import RagPilotError
from ragpilot.events import AnswerEvent, Done, Sources, Token
from ragpilot.types import (
    NOT_FOUND_ANSWER,
    Bounds,
    CorpusInfo,
    EmbedderIdentity,
    Health,
    IndexStats,
    IngestProgress,
    IngestReport,
    NearMiss,
    Outcome,
    Source,
    SourceText,
    Turn,
)
from tui.backend import Backend

EMBEDDER = EmbedderIdentity("minilm", 384)
BOUNDS = Bounds(0.35, "the embedder", 0.5, "the embedder")
INDEXED_AT = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)


def stats(points: int = 1204, *, share: float = 1.0, corpus: str = "default") -> IndexStats:
    return IndexStats(corpus, points, INDEXED_AT, 120, {"code-python": points}, share, share, EMBEDDER, BOUNDS)


def source(number: int, *, path: str = "app/budget.py", cited: bool = False, stale: bool = False) -> Source:
    return Source(
        file_path=path,
        symbol=f"Budget.fit_{number}",
        score=round(0.8 - number / 20, 4),
        id=f"00000000-0000-0000-0000-{number:012d}",
        title=f"Budget.fit_{number}",
        start_line=number * 10,
        end_line=number * 10 + 8,
        citation=f"{path}:{number * 10}",
        source_type="code-python",
        stale=stale,
        cited=cited,
    )


def done(outcome: Outcome = Outcome.ANSWERED, **fields: Any) -> Done:
    return Done(outcome, "7f3a9c", **{"model": "llama3.2:3b", **fields})


def report(**fields: Any) -> IngestReport:
    base: dict[str, Any] = {
        "corpus": "default",
        "outcome": "complete",
        "added": 0,
        "changed": 0,
        "unchanged": 120,
        "removed": 0,
        "chunks": 1204,
        "embedded": 0,
        "left_out": (),
        "failed": (),
        "seconds": 0.4,
        "seconds_to_searchable": 0.1,
    }
    return IngestReport(**{**base, **fields})


def progress(stage: Any = "headers", share: int = 40) -> IngestProgress:
    return IngestProgress(stage, share * 12, 1200, 120, 1200, 420.0, 3.0)


ANSWER = """\
The budget is enforced in `Budget.fit` [1]: blocks are added **best first** until the next one
would not fit, and what is left is cut [2].

```python
def fit(self, blocks: list[Block]) -> list[Block]:
    kept = []
    for block in blocks:
        if self.used + block.tokens > self.limit:
            break
        kept.append(block)
    return kept
```

1. A chunk cut to a stump is dropped.
2. Headers and separators count too.
"""

SOURCES = (
    source(1, cited=True),
    source(2, path="app/prompting/context/assembly_of_blocks_for_the_prompt.py", cited=True, stale=True),
    source(3, path="docs/budget.md"),
    source(4, path="tests/test_budget.py"),
)

NEAR_MISSES = (
    NearMiss("docs/guide.md", "Install", 10, 24, 0.31, "floor", 0.35),
    NearMiss(
        "app/very/long/path/to/a/module/that/does/not/fit/in/a/narrow/terminal/main.py", None, 1, 9, 0.28, "floor", 0.35
    ),
)


def answered(text: str = ANSWER, sources: Sequence[Source] = SOURCES, **fields: Any) -> list[AnswerEvent]:
    pieces = [text[at : at + 7] for at in range(0, len(text), 7)]
    return [*map(Token, pieces), Sources(tuple(sources)), done(**fields)]


def not_found() -> list[AnswerEvent]:
    return [
        Token(NOT_FOUND_ANSWER),
        Sources(()),
        done(Outcome.NOT_FOUND, model=None, near_misses=NEAR_MISSES),
    ]


HOSTILE = [
    "[/",
    "[/#888888]",
    "[b + should reply",
    "[00] foo bar",
    "[0] Hello",
    "list[int]",
    "x[-1]",
    "src/app/[id]/page.tsx:10",
    "[link=http://x]y",
    "[@click=app.quit]q",
    "[red]not red[/red]",
    "a\x1b[31mb",
    "\u202eabc",
    "\x1b]52;c;aGVsbG8=\x07",
    "👩‍👩‍👧",
    "[bold",
    "$primary",
    "[/bold][/bold]",
    "\ud800",
    "<b>bold</b> <!-- x -->",
    "[text](http://example.org)",
    "![alt](picture.png)",
    "see events.py and www.example.org",
]
"""Texts that are markup to somebody, or that a terminal would obey."""


def visible(text: str) -> str:
    """What of a text is to be seen: all that can be, and nothing read into it."""
    printable = "".join(char for char in text if char.isprintable() or char in "\u200d\ud800")
    return printable.replace("\ud800", "\ufffd")


@dataclass
class Asked:
    """A question as it arrived, and whether its stream was closed before its end."""

    question: str
    corpus: str | None
    conversation: tuple[Turn, ...]
    closed_early: bool = False
    closed: asyncio.Event = field(default_factory=asyncio.Event)


class ScriptedBackend(Backend):
    """``answers`` are given in turn, the last one again and again; an error among their events is raised.

    With ``hold`` set, an answer waits for ``release`` before its last two events (sources and done).
    """

    def __init__(
        self,
        *answers: Sequence[AnswerEvent | RagPilotError],
        points: int = 1204,
        run: Sequence[IngestProgress | IngestReport | RagPilotError] = (),
        hold: bool = False,
    ) -> None:
        super().__init__("http://127.0.0.1:9", None)
        self.answers = list(answers) or [answered()]
        self.run = list(run) or [report()]
        self.hold = hold
        self.release = asyncio.Event()
        self.run_release = asyncio.Event()
        self.run_release.set()
        self.asked: list[Asked] = []
        self.runs: list[tuple[str | None, bool]] = []
        self.given_stats: IndexStats | RagPilotError = stats(points)
        self.parts = {
            "store": Health(True, "embedded"),
            "embedder": Health(True, "minilm"),
            "model": Health(True, "llama3.2:3b"),
        }
        self.text = "".join(f"line {number}\n" for number in range(10, 19)).rstrip("\n")
        self.closed = False

    async def ask(
        self,
        question: str,
        *,
        top_k: int | None = None,
        corpus: str | None = None,
        conversation: Sequence[Turn] = (),
        focus: Sequence[str] = (),
    ) -> AsyncGenerator[AnswerEvent, None]:
        asked = Asked(question, corpus, tuple(conversation))
        self.asked.append(asked)
        events = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        asked.closed_early = True
        try:
            for at, event in enumerate(events):
                if self.hold and at == max(len(events) - 2, 0):
                    await self.release.wait()
                if isinstance(event, RagPilotError):
                    raise event
                yield event
                await asyncio.sleep(0)
            asked.closed_early = False
        finally:
            asked.closed.set()

    async def index(
        self, *, corpus: str | None = None, path: str | None = None, rebuild: bool = False, vectors: bool = True
    ) -> AsyncGenerator[IngestProgress | IngestReport, None]:
        self.runs.append((corpus, rebuild))
        for item in self.run:
            if isinstance(item, RagPilotError):
                raise item
            if isinstance(item, IngestReport):
                await self.run_release.wait()
            yield item

    async def search(self, question: str, *, k: int = 8, corpus: str | None = None) -> dict[str, Any]:
        return {"hits": []}

    async def stats(self, corpus: str | None = None) -> IndexStats:
        if isinstance(self.given_stats, RagPilotError):
            raise self.given_stats
        return self.given_stats

    async def health(self) -> dict[str, Health]:
        return self.parts

    async def corpora(self) -> list[CorpusInfo]:
        return [
            CorpusInfo("default", True, 1204, INDEXED_AT, 384, "minilm"),
            CorpusInfo("handbook", False, 77, INDEXED_AT, 384, "minilm"),
        ]

    async def source(self, source_id: str, corpus: str | None = None, context: int = 10) -> SourceText:
        found = next(item for item in SOURCES if item.id == source_id)
        return SourceText(found, self.text, "# before\n", "# after", found.start_line - 2)

    async def aclose(self) -> None:
        self.closed = True
        await super().aclose()
