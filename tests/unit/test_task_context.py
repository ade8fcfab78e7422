from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ragpilot import bootstrap, task_context
from ragpilot.config import CorpusSettings, Environment, RetrievalSettings, Settings
from ragpilot.errors import EmbedderUnavailableError, StoreUnavailableError
from ragpilot.runtime import Owner, OwnerLock, ServerRecord, owner
from ragpilot.task_context import query_rag_for_task, query_rag_for_task_sync, task_query
from ragpilot.types import Actor
from tests.builders import chunk
from tests.corpus import Corpus
from tests.fakes import ANN, BOB, NOBODY, FakeEmbedder, MemoryStore
from tests.server.support import TOKENS, Stand, running, until, with_actors

BUDGET = chunk("core/prompting.py", "the context budget is enforced here", header="context budget", symbol="fill")
SECRET = chunk("bob/diary.md", "the secret diary", header="secret diary", readers=frozenset({"user:bob"}))
TASK = ("Context budget", "context budget fill")


async def corpus(**given: Any) -> Corpus:
    readers = CorpusSettings(readers=["team:everyone", "user:bob"])
    made = Corpus(settings=Settings(retrieval=RetrievalSettings(gate="off"), corpora=[readers]), **given)
    await made.index([BUDGET, SECRET])
    return made


# --- the query


def test_title_and_description_are_joined_and_cut() -> None:
    assert task_query(" Fix it ", "\nat once\n") == "Fix it at once"
    assert task_query("", "") == task_query(" ", "\n") == ""
    assert task_query("only", "") == "only"
    assert task_query("t", "x" * 498) == "t " + "x" * 498
    assert len(task_query("t", "x" * 10_000)) == 500


@pytest.mark.parametrize(
    "whole",
    ["e\u0301", "👩\u200d👩\u200d👧", "👍🏽", "🇫🇷", "⚠\ufe0f", "क\u093f"],
    ids=["accent", "family", "skin tone", "flag", "variation", "vowel sign"],
)
def test_no_character_is_split(whole: str) -> None:
    for before in range(500 - len(whole) - 2, 503):
        query = task_query("x" * before + whole * 2 + "y", "")
        assert len(query) <= 500
        rest = query.lstrip("x")
        assert rest in {"", whole, whole * 2, whole * 2 + "y"}


def test_a_run_of_accents_ends() -> None:
    assert task_query("a" + "\u0301" * 1_000, "") == ""
    assert task_query("\ud800 x", "") == "? x"


# --- what comes back


@pytest.mark.asyncio
async def test_passages_of_what_the_actor_may_read() -> None:
    made = await corpus()
    text = await query_rag_for_task(*TASK, actor=ANN, searcher=made.searcher)
    assert "[1] core/prompting.py:1-2 (fill), score" in text
    assert "the context budget is enforced here" in text
    assert await query_rag_for_task("Secret", "diary", actor=ANN, searcher=made.searcher) == ""
    assert "bob/diary.md" in await query_rag_for_task("Secret", "diary", actor=BOB, searcher=made.searcher)
    assert await query_rag_for_task(*TASK, actor=NOBODY, searcher=made.searcher) == ""


@pytest.mark.asyncio
async def test_at_most_three_passages_and_none_under_the_threshold() -> None:
    made = Corpus()
    await made.index(
        [replace(BUDGET, id=f"00000000-0000-0000-0000-00000000000{n}", document_id=f"d{n}", path=f"p{n}.py",
                 text=f"number {n} {'x' * n}") for n in range(6)]
    )  # fmt: skip
    text = await query_rag_for_task("context", "budget", actor=ANN, searcher=made.searcher)
    assert text.count("score 1.00") == 3
    assert await query_rag_for_task("context", "zebra okapi quagga", actor=ANN, searcher=made.searcher) == ""


# --- what goes wrong


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "failure", [StoreUnavailableError("away"), EmbedderUnavailableError("away"), ZeroDivisionError("context budget")]
)
async def test_a_failure_is_the_empty_string_and_a_line_without_the_task(
    failure: Any, caplog: pytest.LogCaptureFixture
) -> None:
    made = await corpus(store=MemoryStore(), embedder=FakeEmbedder())
    made.store.failure = failure
    assert await query_rag_for_task(*TASK, actor=ANN, searcher=made.searcher) == ""
    assert len(caplog.records) == 1
    assert "context for a task" in caplog.text
    assert "budget" not in caplog.text


@pytest.mark.asyncio
async def test_what_is_no_text_is_a_failure_like_any_other(caplog: pytest.LogCaptureFixture) -> None:
    made = await corpus()
    assert await query_rag_for_task(None, 7, actor=ANN, searcher=made.searcher) == ""  # type: ignore[arg-type]
    assert len(caplog.records) == 1


class Hanging:
    """A search that never ends."""

    begun = cancelled = False

    async def search(self, *_: Any, **__: Any) -> dict[str, Any]:
        self.begun = True
        try:
            await asyncio.Event().wait()
        finally:
            self.cancelled = True
        raise AssertionError


@pytest.mark.asyncio
async def test_what_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(task_context, "SECONDS", 0.05)
    hanging = Hanging()
    began = time.monotonic()
    async with asyncio.timeout(5):
        assert await query_rag_for_task(*TASK, actor=ANN, searcher=hanging) == ""  # type: ignore[arg-type]
    assert time.monotonic() - began < 2
    assert "nothing came within 0.05 s" in caplog.text
    await until(lambda: hanging.cancelled)


@pytest.mark.asyncio
async def test_a_planner_that_is_cancelled_is_cancelled() -> None:
    hanging = Hanging()
    call = asyncio.create_task(query_rag_for_task(*TASK, actor=ANN, searcher=hanging))  # type: ignore[arg-type]
    await until(lambda: hanging.begun)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await until(lambda: hanging.cancelled)


# --- where the index is


def found_at(monkeypatch: pytest.MonkeyPatch, port: int) -> None:
    async def find(*_: Any, **__: Any) -> ServerRecord:
        return ServerRecord(f"http://127.0.0.1:{port}", 1, "now")

    monkeypatch.setattr(task_context, "find_server", find)


@pytest.mark.asyncio
async def test_a_folder_without_an_index_gives_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    assert await query_rag_for_task(*TASK, actor=ANN, directory=tmp_path) == ""
    assert "nothing is indexed" in caplog.text
    (tmp_path / "config.toml").write_text('schema = "ragpilot/1"\nbroken = 1\n')
    assert await query_rag_for_task(*TASK, actor=ANN, directory=tmp_path) == ""
    assert "config_error" in caplog.text


@pytest.mark.asyncio
async def test_a_running_server_is_asked_for_an_actor_who_may_read_as_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(await Stand().app()) as server:
        found_at(monkeypatch, server.port)
        assert "core/prompting.py" in await query_rag_for_task(*TASK, actor=ANN, directory=tmp_path)
        assert await query_rag_for_task("quagga", "okapi", actor=ANN, directory=tmp_path) == ""
        assert await query_rag_for_task(*TASK, actor=BOB, directory=tmp_path) == ""
        assert "forbidden" in caplog.text
    assert await query_rag_for_task(*TASK, actor=ANN, directory=tmp_path) == ""
    assert "server_unreachable" in caplog.text


@pytest.mark.asyncio
async def test_with_actors_the_token_says_who_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    settings = with_actors()

    def load(**_: Any) -> Environment:
        return Environment(settings=settings, state=tmp_path)

    monkeypatch.setattr(task_context, "load", load)
    store = MemoryStore()
    async with running(await Stand(settings=settings, store=store).app()) as server:
        found_at(monkeypatch, server.port)
        assert await query_rag_for_task("secret", "diary", actor=BOB) == ""
        assert "unauthenticated" in caplog.text
        monkeypatch.setenv("RAGPILOT_TOKEN", TOKENS["bob"])
        assert "bob/diary.md" in await query_rag_for_task("secret", "diary", actor=BOB)
        assert await query_rag_for_task("secret", "diary", actor=ANN) == ""
        both = Actor("both", BOB.principals | ANN.principals)
        assert "bob/diary.md" in await query_rag_for_task("secret", "diary", actor=both)
        store.failure = StoreUnavailableError("away")
        assert await query_rag_for_task("secret", "diary", actor=BOB) == ""
        assert "The store of the index is away." in caplog.text


@pytest.mark.asyncio
async def test_without_a_server_the_index_is_opened_under_its_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    made = await corpus()
    state = tmp_path / "state"
    holders: list[Owner | None] = []

    @asynccontextmanager
    async def build(environment: Environment) -> AsyncIterator[Corpus]:
        holders.append(owner(environment.state))
        yield made

    def load(**_: Any) -> Environment:
        return Environment(settings=made.settings, state=state)

    monkeypatch.setattr(bootstrap, "build", build)
    monkeypatch.setattr(task_context, "load", load)
    assert await query_rag_for_task(*TASK, actor=ANN) == ""
    state.mkdir(mode=0o700)
    assert "core/prompting.py" in await query_rag_for_task(*TASK, actor=ANN)
    assert [holder.role for holder in holders if holder] == ["ask"]
    with OwnerLock(state, "index"):
        assert await query_rag_for_task(*TASK, actor=ANN) == ""
    assert "store_in_use" in caplog.text


# --- without a loop


def test_without_a_loop(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[tuple[Any, ...]] = []

    async def query(title: str, description: str, *, actor: Actor, directory: Path | None) -> str:
        asked.append((title, description, actor, directory))
        return "passages"

    monkeypatch.setattr(task_context, "query_rag_for_task", query)
    assert query_rag_for_task_sync(*TASK, actor=ANN, directory=tmp_path) == "passages"
    assert asked == [(*TASK, ANN, tmp_path)]


@pytest.mark.asyncio
async def test_beside_a_running_loop_and_past_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = threading.Event()

    async def query(*_: Any, **__: Any) -> str:
        await asyncio.to_thread(ended.wait, 5)
        return "late"

    monkeypatch.setattr(task_context, "query_rag_for_task", query)
    monkeypatch.setattr(task_context, "SECONDS", -0.9)
    assert query_rag_for_task_sync(*TASK, actor=ANN) == ""
    ended.set()
