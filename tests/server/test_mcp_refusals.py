"""What the tools for agents refuse, and what they say when a part is away."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError

from ragpilot.config import ChatSettings, ServerSettings
from ragpilot.errors import (
    ChatModelTimeoutError,
    ChatModelUnavailableError,
    EmbedderUnavailableError,
    IndexMismatchError,
    RagPilotError,
    StoreDamagedError,
    StoreUnavailableError,
)
from ragpilot.types import Health, TermStatistics
from server import patience
from server.logs import SECURITY
from tests.fakes import MemoryStore, ScriptedChatModel
from tests.server.agents import REVISIONS, SECRET, address, agent, text_of
from tests.server.support import LOCAL_TOKEN, Running, ScriptedIngestion, Stand, running, settings_of, until

WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("ask", {}, "ask needs the argument 'question': it must be a text of 1 to 16,000 characters that is not blank."),
    ("ask", {"question": " \u200b"}, "'question' must be a text of 1 to 16,000 characters that is not blank."),
    ("ask", {"question": 7}, "'question' must be"),
    ("ask", {"question": "x" * 16_001}, "It has 16,001."),
    ("ask", {"question": "x", "topK": 0}, "'topK' must be a whole number from 1 to 50."),
    ("ask", {"question": "x", "topK": 51}, "'topK' must be a whole number from 1 to 50."),
    ("ask", {"question": "x", "topK": "8"}, "'topK' must be"),
    ("ask", {"question": "x", "topK": True}, "'topK' must be"),
    (
        "ask",
        {"question": "x", "top_k": 3},
        "ask has no argument 'top_k'. Did you mean 'topK'? It takes: question, topK, corpus.",
    ),
    ("ask", {"question": "x", "actor": "bob"}, "ask has no argument 'actor'. It takes: question, topK, corpus."),
    ("ask", {"question": "x", "": 1}, "ask has no argument ''. It takes: question, topK, corpus."),
    ("ask", {"question": "x", "y" * 5_000: 1}, f"ask has no argument '{'y' * 100}'."),
    ("ask", {"question": "x", "corpus": 7}, "'corpus' must be the name of a collection"),
    ("rag_query", {"question": "x", "limit": 21}, "'limit' must be a whole number from 1 to 20."),
    ("rag_query", {"question": "x", "threshold": 1.1}, "'threshold' must be a number from 0 to 1."),
    ("rag_query", {"question": "x", "corpus": "default"}, "It takes: question, collection, limit, threshold."),
    ("rag_collections", {"x": 1}, "rag_collections takes no arguments, and was given 'x'."),
    ("rag_ingest", {}, "rag_ingest needs the argument 'path': it must be a relative path inside a root"),
    ("rag_ingest", {"path": "src", "rebuild": True}, "rag_ingest has no argument 'rebuild'. It takes: path, "),
]


BREAKING: dict[str, list[Any]] = {
    "string": [7, True, [], {}, 1.5, "x" * 16_001],
    "integer": ["3", 1.5, True, 0, -1, 51, 10**30, [], {}],
    "number": ["0.5", True, -0.1, 1.1, float("1e300"), [], {}],
}


GIVEN: dict[str, dict[str, Any]] = {
    "ask": {"question": "context budget"},
    "rag_query": {"question": "context budget"},
    "rag_collections": {},
    "rag_ingest": {"path": "."},
}


@pytest.mark.asyncio
async def test_arguments_that_break_a_rule_are_named_with_the_rule(server: Running) -> None:
    async with agent(address(server), token=LOCAL_TOKEN) as client:
        for tool, arguments, words in WRONG:
            result = await client.call_tool(tool, arguments)
            assert (result.is_error, result.structured_content) == (True, None), arguments
            assert words in text_of(result)


@pytest.mark.asyncio
async def test_every_argument_of_every_tool_is_held_to_its_schema() -> None:
    ingestion = ScriptedIngestion()
    async with (
        running(await Stand(ingestion=ingestion).app()) as server,
        agent(address(server), token=LOCAL_TOKEN) as client,
    ):
        tools = (await client.list_tools()).tools
        assert {tool.name for tool in tools} == set(GIVEN)
        for tool in tools:
            for name, schema in tool.input_schema["properties"].items():
                for value in BREAKING[schema["type"]]:
                    result = await client.call_tool(tool.name, {**GIVEN[tool.name], name: value})
                    assert result.is_error, (tool.name, name, value)
                    assert text_of(result).startswith(f"'{name}' must be "), (tool.name, name, value)
                    assert "pydantic" not in text_of(result)
    assert not ingestion.runs


@pytest.mark.asyncio
async def test_null_is_as_good_as_nothing_and_a_whole_number_may_have_a_point(server: Running) -> None:
    async with agent(address(server)) as client:
        for tool, arguments in (
            ("ask", {"topK": None, "corpus": None}),
            ("ask", {"topK": 1.0}),
            ("rag_query", {"collection": None, "limit": None, "threshold": None}),
            ("rag_query", {"limit": 1.0, "threshold": 0}),
        ):
            result = await client.call_tool(tool, {**GIVEN[tool], **arguments})
            assert not result.is_error, text_of(result)
        refused = await client.call_tool("ask", {"question": None})
        assert text_of(refused).startswith("'question' must be a text")


@pytest.mark.asyncio
@pytest.mark.parametrize("mode", REVISIONS)
async def test_a_tool_that_one_may_not_call_is_none_that_there_is(mode: str, caplog: pytest.LogCaptureFixture) -> None:
    ingestion = ScriptedIngestion()
    async with running(await Stand(ingestion=ingestion).app()) as server, agent(address(server), mode=mode) as client:
        for name in ("rag_ingest", "absent"):
            with pytest.raises(MCPError, match=f"^Unknown tool: {name}$") as caught:
                await client.call_tool(name, {"path": "a\nb"})
            assert caught.value.code == -32602
    assert not ingestion.runs
    (record,) = [one for one in caplog.records if one.levelno == SECURITY]
    assert record.getMessage().startswith("rag_ingest by local, {'path': 'a\\nb'}: forbidden")


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("failure", "words"),
    [
        (StoreUnavailableError(SECRET, hint=SECRET), "The store of the index is away."),
        (StoreDamagedError(SECRET), "The store of the index failed."),
        (EmbedderUnavailableError(SECRET), "The embedder is away."),
        (IndexMismatchError("Built with another embedder.", hint="Rebuild."), "Built with another embedder. Rebuild."),
    ],
)
async def test_what_is_away_is_said_and_no_more(failure: RagPilotError, words: str) -> None:
    store = MemoryStore()
    async with running(await Stand(store=store).app()) as server, agent(address(server)) as client:
        store.failure = failure
        for tool in ("ask", "rag_query", "rag_collections"):
            result = await client.call_tool(tool, {} if tool == "rag_collections" else {"question": "context budget"})
            assert (result.is_error, text_of(result)) == (True, words)


@pytest.mark.asyncio
@pytest.mark.parametrize("after", [0, 1])
async def test_a_model_that_is_away_is_said_before_and_after_its_first_word(after: int) -> None:
    chat = ScriptedChatModel(failure=ChatModelUnavailableError(SECRET), fail_after=after)
    async with running(await Stand(chat=chat).app()) as server, agent(address(server)) as client:
        result = await client.call_tool("ask", {"question": "context budget"})
        assert (result.is_error, text_of(result)) == (True, "The chat model is away; rag_query works without it.")
        assert not (await client.call_tool("rag_query", {"question": "context budget"})).is_error


@pytest.mark.asyncio
async def test_what_nobody_foresaw_is_in_the_log_and_not_in_the_answer(caplog: pytest.LogCaptureFixture) -> None:
    store = MemoryStore()
    async with running(await Stand(store=store).app()) as server, agent(address(server)) as client:
        store.failure = ZeroDivisionError(SECRET)  # type: ignore[assignment]
        result = await client.call_tool("rag_query", {"question": "context budget"})
    assert result.is_error
    assert text_of(result).startswith("Something went wrong in the server; its log has the request's id. (")
    assert "ZeroDivisionError" in caplog.text
    assert SECRET not in caplog.text


@pytest.mark.asyncio
async def test_a_silent_model_meets_its_limit_and_a_full_queue_says_so() -> None:
    chat = ScriptedChatModel(gate=asyncio.Semaphore(0))
    settings = settings_of(
        server=ServerSettings(max_running=1, max_waiting=0), chat=ChatSettings(idle_seconds=2, total_seconds=20)
    )
    async with running(await Stand(chat=chat, settings=settings).app()) as server, agent(address(server)) as client:
        first = asyncio.create_task(client.call_tool("ask", {"question": "context budget"}))
        await until(lambda: chat.opened == 1)
        full = await client.call_tool("ask", {"question": "context budget"})
        assert full.is_error
        assert "more are not taken" in text_of(full)
        assert not (await client.call_tool("rag_query", {"question": "context budget"})).is_error
        assert text_of(await first) == "The model was silent for 2 s (chat.idle_seconds)."
        await until(lambda: chat.ended == 1)


class HangingStore(MemoryStore):
    """A store that never answers a search."""

    async def term_statistics(self, *_: Any, **__: Any) -> TermStatistics:
        await asyncio.Event().wait()
        raise AssertionError


@pytest.mark.asyncio
@pytest.mark.parametrize("mode", REVISIONS)
async def test_a_part_that_hangs_meets_the_deadline(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "READ_SECONDS", 0.2)
    settings = settings_of(chat=ChatSettings(total_seconds=0.2))
    stand = Stand(store=HangingStore(), settings=settings)
    async with running(await stand.app()) as server, agent(address(server), mode=mode) as client:
        queried = await client.call_tool("rag_query", {"question": "context budget"})
        assert text_of(queried) == "rag_query did not end within 0.2 s and was stopped."
        assert (await client.call_tool("ask", {"question": "context budget"})).is_error


@pytest.mark.asyncio
@pytest.mark.parametrize("part", ["store", "embedder"])
async def test_the_part_that_hangs_is_named(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "READ_SECONDS", 0.3)
    settings = settings_of(chat=ChatSettings(first_token_seconds=0.3))
    stand = Stand(store=HangingStore(), settings=settings)

    async def silent() -> Health:
        await asyncio.Event().wait()
        raise AssertionError

    monkeypatch.setattr(stand.store if part == "store" else stand.embedder, "check", silent)
    words = {"store": "The store of the index does not answer.", "embedder": "The embedder does not answer."}[part]
    async with running(await stand.app()) as server, agent(address(server)) as client:
        for tool in ("rag_query", "ask"):
            result = await client.call_tool(tool, {"question": "context budget"})
            assert (result.is_error, text_of(result)) == (True, words + " Ask again in a moment.")


@pytest.mark.asyncio
async def test_a_timeout_of_a_part_is_not_taken_for_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    async with running(await Stand(store=store).app()) as server, agent(address(server)) as client:
        store.failure = TimeoutError(SECRET)  # type: ignore[assignment]
        result = await client.call_tool("rag_collections")
        assert text_of(result).startswith("Something went wrong")
        store.failure = None

        async def slow(*_: Any, **__: Any) -> int:
            raise ChatModelTimeoutError("The answer took longer than 900 s (chat.total_seconds).")

        monkeypatch.setattr(store, "count", slow)
        assert text_of(await client.call_tool("rag_collections")).startswith("The answer took longer")
