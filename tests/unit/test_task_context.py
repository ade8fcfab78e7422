from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from ragpilot import bootstrap, task_context, task_index
from ragpilot.config import CorpusSettings, Environment, RetrievalSettings, Settings
from ragpilot.errors import EmbedderUnavailableError, StoreUnavailableError
from ragpilot.runtime import Owner, OwnerLock, ServerRecord, owner
from ragpilot.searching import SearchService
from ragpilot.task_context import query_rag_for_task, query_rag_for_task_sync, task_query
from ragpilot.task_index import opened_index
from ragpilot.types import Actor
from server.app import create_app
from tests.builders import chunk
from tests.corpus import Corpus
from tests.fakes import ANN, BOB, NOBODY, FakeEmbedder, MemoryStore
from tests.server.agents import silent_server
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
    assert task_query("only", "") == task_query("only", None) == task_query(None, "only") == "only"
    assert task_query(None, None) == ""
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
@pytest.mark.parametrize("served", [False, True])
async def test_an_empty_index_is_said_in_the_log(
    served: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    if served:
        app = create_app(Stand(), local_token=None)
        async with running(app) as server:
            found_at(monkeypatch, server.port)
            assert await query_rag_for_task(*TASK, actor=ANN) == ""
    else:
        made = Corpus(settings=Settings(retrieval=RetrievalSettings(gate="off")))
        assert await query_rag_for_task(*TASK, actor=ANN, searcher=made.searcher) == ""
    assert [record.getMessage() for record in caplog.records if record.name == "ragpilot.task_context"] == [
        "no context for a task: Nothing is indexed here that you may read. "
        "`ragpilot index` indexes the configured folders."
    ]


@pytest.mark.asyncio
async def test_a_task_without_a_description_is_looked_for_by_its_title(caplog: pytest.LogCaptureFixture) -> None:
    made = await corpus()
    found = await query_rag_for_task(TASK[1], None, actor=ANN, searcher=made.searcher)
    assert "core/prompting.py:1-2 (fill)" in found
    assert not caplog.records


@pytest.mark.asyncio
async def test_what_is_no_text_is_a_failure_like_any_other(caplog: pytest.LogCaptureFixture) -> None:
    made = await corpus()
    assert await query_rag_for_task("Fix", 7, actor=ANN, searcher=made.searcher) == ""  # type: ignore[arg-type]
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
    async with asyncio.timeout(5):
        assert await query_rag_for_task(*TASK, actor=ANN, searcher=hanging) == ""  # type: ignore[arg-type]
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


@pytest.mark.asyncio
async def test_who_may_not_ask_plans_without_context(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    made, writer = await corpus(), replace(ANN, permissions=frozenset({"ingest", "admin"}))
    async with running(await Stand().app()) as server:
        found_at(monkeypatch, server.port)
        for given in ({"searcher": made.searcher}, {"directory": tmp_path}):
            assert await query_rag_for_task(*TASK, actor=ANN, **given) != ""
            assert await query_rag_for_task(*TASK, actor=writer, **given) == ""
    assert [record.getMessage() for record in caplog.records] == ["no context for a task: forbidden"] * 2


# --- where the index is


def found_at(monkeypatch: pytest.MonkeyPatch, port: int) -> None:
    async def find(*_: Any, **__: Any) -> ServerRecord:
        return ServerRecord(f"http://127.0.0.1:{port}", 1, "now")

    monkeypatch.setattr(task_context, "running_server", find)


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


@dataclass
class Opening:
    """An index that is opened here: how often, by whom it was held, and what opening it waits for or raises."""

    made: Corpus
    state: Path
    holders: list[Owner | None] = field(default_factory=list)
    open: int = 0
    gate: asyncio.Event | None = None
    failure: Exception | None = None

    @asynccontextmanager
    async def build(self, environment: Environment) -> AsyncIterator[Corpus]:
        self.holders.append(owner(environment.state))
        self.open += 1
        try:
            if self.gate:
                await self.gate.wait()
            if self.failure:
                raise self.failure
            yield self.made
        finally:
            self.open -= 1

    def load(self, **_: Any) -> Environment:
        return Environment(settings=self.made.settings, state=self.state)


@pytest_asyncio.fixture
async def opening(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Opening:
    one = Opening(await corpus(), tmp_path / "state")
    monkeypatch.setattr(bootstrap, "build", one.build)
    monkeypatch.setattr(task_context, "load", one.load)
    one.state.mkdir(mode=0o700)
    return one


@pytest.mark.asyncio
async def test_without_a_server_the_index_is_opened_under_its_lock(opening: Opening) -> None:
    opening.state.rmdir()
    assert await query_rag_for_task(*TASK, actor=ANN) == ""
    assert not opening.holders
    opening.state.mkdir(mode=0o700)
    for _ in range(2):
        assert "core/prompting.py" in await query_rag_for_task(*TASK, actor=ANN)
        assert (opening.open, owner(opening.state)) == (0, None)
    assert [holder.role for holder in opening.holders if holder] == ["ask", "ask"]


@pytest.mark.asyncio
async def test_who_asks_at_the_same_time_shares_what_is_opened(opening: Opening) -> None:
    async with asyncio.timeout(20):
        texts = await asyncio.gather(*(query_rag_for_task(*TASK, actor=actor) for actor in [ANN, NOBODY] * 50))
    assert all("core/prompting.py" in text for text in texts[::2])
    assert not any(texts[1::2])
    assert (len(opening.holders), opening.open, owner(opening.state)) == (1, 0, None)


@pytest.mark.asyncio
async def test_an_index_that_is_held_is_waited_for(
    opening: Opening, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("ragpilot.runtime.LOCK_SECONDS", 0.02)
    monkeypatch.setattr("ragpilot.runtime.SHARED_SECONDS", 0.05)
    with OwnerLock(opening.state, "index"):
        monkeypatch.setattr(task_context, "SECONDS", 1.5)
        assert await query_rag_for_task(*TASK, actor=ANN) == ""
        assert "nothing came within 1.5 s (store_in_use)" in caplog.text
        monkeypatch.setattr(task_context, "SECONDS", 10.0)
        calls = [asyncio.create_task(query_rag_for_task(*TASK, actor=ANN)) for _ in range(3)]
    async with asyncio.timeout(9):
        assert all("core/prompting.py" in text for text in await asyncio.gather(*calls))
    assert owner(opening.state) is None


@pytest.mark.asyncio
async def test_what_cannot_be_opened_and_what_takes_too_long(
    opening: Opening, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    opening.failure = StoreUnavailableError("away")
    assert await asyncio.gather(*(query_rag_for_task(*TASK, actor=ANN) for _ in range(3))) == ["", "", ""]
    assert [record.getMessage() for record in caplog.records] == ["no context for a task: store_unavailable"] * 3
    opening.failure, opening.gate = None, asyncio.Event()
    early = asyncio.create_task(query_rag_for_task(*TASK, actor=ANN))
    await until(lambda: opening.open == 1)
    monkeypatch.setattr(task_context, "SECONDS", 0.5)
    late = asyncio.create_task(query_rag_for_task(*TASK, actor=ANN))
    early.cancel()
    # One who leaves takes nothing from the other; the last one's end gives the opening up.
    assert await late == ""
    await until(lambda: opening.open == 0 and owner(opening.state) is None)
    opening.gate = None
    monkeypatch.setattr(task_context, "SECONDS", 10.0)
    assert await query_rag_for_task(*TASK, actor=ANN) != ""


@pytest.mark.asyncio
async def test_a_server_that_hangs_is_no_reason_to_wait(
    opening: Opening, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(task_context, "STARTING_SECONDS", 0.1)
    monkeypatch.setattr("ragpilot.runtime.ANSWER_SECONDS", 0.1)
    async with silent_server(opening.state), asyncio.timeout(5):
        assert await query_rag_for_task(*TASK, actor=ANN) == ""
    assert "no context for a task: server_unreachable" in caplog.text
    assert not opening.holders


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


@pytest.mark.asyncio
async def test_calls_from_threads_share_what_is_opened(opening: Opening, monkeypatch: pytest.MonkeyPatch) -> None:
    opening.gate = asyncio.Event()
    came = 0

    @asynccontextmanager
    async def opened(environment: Environment, build: task_index.Build) -> AsyncIterator[SearchService]:
        """It is open only when the last of them has come."""
        nonlocal came
        came += 1
        if came == 20:
            assert opening.gate
            opening.gate.set()
        async with opened_index(environment, build) as searcher:
            yield searcher

    def ask(_: int) -> str:
        return query_rag_for_task_sync(*TASK, actor=ANN)

    monkeypatch.setattr(task_context, "opened_index", opened)
    with ThreadPoolExecutor(20) as pool:
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(20):
            texts = await asyncio.gather(*(loop.run_in_executor(pool, ask, n) for n in range(20)))
    assert all("core/prompting.py" in text for text in texts)
    assert len(opening.holders) == 1
    assert owner(opening.state) is None
