"""The tools for agents on a real server process, embedded store and embedder, and the protocol's own client."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.shared.exceptions import MCPError

from ragpilot.mcp_client import McpClient
from ragpilot.task_context import query_rag_for_task, query_rag_for_task_sync
from ragpilot.types import Actor
from tests.end_to_end.command import COMMAND, SECONDS, environ_of
from tests.server.agents import REVISIONS, Told, agent, text_of

FILES = {
    "src/budget.py": '''"""Keeps a prompt small."""


class ContextBudget:
    """Enforces the most tokens that the context blocks of a prompt may take together."""

    def cut_lowest_ranked(self, blocks: list[str]) -> list[str]:
        """Drop the lowest ranked blocks until the budget holds."""
        while sum(len(block) for block in blocks) > self.tokens:
            blocks.pop()
        return blocks
''',
    "src/mail.py": '''"""Sends mail."""


def send_invoice_mail(address: str, invoice: str) -> None:
    """Mail an invoice to a customer through the relay."""
    connect_relay(address).deliver(invoice)
''',
    "docs/scale.md": "# Warehouse\n\nThe warehouse scale weighs pallets and stores their weight in kilograms.\n",
}
QUESTION = "Where is the context budget enforced?"
QUESTIONS = [QUESTION, "How is an invoice mailed to a customer?", "What does the warehouse scale store?"]
INITIALIZE = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "a client", "version": "1"},
}
ME = Actor("me", frozenset({"team:everyone"}))


@dataclass
class Served:
    """A project with a server of its own."""

    folder: Path
    environ: dict[str, str]
    address: str
    token: str
    log: Path

    def rest(self, question: str) -> dict[str, Any]:
        response = httpx.post(
            f"{self.address}/ask", json={"question": question}, headers={"Accept": "application/json"}, timeout=SECONDS
        )
        found: dict[str, Any] = response.json()
        return found

    def ingest(self, path: str) -> dict[str, Any]:
        async def call() -> dict[str, Any]:
            client = McpClient(self.address, self.token)
            try:
                return await client.call("tools/call", {"name": "rag_ingest", "arguments": {"path": path}})
            finally:
                await client.aclose()

        return asyncio.run(call())


def address_in(log: Path) -> str:
    """Where a server says that it answers, once it does."""
    deadline = time.monotonic() + SECONDS
    while (found := re.search(r"RagPilot answers at (\S+);", log.read_text())) is None:
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.05)
    return found[1]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    base = tmp_path_factory.mktemp("mcp")
    folder = base / "project"
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    (base / "outside").mkdir()
    (base / "outside/quokka.md").write_text("# Quokka\n\nThe quokka launch sequence begins at dawn.\n")
    (folder / "out").symlink_to(base / "outside")
    (folder / "quokka.md").symlink_to(base / "outside/quokka.md")
    environ = environ_of(base)
    log = base / "server.log"
    with (
        log.open("w") as handle,
        subprocess.Popen(  # noqa: S603 - our own command
            [*COMMAND, "serve", "--port", "0"], cwd=folder, env=environ, stderr=handle
        ) as process,
    ):
        try:
            address = address_in(log)
            (token,) = (base / "home").glob("*/token")
            project = Served(folder, environ, address, token.read_text(), log)
            result = project.ingest(".")
            assert result["structuredContent"]["added"] == len(FILES), result
            yield project
        finally:
            process.terminate()
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()


@pytest.mark.asyncio
@pytest.mark.parametrize("mode", REVISIONS)
async def test_the_same_question_by_rest_and_by_mcp(served: Served, mode: str) -> None:
    async with agent(served.address, mode=mode) as client:
        assert client.protocol_version == REVISIONS[mode]
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert list(tools) == ["ask", "rag_query", "rag_collections"]
        for question in QUESTIONS:
            told = Told()
            result = await client.call_tool("ask", {"question": question}, progress_callback=told)
            wire = await asyncio.to_thread(served.rest, question)
            found = result.structured_content
            assert (found["answer"], found["sources"]) == (wire["answer"], wire["sources"])
            assert (found["outcome"], found["extract"]) == ("answered", True)
            lines = [f"- {source['filePath']} ({source['score']:.2f})" for source in wire["sources"]]
            assert text_of(result) == "\n".join([wire["answer"] + "\n\nSources:", *lines])
            assert told.grew


@pytest.mark.asyncio
async def test_what_is_not_indexed(served: Served) -> None:
    async with agent(served.address) as client:
        for question in ("what is the capital of France?", "When does the quokka launch sequence begin?"):
            result = await client.call_tool("ask", {"question": question})
            assert text_of(result) == "Not found in the indexed sources."
            assert result.structured_content["sources"] == []
            queried = await client.call_tool("rag_query", {"question": question})
            assert (queried.is_error, queried.structured_content["hits"]) == (False, [])
    assert (await asyncio.to_thread(served.rest, "what is the capital of France?"))["done"]["model"] is None


@pytest.mark.asyncio
async def test_passages_and_collections(served: Served) -> None:
    async with agent(served.address) as client:
        result = await client.call_tool("rag_query", {"question": QUESTION, "limit": 1})
        (hit,) = result.structured_content["hits"]
        assert hit["filePath"] == "src/budget.py"
        assert hit["score"] >= 0.5
        assert hit["text"] in FILES["src/budget.py"]
        assert f"[1] {hit['citation']}, score {hit['score']:.2f}\n```\n{hit['text']}\n```" in text_of(result)
        (one,) = (await client.call_tool("rag_collections")).structured_content["collections"]
        assert (one["name"], one["dimensions"], one["default"]) == ("default", 384, True)
        assert one["pointCount"] > len(FILES)
        assert one["lastIngestionTime"].endswith("Z")


@pytest.mark.asyncio
async def test_a_hundred_questions_at_once_are_all_answered(served: Served) -> None:
    async with agent(served.address) as client, asyncio.timeout(SECONDS):
        calls = [client.call_tool("ask", {"question": QUESTIONS[at % 3]}) for at in range(100)]
        results = await asyncio.gather(*calls)
    texts = [text_of(result) for result in results]
    assert not any(result.is_error for result in results)
    assert texts == texts[:3] * 33 + texts[:1]
    assert [text.rpartition("Sources:\n- ")[2].split(" ")[0] for text in texts[:3]] == [
        "src/budget.py",
        "src/mail.py",
        "docs/scale.md",
    ]


@pytest.mark.asyncio
async def test_what_is_written_is_found_at_once_and_nothing_outside_is_read(served: Served) -> None:
    (served.folder / "docs/harbour.md").write_text("# Harbour\n\nThe harbour crane lifts containers at low tide.\n")
    question = {"question": "When does the harbour crane lift containers?"}
    async with agent(served.address, token=served.token) as client:
        assert (await client.call_tool("ask", question)).structured_content["outcome"] == "not_found"
        result = await client.call_tool("rag_ingest", {"path": "docs"})
        assert text_of(result).startswith("default: 1 new, 1 unchanged; ")
        assert (await client.call_tool("ask", question)).structured_content["sources"][0][
            "filePath"
        ] == "docs/harbour.md"
        for path in ("../outside", "out", "out/quokka.md", "quokka.md", str(served.folder / "src"), "src/absent.py"):
            refused = await client.call_tool("rag_ingest", {"path": path})
            assert refused.is_error, path
            assert "'path'" in text_of(refused)
        runs = await asyncio.gather(*(client.call_tool("rag_ingest", {"path": "."}) for _ in range(4)))
        for run in runs:
            assert not run.is_error or "under way" in text_of(run)
        assert any(not run.is_error for run in runs)
        launch = {"question": "quokka launch sequence", "threshold": 0.0}
        hits = (await client.call_tool("rag_query", launch)).structured_content["hits"]
        assert not [hit for hit in hits if "quokka" in hit["filePath"]]
    async with agent(served.address) as client:
        with pytest.raises(MCPError, match="Unknown tool: rag_ingest"):
            await client.call_tool("rag_ingest", {"path": "docs"})
    log = served.log.read_text()
    for line in (
        "{'path': 'docs'}: complete",
        "{'path': '../outside'}: invalid_request",
        "{'path': 'docs'}: forbidden",
    ):
        assert f"SECURITY server.mcp_toolbox: rag_ingest by local, {line} (" in log
    assert "harbour crane" not in log


@pytest.mark.asyncio
@pytest.mark.parametrize("mode", REVISIONS)
async def test_over_standard_input_and_output(served: Served, mode: str) -> None:
    writing = ["--ingest"] if mode == "auto" else []
    program = StdioServerParameters(
        command=COMMAND[0], args=["-C", str(served.folder), "mcp", *writing], env=served.environ, cwd=served.folder
    )
    async with asyncio.timeout(SECONDS), Client(program, mode=mode) as client:
        assert client.protocol_version == REVISIONS[mode]
        assert client.server_info is not None
        assert client.server_info.name == "pilot-rag-ask"
        assert client.instructions
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert names == ["ask", "rag_query", "rag_collections", *(["rag_ingest"] if writing else [])]
        told = Told()
        result = await client.call_tool("ask", {"question": QUESTION}, progress_callback=told)
        wire = await asyncio.to_thread(served.rest, QUESTION)
        assert result.structured_content["sources"] == wire["sources"]
        assert told.messages[0] == "Searching the index"
        refused = await client.call_tool("ask", {"question": QUESTION, "topK": 0})
        assert (refused.is_error, text_of(refused)) == (True, "'topK' must be a whole number from 1 to 50.")
        with pytest.raises(MCPError, match="Unknown tool: nope"):
            await client.call_tool("nope")


@pytest.mark.asyncio
async def test_a_snippet_starts_what_it_says_whatever_the_client_hands_down(served: Served) -> None:
    printed = await asyncio.to_thread(config_for, served, "--stdio")
    entry = json.loads(printed.stdout)["mcpServers"]["pilot-rag-ask"]
    # A client that gives its servers nothing but what the snippet says.
    program = StdioServerParameters(command=entry["command"], args=entry["args"], env=entry["env"], cwd="/")
    async with asyncio.timeout(SECONDS), Client(program) as client:
        result = await client.call_tool("ask", {"question": QUESTION})
        assert result.structured_content["sources"][0]["filePath"] == "src/budget.py"


def test_calls_may_be_piped_in_and_what_is_none_is_refused(served: Served) -> None:
    calls: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": INITIALIZE},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "rag_query", "arguments": {"question": QUESTION}}},
    ]
    lines = [json.dumps({"jsonrpc": "2.0", **call}).encode() for call in calls]
    done = subprocess.run(  # noqa: S603 - our own command
        [*COMMAND, "mcp"],
        input=b"\n".join([b"garbage", *lines, b"[]"]),
        cwd=served.folder,
        env=served.environ,
        capture_output=True,
        timeout=SECONDS,
        check=True,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer["error"]["code"] for answer in answers if answer["id"] is None] == [-32700, -32600]
    found = {answer["id"]: answer["result"] for answer in answers if answer["id"]}
    assert found[1]["serverInfo"]["name"] == "pilot-rag-ask"
    assert found[2]["structuredContent"]["hits"][0]["filePath"] == "src/budget.py"


def test_the_facade_asks_the_running_server(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "RAGPILOT_HOME"):
        monkeypatch.setenv(name, served.environ[name])
    text = query_rag_for_task_sync("Context budget", "enforce the most tokens", actor=ME, directory=served.folder)
    assert "src/budget.py" in text
    monkeypatch.chdir(served.folder)
    assert asyncio.run(query_rag_for_task("Capital", "of France", actor=ME)) == ""
    stranger = Actor("stranger", frozenset({"user:stranger"}))
    assert query_rag_for_task_sync("Context budget", "enforce the most tokens", actor=stranger) == ""


def config_for(served: Served, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 - our own command
        [*COMMAND, "mcp", "config", "--client", "claude-code", *options],
        cwd=served.folder,
        env=served.environ,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=True,
    )


def test_a_snippet_names_the_running_server(served: Served) -> None:
    done = config_for(served)
    assert json.loads(done.stdout)["mcpServers"]["pilot-rag-ask"] == {"type": "http", "url": f"{served.address}/mcp"}
    assert ".mcp.json" in done.stderr
