"""What is logged over a whole run, errors of every part included: no word of a question, a passage or a token.

Every part fails as badly as it can: with what it was given as the words of its error. With debug logging those words
may be seen, and one test makes sure that they would be, so that the others look at something.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from ragpilot.config import CorpusSettings
from ragpilot.errors import ChatModelError, EmbedderError, EmbedderUnavailableError, StoreError
from ragpilot.types import Actor, IngestProgress, IngestReport, Prompt, StoreQuery, Vector
from tests.builders import chunk
from tests.fakes import FakeEmbedder, MemoryStore, ScriptedChatModel
from tests.ingestion import Project
from tests.security.doors import DOCUMENTS, World, get, headers_of, post, tool
from tests.server.agents import HEADERS
from tests.server.support import PROGRESS, ScriptedIngestion

QUESTION = "budget retry QUESTIONWORDS"
PASSAGE = "PASSAGEWORDS"
TOKEN = "TOKENWORDS"
CLEAR = ("QUESTIONWORDS", PASSAGE, TOKEN, "token-of-")

DOORS = [
    post("/ask", {"question": QUESTION}),
    post("/ask", {"question": QUESTION}, Accept="application/json"),
    post("/ask", {"question": QUESTION, "QUESTIONWORDS": 1}),
    post("/ask", {"question": "QUESTIONWORDS" * 2_000}),
    post("/ask", b'{"question": "QUESTIONWORDS'),
    post("/ask?token=TOKENWORDS", {"question": QUESTION}),
    post("/search", {"question": QUESTION}),
    get("/index/stats?corpus=QUESTIONWORDS"),
    get("/corpora"),
    get(f"/sources/{DOCUMENTS[0].id}"),
    post("/index", {}, Accept="application/json"),
    get("/health"),
    tool("ask", question=QUESTION),
    tool("rag_query", question=QUESTION),
    tool("rag_collections"),
    tool("rag_ingest", path="."),
    tool("rag_query", question=QUESTION, QUESTIONWORDS=1),
    tool("QUESTIONWORDS", question=QUESTION),
]
REFUSED = [
    "Bearer TOKENWORDS",
    "Basic TOKENWORDS",
    "TOKENWORDS",
    "Bearer TOKENWORDS TOKENWORDS",
    "Bearer token-of-bob,",
]


class FailingModel(ScriptedChatModel):
    """Fails after some pieces, with its whole prompt as the words of its error."""

    def __init__(self, kind: type[Exception], after: int) -> None:
        super().__init__(context_window=200_000)
        self.kind = kind
        self.after = after

    async def stream(self, prompt: Prompt, **given: Any) -> AsyncIterator[str]:
        for _ in range(self.after):
            yield "a piece "
        raise self.kind(f"{prompt.messages()}")


class FailingEmbedder(FakeEmbedder):
    """Fails with the texts that it was given."""

    def __init__(self, kind: type[Exception]) -> None:
        super().__init__(64)
        self.kind = kind

    async def embed_question(self, text: str) -> Vector:
        raise self.kind(text)

    async def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        raise self.kind(f"{texts}")


class FailingStore(MemoryStore):
    """Fails with what is in it, whenever a reader asks."""

    def __init__(self, kind: type[Exception]) -> None:
        super().__init__()
        self.kind = kind

    async def search(self, actor: Actor, query: StoreQuery) -> Any:
        raise self.kind(f"{self.chunks}")

    async def count(self, actor: Actor, corpus: str, **_: Any) -> int:
        raise self.kind(f"{self.chunks} {corpus}")

    async def get(self, actor: Actor, corpus: str, chunk_id: str) -> Any:
        raise self.kind(f"{self.chunks}")


class FailingIngestion(ScriptedIngestion):
    """Every run, filling and granting breaks, after it has begun."""

    async def run(self, *_: Any, **__: Any) -> AsyncGenerator[IngestProgress | IngestReport, None]:
        yield PROGRESS
        raise ZeroDivisionError(PASSAGE)

    async def fill(self, *_: Any) -> AsyncGenerator[IngestProgress | IngestReport, None]:
        yield PROGRESS
        raise StoreError(PASSAGE)

    async def apply_grants(self, actor: Actor, corpus: CorpusSettings) -> int:
        raise ZeroDivisionError(PASSAGE)


PARTS: dict[str, Any] = {
    "well": {},
    "model away": {"chat": FailingModel(ChatModelError, 0)},
    "model breaks": {"chat": FailingModel(ChatModelError, 2)},
    "model has a defect": {"chat": FailingModel(ZeroDivisionError, 0)},
    "model has a late defect": {"chat": FailingModel(ZeroDivisionError, 2)},
    "embedder away": {"embedder": FailingEmbedder(EmbedderUnavailableError)},
    "embedder has a defect": {"embedder": FailingEmbedder(ZeroDivisionError)},
    "store fails": {"store": FailingStore(StoreError)},
    "store has a defect": {"store": FailingStore(ZeroDivisionError)},
    "ingestion has defects": {"ingestion": FailingIngestion()},
}
"""Parts that fail, by what is wrong."""


MINE = frozenset({"team:core", "team:ops"})


async def made(given: dict[str, Any]) -> World:
    """A world whose document holds the passage's word, and whose parts are the given ones."""
    world = World(given.get("store") or MemoryStore(), chat=given.get("chat") or ScriptedChatModel())
    text = f"budget retry {PASSAGE}"
    passage = chunk("core/passage.py", text, header=text, corpus="shop", readers=MINE)
    await world.index([passage], headers=False)
    await world.fill(DOCUMENTS[:5])
    if "embedder" in given:
        world.embedder = world.retriever._embedder = world.status._embedder = given["embedder"]
    world.ingestion = given.get("ingestion") or world.ingestion
    return world


async def full_run(world: World) -> None:
    """Every door by several kinds of actor, refused tokens, and a client that leaves in the middle."""
    async with asyncio.timeout(60), world.serving() as server:
        for door in DOORS:
            for kind in ("none", "unknown", "tess", "admin"):
                await door.knock(server, kind)
        for value in REFUSED:
            await server.call("GET", "/corpora", headers={"Authorization": value})
            await server.call("POST", "/mcp", b"{}", {**HEADERS, "Authorization": value})
        connection = await server.connect()
        await connection.send("POST", "/ask", json.dumps({"question": QUESTION}).encode(), headers_of("tess"))
        await connection.close()


def check(records: Sequence[logging.LogRecord], printed: str) -> None:
    for record in records:
        assert record.levelno >= logging.INFO
        line = f"{logging.Formatter().format(record)} {record.args}"
        assert not [words for words in CLEAR if words in line], line
    assert not [words for words in CLEAR if words in printed]


@pytest.mark.asyncio
@pytest.mark.parametrize("wrong", PARTS)
async def test_a_full_run_logs_no_word_of_anybodys(
    wrong: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.INFO)
    await full_run(await made(PARTS[wrong]))
    captured = capfd.readouterr()
    assert len(caplog.records) > 30
    if "defect" in wrong:
        assert "unexpected ZeroDivisionError" in caplog.text
    check(caplog.records, captured.out + captured.err)


@pytest.mark.asyncio
@pytest.mark.parametrize("failure", [EmbedderError, EmbedderUnavailableError, ZeroDivisionError])
async def test_a_run_of_ingestion_logs_no_passage(
    failure: type[Exception], caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    caplog.set_level(logging.INFO)
    files = {"a.py": f"def a():\n    return '{PASSAGE}'\n", "b.md": f"# {PASSAGE}\n\n{PASSAGE}\n"}
    project = Project(tmp_path, files=files, embedder=FailingEmbedder(failure))
    report = await project.run()
    assert (report.added, report.outcome) == (2, "partial")
    await project.fill()
    captured = capfd.readouterr()
    check(caplog.records, captured.out + captured.err)


@pytest.mark.asyncio
async def test_debug_logging_would_show_them(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    await full_run(await made(PARTS["model has a late defect"]))
    assert PASSAGE in caplog.text
    assert "QUESTIONWORDS" in caplog.text
    assert TOKEN not in caplog.text
    assert "token-of-" not in caplog.text
