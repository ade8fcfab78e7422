"""Who a command is, and what it opens, when no server runs."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, aclosing
from pathlib import Path
from typing import Any

import pytest

from ragpilot import bootstrap, cli_session
from ragpilot.cli_session import Session, open_session
from ragpilot.config import Environment, Settings
from ragpilot.errors import AuthenticationError, PermissionDeniedError, StoreInUseError, UnknownCorpusError
from ragpilot.events import Done, Sources, Token
from ragpilot.runtime import OwnerLock, local_token, owner
from ragpilot.types import NOT_FOUND_ANSWER, IngestReport
from tests.fakes import FakeEmbedder, FakeTokenCounter, MemoryStore, ScriptedChatModel


class Opened:
    """An environment over fakes; ``store`` outlives the sessions, as a store on disk would."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, base: Path) -> None:
        self.base = base
        self.store = MemoryStore()

        def build(environment: Environment) -> AbstractAsyncContextManager[bootstrap.Application]:
            return bootstrap.build(
                environment,
                store=self.store,
                embedder=FakeEmbedder(),
                chat=ScriptedChatModel(),
                counter=FakeTokenCounter(),
            )

        monkeypatch.setattr(cli_session, "build", build)

    def environment(self, **settings: Any) -> Environment:
        root = self.base / "root"
        root.mkdir(exist_ok=True)
        (root / "app.py").write_text('def start_engine() -> None:\n    """Start the engine."""\n')
        given = {"corpora": [{"name": "code", "roots": [str(root)]}], **settings}
        return Environment(settings=Settings.model_validate(given), state=self.base / "state", directory=root)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Opened:
    return Opened(monkeypatch, tmp_path)


async def index(session: Session) -> IngestReport:
    async with aclosing(session.index("code", path=None, rebuild=False, bodies=True, broad=False)) as events:
        async for event in events:
            if isinstance(event, IngestReport):
                return event
    raise AssertionError


@pytest.mark.asyncio
async def test_without_actors_a_command_may_index_and_holds_the_lock_meanwhile(opened: Opened) -> None:
    environment = opened.environment()
    async with open_session(environment, "index", {}) as session:
        assert session.address is None
        held = owner(environment.state)
        assert held is not None
        assert held.role == "index"
        assert (await index(session)).added == 1
        assert [info.name for info in await session.corpora()] == ["code"]
        assert (await session.stats("code")).documents == 1
        assert (await session.health())["store"].ok
    assert owner(environment.state) is None
    assert opened.store.closed


@pytest.mark.asyncio
async def test_answer_and_search_of_an_opened_store(opened: Opened) -> None:
    environment = opened.environment(retrieval={"gate": "off", "min_score": -1.0})
    async with open_session(environment, "index", {}) as session:
        await index(session)
    async with open_session(environment, "ask", {}) as session:
        events = [event async for event in session.ask("where is start_engine?", top_k=None, corpus=None)]
        tokens = [event.text for event in events if isinstance(event, Token)]
        (sources,) = [event.sources for event in events if isinstance(event, Sources)]
        found = await session.search("where is start_engine?", k=5, corpus="code")
        with pytest.raises(UnknownCorpusError):
            await session.search("x", k=5, corpus="other")
    assert "".join(tokens) == "The answer is [1]."
    assert isinstance(events[-1], Done)
    assert [(hit["filePath"], hit["score"]) for hit in found["hits"]] == [
        (source.file_path, source.score) for source in sources
    ]


@pytest.mark.asyncio
async def test_an_empty_store_gives_the_not_found_answer(opened: Opened) -> None:
    async with open_session(opened.environment(), "ask", {}) as session:
        events = [event async for event in session.ask("where is x?", top_k=None, corpus=None)]
    assert events[0] == Token(NOT_FOUND_ANSWER)


ACTORS = [
    {
        "name": "ann",
        "principals": ["team:everyone"],
        "permissions": ["ask"],
        "tokens": [hashlib.sha256(b"anns").hexdigest()],
    },
    {
        "name": "ops",
        "principals": ["team:everyone"],
        "permissions": ["ask", "ingest"],
        "tokens": ["env:OPS_TOKEN"],
    },
]


@pytest.mark.asyncio
@pytest.mark.parametrize("environ", [{}, {"RAGPILOT_TOKEN": ""}, {"RAGPILOT_TOKEN": "wrong"}])
async def test_with_actors_a_command_needs_a_token(opened: Opened, environ: Mapping[str, str]) -> None:
    environment = opened.environment(actors=ACTORS)
    with pytest.raises(AuthenticationError, match="RAGPILOT_TOKEN"):
        async with open_session(environment, "ask", environ):
            pass
    local = local_token(environment.state)
    with pytest.raises(AuthenticationError):
        async with open_session(environment, "ask", {"RAGPILOT_TOKEN": local}):
            pass
    assert owner(environment.state) is None


@pytest.mark.asyncio
async def test_a_token_gives_its_actors_permissions_and_no_more(opened: Opened) -> None:
    environment = opened.environment(actors=ACTORS)
    async with open_session(environment, "index", {"RAGPILOT_TOKEN": "anns"}) as session:
        with pytest.raises(PermissionDeniedError):
            await index(session)
    async with open_session(environment, "index", {"RAGPILOT_TOKEN": "x", "OPS_TOKEN": "x"}) as session:
        assert (await index(session)).added == 1


@pytest.mark.asyncio
async def test_an_unknown_token_is_refused_without_actors_too(opened: Opened) -> None:
    environment = opened.environment()
    with pytest.raises(AuthenticationError):
        async with open_session(environment, "ask", {"RAGPILOT_TOKEN": "wrong"}):
            pass
    async with open_session(environment, "index", {"RAGPILOT_TOKEN": local_token(environment.state)}) as session:
        await index(session)


@pytest.mark.asyncio
async def test_a_store_that_another_command_holds(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragpilot.runtime.SHARED_SECONDS", 0.1)
    environment = opened.environment()
    with OwnerLock(environment.state, "index"), pytest.raises(StoreInUseError, match="`ragpilot index`"):
        async with open_session(environment, "ask", {}):
            pass
