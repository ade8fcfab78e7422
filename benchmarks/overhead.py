"""What the server costs: added to a model's first token, and taken from its token rate.

The model is a protocol server that speaks 200 tokens a second, in a process of its own. It is asked by the bare
adapter and, in turns with it, through `ragpilot serve`, which is the product as it is: its own process, embedded
store and embedder, a prompt of eight passages.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

import ragpilot
from benchmarks.tables import Table
from ragpilot.adapters.openai_chat import OpenAiChat
from ragpilot.types import Chunk, ContextBlock, Hit, Prompt
from tests.protocol.http_server import Reply, Request
from tests.protocol.openai_server import OpenAiServer, event

RATE = 200
TOKENS = 100
ROUNDS = 30
QUESTION = "where is the context budget enforced?"
QUANTILES = (0.1, 0.5, 0.95)
"""Of times; of rates the opposite ends. On a machine that does other things too, the first says most."""
RETRIEVAL = ("check", "embed", "search", "rank", "retry")
WAIT_SECONDS = 60.0
"""The longest wait for anything here."""


@dataclass
class Timed:
    """One answer: milliseconds to the first token, of these in retrieval, and tokens a second from then on."""

    first: float
    rate: float
    retrieval: float = 0.0

    @property
    def own(self) -> float:
        """What is neither the search for passages nor anything behind the first token."""
        return self.first - self.retrieval


@dataclass
class Side:
    """All answers that came one way."""

    answers: list[Timed] = field(default_factory=list)

    def at(self, name: str, share: float) -> float:
        """A quantile of a figure."""
        values = sorted(getattr(answer, name) for answer in self.answers)
        return float(values[min(len(values) - 1, int(share * len(values)))])


def run() -> list[Table]:
    """Index RagPilot's own core, start model and server, ask in turns."""
    with (
        tempfile.TemporaryDirectory(prefix="ragpilot-bench-") as name,
        _model() as model,
        _server(Path(name), model) as address,
    ):
        bare, served = asyncio.run(_ask_in_turns(model, address))
    return [_table(bare, served)]


def _table(bare: Side, served: Side) -> Table:
    title = f"What the server adds to a model of {RATE} tokens/s ({ROUNDS} answers of {TOKENS} tokens each way)"
    table = Table(title, ("what", "p10", "p50", "p95"))
    for what, side, name in (
        ("first token, bare adapter (ms)", bare, "first"),
        ("first token, through the server (ms)", served, "first"),
        ("  of it retrieval (ms)", served, "retrieval"),
        ("  of it anything else (ms)", served, "own"),
    ):
        table.add(what, *(f"{side.at(name, share):.1f}" for share in QUANTILES))
    added = (served.at("own", share) - bare.at("first", share) for share in QUANTILES)
    table.add("first token, added by the server (ms; below 5)", *(f"{more:.1f}" for more in added))
    for what, side in (("tokens/s, bare adapter", bare), ("tokens/s, through the server", served)):
        table.add(what, *(f"{side.at('rate', 1 - share):.1f}" for share in QUANTILES))
    lost = (1 - served.at("rate", 1 - share) / bare.at("rate", 1 - share) for share in QUANTILES)
    table.add("token rate lost (below 2 %)", *(f"{less:.2%}" for less in lost))
    return table


async def _ask_in_turns(model: str, address: str) -> tuple[Side, Side]:
    """In turns, so that what else goes on in the machine meets both alike; the first round warms up and is left out."""
    bare, served = Side(), Side()
    host, _, port = address.removeprefix("http://").partition(":")
    async with aclosing(OpenAiChat(model, "qwen")) as chat:
        await chat.prepare()
        for number in range(ROUNDS + 1):
            async with asyncio.timeout(WAIT_SECONDS):
                one, other = await _from_adapter(chat), await _from_server(host, int(port))
            if number:
                bare.answers.append(one)
                served.answers.append(other)
    return bare, served


async def _from_adapter(chat: OpenAiChat) -> Timed:
    started = time.perf_counter()
    times = []
    async with aclosing(chat.stream(_prompt(), temperature=0.1, max_tokens=1024)) as pieces:
        async for _ in pieces:
            times.append(time.perf_counter())  # noqa: PERF401 -- each time is that of its piece
    return Timed((times[0] - started) * 1000, _rate(times))


async def _from_server(host: str, port: int) -> Timed:
    """Over a bare socket, as curl would: what a client's library costs is not the server's."""
    reader, writer = await asyncio.open_connection(host, port)
    body = json.dumps({"question": QUESTION})
    head = f"POST /ask HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    started = time.perf_counter()
    writer.write(f"{head}\r\nConnection: close\r\n\r\n{body}".encode())
    times, name, timings = [], b"", {}
    async for line in reader:
        # The lines of the chunked encoding stand between those of the events, and are none of them.
        if line.startswith(b"event: "):
            name = line.strip().removeprefix(b"event: ")
        elif line.startswith(b"data: ") and name == b"token":
            times.append(time.perf_counter())
        elif line.startswith(b"data: ") and name in {b"done", b"error"}:
            timings = json.loads(line.removeprefix(b"data: ")).get("timings", {})
    writer.close()
    return Timed((times[0] - started) * 1000, _rate(times), sum(timings.get(stage, 0.0) for stage in RETRIEVAL))


def _rate(times: list[float]) -> float:
    if len(times) != TOKENS:
        raise RuntimeError(f"{len(times)} tokens came, not {TOKENS}")
    return (len(times) - 1) / (times[-1] - times[0])


def _prompt() -> Prompt:
    """As large as those that the server makes: eight passages of a thousand characters."""
    text = "the context budget is enforced where the lowest ranked passage is cut\n" * 14
    chunk = Chunk("1", "1", "default", "a.py", "code-python", None, "a", "a", text, 1, 14, frozenset(), "", 0, 0, 0)
    blocks = tuple(ContextBlock(number, Hit(chunk, 0.6, number), text, 250, text) for number in range(1, 9))
    return Prompt("Answer from the context blocks alone.", blocks, QUESTION, tokens=2100)


@contextmanager
def _model() -> Iterator[str]:
    """The address of a protocol server in a process of its own."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_speak, args=(theirs,), daemon=True)
    process.start()
    try:
        if not ours.poll(WAIT_SECONDS):
            raise RuntimeError("the model's server did not start")
        yield ours.recv()
    finally:
        process.terminate()
        process.join()


def _speak(pipe: Connection) -> None:
    async def serve() -> None:
        server = OpenAiServer()
        server.chat_fault = _paced
        async with server:
            pipe.send(server.url)
            await asyncio.Event().wait()

    asyncio.run(serve())


async def _paced(_: Request, reply: Reply) -> None:
    """An answer whose tokens are due at fixed times: one that leaves late delays none behind it."""
    await reply.start("text/event-stream")
    started = time.perf_counter()
    for number in range(1, TOKENS + 1):
        await reply.chunk(event(choices=[{"index": 0, "delta": {"content": "word "}, "finish_reason": None}]))
        await asyncio.sleep(max(0.0, started + number / RATE - time.perf_counter()))
    await reply.chunk(event(choices=[{"index": 0, "delta": {}, "finish_reason": "stop"}]) + b"data: [DONE]\n\n")
    await reply.end()


@contextmanager
def _server(folder: Path, model: str) -> Iterator[str]:
    """The address of `ragpilot serve` over RagPilot's own core, with ``model`` as its chat model."""
    tree = folder / "tree"
    tree.mkdir()
    for file in Path(ragpilot.__file__).parent.glob("*.py"):
        shutil.copy(file, tree)
    chat = {"KIND": "openai", "URL": model, "MODEL": "qwen"}
    environ = {name: value for name, value in os.environ.items() if not name.startswith("RAGPILOT_")}
    environ |= {f"RAGPILOT_CHAT__{name}": value for name, value in chat.items()}
    environ |= {"RAGPILOT_HOME": str(folder / "home"), "XDG_CONFIG_HOME": str(folder / "config")}
    command = [sys.executable, "-m", "ragpilot", "--directory", str(tree)]
    subprocess.run([*command, "index", "--quiet"], env=environ, check=True)  # noqa: S603 -- our own command
    serving = [*command, "serve", "--port", "0"]
    with subprocess.Popen(serving, env=environ, stderr=subprocess.PIPE, text=True) as process:  # noqa: S603 -- as above
        try:
            assert process.stderr is not None
            line = next((line for line in process.stderr if "answers at" in line), "")
            if not line:
                raise RuntimeError("the server did not start")
            yield line.split("answers at ")[1].partition(";")[0]
        finally:
            process.terminate()
