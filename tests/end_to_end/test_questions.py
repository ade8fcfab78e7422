"""One question through everything: a server process, the embedded store and embedder, `curl -N`, and every front end.

The chat model stands behind a socket of the test's, so that what it was asked, and whether at all, is seen from there.
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from ragpilot.events import Sources, event_from_wire
from ragpilot.types import NOT_FOUND_ANSWER
from tests.end_to_end.command import COMMAND
from tests.end_to_end.project import FILES, make_project
from tests.protocol.openai_server import OpenAiServer
from tests.tui.host import ask, reach, until
from tui.app import RagPilotApp
from tui.backend import Backend
from tui.widgets.exchange import ExchangeState

QUESTION = "Where is the context budget enforced?"
OFF_CORPUS = "what is the capital of France?"
PIECES = ("The ", "budget is enforced\n", "in `cut_lowest_ranked`", " [1].")
SECONDS = 60
_BLOCK = re.compile(r"^\[(\d+)\]\n<<<\w+\n(\S+) lines (\d+)-(\d+)", re.MULTILINE)


@dataclass
class Stand:
    """A server process over an indexed folder, and the model it asks."""

    address: str
    folder: Path
    environ: dict[str, str]
    model: OpenAiServer

    async def output(self, *command: str) -> str:
        process = await asyncio.create_subprocess_exec(
            *command, cwd=self.folder, env=self.environ, stdout=asyncio.subprocess.PIPE
        )
        out, _ = await process.communicate()
        return out.decode()


@dataclass
class Curl:
    """A real `curl -N`, read line by line."""

    process: asyncio.subprocess.Process
    lines: list[str] = field(default_factory=list)

    async def event(self) -> tuple[str, Any] | None:
        """The next event; None at the end of the stream. Comments are passed over."""
        name = ""
        assert self.process.stdout
        while line := (await self.process.stdout.readline()).decode():
            if line.startswith("event: "):
                name = line.removeprefix("event: ").strip()
            elif line.startswith("data: "):
                return name, json.loads(line.removeprefix("data: "))
        return None


async def curl(stand: Stand, question: str) -> Curl:
    program = shutil.which("curl")
    assert program, "these tests need curl"
    body = json.dumps({"question": question})
    process = await asyncio.create_subprocess_exec(
        program, "-sN", f"{stand.address}/ask", "-H", "Content-Type: application/json", "-d", body,
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    return Curl(process)


@asynccontextmanager
async def stand_of(base: Path) -> AsyncIterator[Stand]:
    project = make_project(base)
    async with OpenAiServer(PIECES) as model:
        environ = {**project.environ, "RAGPILOT_CHAT__KIND": "openai", "RAGPILOT_CHAT__URL": model.url}
        process = await asyncio.create_subprocess_exec(
            *COMMAND, "serve", "--port", "0", cwd=project.folder, env=environ, stderr=asyncio.subprocess.PIPE
        )
        assert process.stderr
        lines = process.stderr
        try:
            async with asyncio.timeout(SECONDS):
                address = None
                while address is None and (line := await lines.readline()):
                    address = re.search(r"RagPilot answers at (http://[\d.:]+)", line.decode())
                assert address, "the server ended before it listened"
                draining = asyncio.create_task(lines.read())
                stand = Stand(address.group(1), project.folder, environ, model)
                # Beside the running server, and asked about without a restart.
                await stand.output(*COMMAND, "index")
                await everything_embedded(stand)
            yield stand
        finally:
            process.terminate()
            async with asyncio.timeout(10):
                await process.wait()
    assert "Traceback" not in (await draining).decode()
    assert process.returncode == 0


async def everything_embedded(stand: Stand) -> None:
    """Wait until the server has filled all vectors in, so that scores no longer change."""
    backend = Backend(stand.address, None)
    while True:
        stats = await backend.stats()
        if stats.documents == len(FILES) and stats.body_share == 1.0:
            break
        await asyncio.sleep(0.05)
    await backend.aclose()


@pytest.mark.asyncio
async def test_one_question_end_to_end(tmp_path: Path) -> None:
    async with asyncio.timeout(2 * SECONDS), stand_of(tmp_path) as stand:
        await tokens_come_one_by_one_then_the_sources_of_the_prompt_then_done(stand)
        await off_corpus_is_not_found_and_no_model_is_called(stand)
        await every_front_end_names_the_same_sources_with_the_same_scores(stand)


async def tokens_come_one_by_one_then_the_sources_of_the_prompt_then_done(stand: Stand) -> None:
    stand.model.gate = asyncio.Semaphore(0)
    stream = await curl(stand, QUESTION)
    for piece in PIECES:
        assert await stream.event() == ("token", {"text": piece})
        # Only now may the model say the next piece: nothing between it and curl holds one back.
        stand.model.gate.release()
    stand.model.gate = None
    sources = await stream.event()
    done = await stream.event()
    assert await stream.event() is None
    assert await stream.process.wait() == 0
    assert sources
    assert done
    assert (sources[0], done[0]) == ("sources", "done")
    (asked,) = stand.model.sent_to("/v1/chat/completions")
    prompt = asked["messages"][-1]["content"]
    blocks = [(path, int(start), int(end)) for _, path, start, end in _BLOCK.findall(prompt)]
    assert blocks == [(source["filePath"], source["startLine"], source["endLine"]) for source in sources[1]]
    assert blocks[0][0] == "src/budget.py"
    assert [source["cited"] for source in sources[1]] == [True] + [False] * (len(blocks) - 1)
    assert done[1]["outcome"] == "answered"
    assert done[1]["model"] == "qwen"


async def off_corpus_is_not_found_and_no_model_is_called(stand: Stand) -> None:
    calls = len(stand.model.sent_to("/v1/chat/completions"))
    stream = await curl(stand, OFF_CORPUS)
    assert await stream.event() == ("token", {"text": NOT_FOUND_ANSWER})
    assert await stream.event() == ("sources", [])
    done = await stream.event()
    assert done
    assert done[0] == "done"
    assert (done[1]["outcome"], done[1]["model"]) == ("not_found", None)
    assert await stream.event() is None
    assert len(stand.model.sent_to("/v1/chat/completions")) == calls


async def every_front_end_names_the_same_sources_with_the_same_scores(stand: Stand) -> None:
    by_sse = await through_sse(stand)
    assert by_sse
    assert await through_json(stand) == by_sse
    assert await through_the_command_line(stand) == by_sse
    assert await through_the_terminal_ui(stand) == by_sse


async def through_sse(stand: Stand) -> list[tuple[str, float]]:
    stream = await curl(stand, QUESTION)
    while event := await stream.event():
        decoded = event_from_wire(event[0], json.dumps(event[1]))
        if isinstance(decoded, Sources):
            return [(source.citation, source.score) for source in decoded.sources]
    raise AssertionError("no sources came")


async def through_json(stand: Stand) -> list[tuple[str, float]]:
    out = await stand.output(
        "curl", "-s", f"{stand.address}/ask", "-H", "Content-Type: application/json", "-H", "Accept: application/json",
        "-d", json.dumps({"question": QUESTION}),
    )  # fmt: skip
    return [(source["citation"], source["score"]) for source in json.loads(out)["sources"]]


async def through_the_command_line(stand: Stand) -> list[tuple[str, float]]:
    out = await stand.output(*COMMAND, "ask", QUESTION, "--json")
    return [(source["citation"], source["score"]) for source in json.loads(out)["sources"]]


async def through_the_terminal_ui(stand: Stand) -> list[tuple[str, float]]:
    async def connect() -> Backend:
        return Backend(stand.address, None)

    app = RagPilotApp(connect)
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: app.is_mounted)
        exchange = await ask(app, pilot, QUESTION)
        await reach(pilot, exchange, ExchangeState.ANSWERED)
        return [(source.citation, source.score) for source in exchange.sources]


@pytest.mark.asyncio
async def test_an_answer_over_the_wire_can_be_stopped(tmp_path: Path) -> None:
    async with asyncio.timeout(2 * SECONDS), stand_of(tmp_path) as stand:
        stand.model.gate = asyncio.Semaphore(0)
        backend = Backend(stand.address, None)
        async with aclosing(backend.ask(QUESTION)) as events:
            await anext(events)
        await backend.aclose()
        # The connection to the model is closed with it, within a second.
        await stand.model.all_closed()
