"""Streams over real sockets: they flow, they say that they live, and they end, whoever ends them."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections.abc import AsyncGenerator, Callable
from itertools import repeat

import pytest

from ragpilot.config import ChatSettings, ServerSettings, Settings
from ragpilot.errors import ChatModelUnavailableError
from ragpilot.events import AnswerEvent, Token
from ragpilot.types import Prompt
from server.lifecycle import Lifecycle
from server.sse import EventStream
from tests.fakes import ScriptedChatModel
from tests.server.support import (
    Connection,
    Running,
    Stand,
    answer_of,
    events_of,
    running,
    server_settings,
    settings_of,
    until,
)

QUICK = 0.05


def gated(*pieces: str) -> ScriptedChatModel:
    """A model that gives its first piece at once, and every further one when its gate is released."""
    return ScriptedChatModel(pieces or ("one ", "two"), gate=asyncio.Semaphore(0))


def release(model: ScriptedChatModel, times: int = 1) -> None:
    assert model.gate is not None
    for _ in range(times):
        model.gate.release()


def limits(**chat: float) -> Settings:
    return settings_of(chat=ChatSettings(**chat), server=ServerSettings(keep_alive_seconds=10))


class Late(ScriptedChatModel):
    """Gives nothing, not even its first piece, before ``begin`` is set."""

    def __init__(self, *pieces: str, failure: ChatModelUnavailableError | None = None) -> None:
        super().__init__(pieces, failure=failure)
        self.begin = asyncio.Event()

    async def stream(
        self, prompt: Prompt, *, temperature: float, max_tokens: int, report: object = None
    ) -> AsyncGenerator[str, None]:
        self.opened += 1
        try:
            await self.begin.wait()
            if self.failure:
                raise self.failure
            for piece in self.pieces:
                yield piece
        finally:
            self.ended += 1


class Endless(ScriptedChatModel):
    """Never stops and never suspends."""

    async def stream(
        self, prompt: Prompt, *, temperature: float, max_tokens: int, report: object = None
    ) -> AsyncGenerator[str, None]:
        self.opened += 1
        try:
            for piece in repeat(self.pieces[0]):
                yield piece
        finally:
            self.ended += 1


async def opened(server: Running, **headers: str) -> Connection:
    """A connection whose question is being answered."""
    connection = await server.connect()
    await connection.ask(**headers)
    assert (await connection.read_head())[0] == 200
    return connection


async def nothing_open(server: Running, model: ScriptedChatModel, *, seconds: float = 1.0) -> None:
    """Every generation has ended, and no request is open, within a second."""
    await until(lambda: model.ended == model.opened > 0, seconds=seconds)
    await until(lambda: server.app.context.lifecycle.open_requests == 0, seconds=seconds)


@pytest.mark.asyncio
async def test_tokens_arrive_one_by_one() -> None:
    model = gated("a", "b", "c [1]")
    async with running(await Stand(chat=model).app()) as server:
        connection = await opened(server)
        for at, piece in enumerate(model.pieces):
            if at:
                release(model)
            assert await connection.read_chunk() == f'event: token\ndata: {{"text": "{piece}"}}\n\n'.encode()
        names = [events_of(await connection.read_chunk())[0][0] for _ in range(2)]
        assert (names, await connection.read_chunk()) == (["sources", "done"], b"")


@pytest.mark.asyncio
async def test_a_silent_stream_says_that_it_lives() -> None:
    model = gated("a", "b")
    async with running(await Stand(chat=model, settings=server_settings(keep_alive_seconds=QUICK)).app()) as server:
        connection = await opened(server)
        assert events_of(await connection.read_chunk()) == [("token", {"text": "a"})]
        for _ in range(3):
            assert await connection.read_chunk() == b": keep-alive\n\n"
        release(model)
        rest = (await connection.read_chunk()).removeprefix(b": keep-alive\n\n") or await connection.read_chunk()
        assert events_of(rest) == [("token", {"text": "b"})]


@pytest.mark.asyncio
async def test_a_late_first_token_is_waited_for_with_an_open_stream() -> None:
    model = Late("at last")
    async with running(await Stand(chat=model, settings=server_settings(keep_alive_seconds=QUICK)).app()) as server:
        connection = await opened(server)
        assert await connection.read_chunk() == b": keep-alive\n\n"
        model.begin.set()
        body = await connection.rest()
        assert answer_of(events_of(body)) == "at last"


@pytest.mark.asyncio
async def test_a_failure_behind_a_keep_alive_is_an_event() -> None:
    model = Late(failure=ChatModelUnavailableError("It went away."))
    async with running(await Stand(chat=model, settings=server_settings(keep_alive_seconds=QUICK)).app()) as server:
        connection = await opened(server)
        await connection.read_chunk()
        model.begin.set()
        body = await connection.rest()
        (name, failed) = events_of(body)[0]
        assert (name, failed["code"], failed["message"]) == ("error", "model_unavailable", "It went away.")


@pytest.mark.asyncio
async def test_quarts_own_patience_does_not_cut_a_stream() -> None:
    model = gated("a", "b")
    app = await Stand(chat=model, settings=server_settings(keep_alive_seconds=QUICK)).app()
    app.config["RESPONSE_TIMEOUT"] = QUICK
    async with running(app) as server:
        connection = await opened(server)
        for _ in range(4):
            await connection.read_chunk()
        release(model)
        body = await connection.rest()
        assert events_of(body)[-1][0] == "done"


@pytest.mark.asyncio
async def test_those_who_wait_are_told_and_those_who_are_too_many_come_back_later() -> None:
    model = gated("a", "b")
    stand = Stand(chat=model, settings=server_settings(max_running=1, max_waiting=1, keep_alive_seconds=QUICK))
    async with running(await stand.app()) as server:
        first = await opened(server)
        second = await opened(server)
        assert await second.read_chunk() == b": queued\n\n"
        assert await second.read_chunk() == b": queued\n\n"
        third = await server.call("POST", "/ask", b'{"question": "context budget"}')
        assert (third.status, json.loads(third.body)["code"]) == (429, "overloaded")
        assert int(third.headers["retry-after"]) > 0
        refused = await server.call("POST", "/ask", b'{"question": "quagga zebra okapi"}')
        assert events_of(refused.body)[-1][1]["outcome"] == "not_found"
        assert (await server.call("POST", "/search", b'{"question": "context budget"}')).status == 200
        release(model, 2)
        for connection in (first, second):
            body = await connection.rest()
            assert events_of(body)[-1][0] == "done"
        await nothing_open(server, model)
    assert (stand.admission.running, stand.admission.waiting) == (0, 0)


@pytest.mark.asyncio
async def test_waiting_does_not_count_against_the_limits() -> None:
    model = gated("a", "b")
    settings = settings_of(
        chat=ChatSettings(first_token_seconds=0.1, total_seconds=30.0),
        server=ServerSettings(max_running=1, keep_alive_seconds=QUICK),
    )
    async with running(await Stand(chat=model, settings=settings).app()) as server:
        first, second = await opened(server), await opened(server)
        for _ in range(5):
            assert await second.read_chunk() == b": queued\n\n"
        release(model, 2)
        body = await second.rest()
        assert events_of(body)[-1][0] == "done"
        await first.close()


@pytest.mark.asyncio
@pytest.mark.parametrize("accept", ["text/event-stream", "application/json"])
@pytest.mark.parametrize("abort", [False, True], ids=["close", "reset"])
@pytest.mark.parametrize("make", [gated, Late, lambda: Endless(["x" * 50])], ids=["silent", "not begun", "endless"])
async def test_a_client_that_leaves_stops_the_generation(
    make: Callable[[], ScriptedChatModel], abort: bool, accept: str, caplog: pytest.LogCaptureFixture
) -> None:
    model = make()
    async with running(await Stand(chat=model).app()) as server:
        connection = await server.connect()
        await connection.ask(Accept=accept)
        await until(lambda: model.opened == 1)
        if abort:
            connection.writer.transport.abort()
        else:
            await connection.close()
        await nothing_open(server, model)
        assert (await server.call("GET", "/health")).status == 200
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.mark.asyncio
async def test_many_who_leave_while_they_wait_or_listen_leave_nothing_behind(
    caplog: pytest.LogCaptureFixture,
) -> None:
    model = gated("a", "b")
    stand = Stand(chat=model, settings=server_settings(max_running=2, max_waiting=50))
    async with running(await stand.app()) as server:
        connections = [await opened(server) for _ in range(40)]
        await until(lambda: stand.admission.waiting == 38)
        for connection in connections:
            await connection.close()
        await nothing_open(server, model)
        assert (stand.admission.running, stand.admission.waiting) == (0, 0)
        last = await opened(server)
        release(model)
        assert events_of(await last.read_chunk())[0][0] == "token"
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.mark.asyncio
async def test_a_reader_that_takes_nothing_does_not_hold_its_place() -> None:
    model = Endless(["x" * 10_000])
    stand = Stand(chat=model, settings=server_settings(max_running=1, max_waiting=0))
    async with running(await stand.app(stall_seconds=0.2)) as server:
        raw = socket.create_connection(("127.0.0.1", server.port))
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        reader, writer = await asyncio.open_connection(sock=raw, limit=1024)
        connection = Connection(reader, writer)
        await connection.ask()
        await nothing_open(server, model, seconds=5.0)
        assert stand.admission.running == 0
        writer.transport.abort()


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("make", "settings", "words"),
    [
        (Late, {"first_token_seconds": QUICK}, "first token did not come within 0.05 s (chat.first_token_seconds)"),
        (gated, {"idle_seconds": QUICK}, "silent for 0.05 s (chat.idle_seconds)"),
        (gated, {"total_seconds": QUICK}, "longer than 0.05 s (chat.total_seconds)"),
        (lambda: Endless(["x"]), {"total_seconds": QUICK}, "longer than 0.05 s (chat.total_seconds)"),
    ],
    ids=["first", "idle", "total", "total of a flood"],
)
async def test_a_limit_ends_the_answer_and_is_named(
    make: Callable[[], ScriptedChatModel], settings: dict[str, float], words: str
) -> None:
    model = make()
    async with running(await Stand(chat=model, settings=limits(**settings)).app()) as server:
        whole = await server.call("POST", "/ask", b'{"question": "context budget"}', {"Accept": "application/json"})
        assert (whole.status, json.loads(whole.body)["code"]) == (503, "model_timeout")
        assert words in json.loads(whole.body)["detail"]
        stream = await server.call("POST", "/ask", b'{"question": "context budget"}')
        if isinstance(model, Late):
            assert stream.status == 503
        else:
            (name, failed) = events_of(stream.body)[-1]
            assert (stream.status, stream.complete, name, failed["code"]) == (200, True, "error", "model_timeout")
            assert words in failed["message"]
            assert failed["requestId"] == stream.headers["x-request-id"]
        await nothing_open(server, model)


@pytest.mark.asyncio
async def test_a_shutdown_ends_open_answers_with_a_word() -> None:
    model = gated("a", "b")
    async with running(await Stand(chat=model, settings=server_settings(max_running=2)).app()) as server:
        stream, waiting = await opened(server), await opened(server)
        whole = await server.connect()
        await whole.ask(Accept="application/json")
        idle = await server.connect()
        await stream.read_chunk()
        await waiting.read_chunk()
        await until(lambda: server.app.context.lifecycle.open_requests == 3)
        server.stop.set()
        await until(lambda: server.app.context.lifecycle.draining)
        await idle.send("GET", "/health")
        refused = await idle.read()
        assert (refused.status, json.loads(refused.body)["code"]) == (503, "shutting_down")
        for connection in (stream, waiting):
            (name, failed) = events_of(await connection.read_chunk())[0]
            assert (name, failed["code"]) == ("error", "shutting_down")
            assert await connection.read_chunk() == b""
        answer = await whole.read()
        assert (answer.status, json.loads(answer.body)["code"]) == (503, "shutting_down")
        async with asyncio.timeout(20):
            await server.task
        assert model.ended == model.opened


@pytest.mark.asyncio
async def test_an_answer_that_is_nearly_there_still_arrives_at_a_shutdown() -> None:
    model = gated("a", "b [1]")
    async with running(await Stand(chat=model).app()) as server:
        connection = await opened(server)
        await connection.read_chunk()
        server.stop.set()
        await until(lambda: server.app.context.lifecycle.draining)
        release(model)
        body = await connection.rest()
        assert [name for name, _ in events_of(body)] == ["token", "sources", "done"]


@pytest.mark.asyncio
async def test_a_reader_that_takes_nothing_does_not_hold_up_a_shutdown(caplog: pytest.LogCaptureFixture) -> None:
    model = Endless(["x" * 10_000])
    async with running(await Stand(chat=model).app()) as server:
        connection = await opened(server)
        server.stop.set()
        async with asyncio.timeout(20):
            await server.task
        assert model.ended == model.opened
        connection.writer.transport.abort()
    assert "Traceback" not in caplog.text


@pytest.mark.asyncio
async def test_events_that_end_without_a_last_one_end_with_an_error() -> None:
    async def events() -> AsyncGenerator[AnswerEvent, None]:
        yield Token("a")

    stream = EventStream(events(), request_id="id-1", lifecycle=Lifecycle(), keep_alive=5)
    async with asyncio.timeout(5):
        await stream.begin()
        frames = b"".join([frame async for frame in stream.frames()])
        await stream.aclose()
    assert [name for name, _ in events_of(frames)] == ["token", "error"]
    assert events_of(frames)[1][1]["code"] == "internal_error"


@pytest.mark.asyncio
async def test_a_stream_that_never_began_is_closed_all_the_same() -> None:
    closed = asyncio.Event()

    async def events() -> AsyncGenerator[AnswerEvent, None]:
        try:
            await asyncio.Event().wait()
            yield Token("a")
        finally:
            closed.set()

    stream = EventStream(events(), request_id="id-1", lifecycle=Lifecycle(), keep_alive=5)
    await asyncio.sleep(0)
    async with asyncio.timeout(5):
        await stream.aclose()
        await stream.aclose()
    assert closed.is_set()
