"""The tools for agents over the real application: parts that are away or hang, an actor who may only index, a big tree.

In this process, with the embedded store and embedder, behind a real socket; services are protocol servers.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import os
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from ragpilot.bootstrap import Application
from ragpilot.config import Environment
from ragpilot.settings_loader import load
from ragpilot.task_context import query_rag_for_task
from ragpilot.types import Actor, IndexedChunk, IngestReport, IngestScope
from server.app import compose, create_app
from tests.protocol.http_server import Reply, Request
from tests.protocol.ollama_server import OllamaServer
from tests.server.agents import REVISIONS, Told, address, agent, text_of
from tests.server.support import LOCAL_TOKEN, Running, running

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(120)]

OPERATOR = Actor("operator", frozenset({"team:everyone"}), frozenset({"ask", "ingest", "admin"}))
QUESTION = {"question": "Where is the context budget of a prompt enforced?"}
AWAY = "The chat model is away; rag_query works without it."


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project, and beside it what lies outside; links of every kind lead there."""
    folder = tmp_path / "project"
    (folder / "src").mkdir(parents=True)
    (folder / "src/budget.py").write_text(
        'class ContextBudget:\n    """Enforces the most tokens that the context blocks of a prompt may take."""\n'
    )
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "quokka.md").write_text("# Quokka\n\nThe quokka launch sequence begins at dawn.\n")
    (folder / "out").symlink_to(outside)
    (folder / "quokka.md").symlink_to(outside / "quokka.md")
    (folder / "src/loop").symlink_to(folder / "src/loop")
    return folder


def environment(folder: Path, **variables: str) -> Environment:
    given = {f"RAGPILOT_{name}": value for name, value in {"CHAT__KIND": "extractive", **variables}.items()}
    return load(config=None, directory=folder, environ={**os.environ, **given})


@asynccontextmanager
async def serving(where: Environment, *, indexed: bool = True) -> AsyncIterator[tuple[Running, Application]]:
    async with compose(where) as application:
        if indexed:
            corpus = application.settings.corpora[0]
            items = [item async for item in application.ingestion.run(OPERATOR, corpus)]
            assert isinstance(items[-1], IngestReport)
        async with running(create_app(application, local_token=LOCAL_TOKEN)) as server:
            yield server, application


@pytest.mark.parametrize("mode", REVISIONS)
async def test_a_model_that_is_away_is_said_and_passages_still_come(project: Path, mode: str) -> None:
    where = environment(project, CHAT__KIND="ollama", CHAT__MODEL="qwen", CHAT__URL=f"http://127.0.0.1:{free_port()}")
    async with serving(where) as (server, _), agent(address(server), mode=mode) as client, asyncio.timeout(30):
        asked = await client.call_tool("ask", QUESTION)
        assert (asked.is_error, text_of(asked)) == (True, AWAY)
        assert "src/budget.py" in text_of(await client.call_tool("rag_query", QUESTION))
        absent = await client.call_tool("ask", {"question": "what is the capital of France?"})
        assert (absent.is_error, text_of(absent)) == (False, "Not found in the indexed sources.")


@pytest.mark.parametrize("mode", REVISIONS)
async def test_a_model_that_breaks_off_is_an_error_and_no_half_answer(project: Path, mode: str) -> None:
    async def broken(_: Request, reply: Reply) -> None:
        await reply.start("application/x-ndjson")
        reply.hang_up()

    async with OllamaServer() as ollama:
        ollama.chat_fault = broken
        where = environment(project, CHAT__KIND="ollama", CHAT__MODEL="qwen", CHAT__URL=ollama.url)
        async with serving(where) as (server, _), agent(address(server), mode=mode) as client, asyncio.timeout(30):
            asked = await client.call_tool("ask", QUESTION)
            assert asked.is_error
            assert text_of(asked).startswith("The chat model ")
            assert asked.structured_content is None


@pytest.mark.parametrize("mode", REVISIONS)
async def test_a_call_that_is_left_ends_the_models_work(project: Path, mode: str) -> None:
    async with OllamaServer() as ollama:
        ollama.before_headers = asyncio.Event()
        where = environment(project, CHAT__KIND="ollama", CHAT__MODEL="qwen", CHAT__URL=ollama.url)
        async with serving(where) as (server, _), asyncio.timeout(30):
            async with agent(address(server), mode=mode) as client:
                told = Told()
                call = asyncio.create_task(client.call_tool("ask", QUESTION, progress_callback=told))
                await ollama.until(lambda: len(ollama.sent_to("/api/chat")) == 1, seconds=10)
                call.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await call
                # A client of the handshake era keeps its stream; what ends the call there is that it leaves.
                if mode == "auto":
                    await ollama.until(lambda: ollama.open_connections == 0, seconds=10)
                assert told.messages[0] == "Searching the index"
            await ollama.until(lambda: ollama.open_connections == 0, seconds=10)


async def test_a_store_that_is_away_is_said_by_every_tool_and_the_facade_gives_nothing(
    project: Path, caplog: pytest.LogCaptureFixture
) -> None:
    where = environment(project, STORE__KIND="qdrant", STORE__URL=f"http://127.0.0.1:{free_port()}")
    async with (
        serving(where, indexed=False) as (server, application),
        agent(address(server), token=LOCAL_TOKEN) as client,
        asyncio.timeout(60),
    ):
        calls = [
            client.call_tool("ask", QUESTION),
            client.call_tool("rag_query", QUESTION),
            client.call_tool("rag_collections"),
            client.call_tool("rag_ingest", {"path": "src"}),
        ]
        context = query_rag_for_task("Context budget", "enforce it", actor=OPERATOR, searcher=application.searcher)
        nothing = asyncio.create_task(context)
        for result in await asyncio.gather(*calls):
            assert (result.is_error, text_of(result)) == (True, "The store of the index is away.")
        assert await nothing == ""
        assert "no context for a task: " in caplog.text


async def test_who_may_only_index_reaches_nothing_outside_and_learns_nothing(project: Path, tmp_path: Path) -> None:
    token = "token-of-the-builder"
    config = tmp_path / "own.toml"
    config.write_text(
        f'schema = "ragpilot/1"\n[[corpora]]\nname = "default"\nroots = ["{project}"]\n'
        '[[actors]]\nname = "builder"\nprincipals = ["team:everyone"]\npermissions = ["ingest"]\n'
        f'tokens = ["{hashlib.sha256(token.encode()).hexdigest()}"]\n',
        encoding="utf-8",
    )
    where = load(config=str(config), directory=project, environ={**os.environ, "RAGPILOT_CHAT__KIND": "extractive"})
    async with serving(where, indexed=False) as (server, application):
        async with agent(address(server), token=token) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == ["rag_ingest"]
            whole = await client.call_tool("rag_ingest", {"path": "."})
            assert (whole.is_error, whole.structured_content["added"]) == (False, 1)
            for path in ("../outside", "out/quokka.md", "/etc/hostname", "src/absent.py", "src/loop/x", "~", "C:\\x"):
                refused = await client.call_tool("rag_ingest", {"path": path})
                assert refused.is_error, path
                assert str(tmp_path) not in text_of(refused), path
            # A link itself lies inside, and is left out by name.
            for path in ("out", "quokka.md"):
                linked = await client.call_tool("rag_ingest", {"path": path})
                assert linked.is_error or linked.structured_content["added"] == 0, path
                assert str(tmp_path) not in text_of(linked), path
        found = await application.searcher.search(OPERATOR, "quokka launch sequence", min_score=0.0, texts=True)
        assert "quokka" not in str(found["hits"])
        assert await application.store.count(OPERATOR, "default") == 1


async def test_a_big_tree_is_indexed_with_progress_while_questions_are_answered(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [project / f"big/{number % 50}/page{number}.md" for number in range(600)]
    for number, file in enumerate(files):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(
            f"# Page {number}\n\nThe valve {number} of pump {number % 7} opens at dawn.\n", encoding="utf-8"
        )
    where = environment(project)
    begun, may_end = asyncio.Event(), asyncio.Event()
    messages: list[str] = []

    async def tell(progress: float, total: float | None, message: str | None) -> None:
        messages.append(str(message))
        if "of 600" in messages[-1]:
            begun.set()

    async with (
        serving(where, indexed=False) as (server, application),
        agent(address(server), token=LOCAL_TOKEN) as client,
        asyncio.timeout(60),
    ):
        assert not (await client.call_tool("rag_ingest", {"path": "src"})).is_error
        write = application.store.upsert

        written = itertools.count()

        async def held_half_way(scope: IngestScope, document_id: str, chunks: Sequence[IndexedChunk]) -> None:
            if next(written) >= 300:
                await may_end.wait()
            await write(scope, document_id, chunks)

        monkeypatch.setattr(application.store, "upsert", held_half_way)
        run = asyncio.create_task(client.call_tool("rag_ingest", {"path": "."}, progress_callback=tell))
        await begun.wait()
        second, asked = await asyncio.gather(
            client.call_tool("rag_ingest", {"path": "src"}), client.call_tool("ask", QUESTION)
        )
        assert not run.done()
        assert (second.is_error, "under way" in text_of(second)) == (True, True)
        assert asked.structured_content["sources"][0]["filePath"] == "src/budget.py"
        may_end.set()
        result = (await run).structured_content
        assert (result["outcome"], result["added"], result["unchanged"]) == ("complete", 600, 1)
        (project / "big/0/page0.md").unlink()
        again = (await client.call_tool("rag_ingest", {"path": "big/0"})).structured_content
        assert (again["added"], again["unchanged"], again["removed"]) == (0, 11, 1)
    assert messages[0] == "Looking at files"
