from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any

import pytest

from ragpilot import errors
from ragpilot.errors import RagPilotError, ServerUnreachableError
from ragpilot.events import AnswerEvent, Done, Failed, Sources, Token, event_to_wire, to_wire
from ragpilot.types import NOT_FOUND_ANSWER, Health, IngestProgress, IngestReport, Outcome, SourceText, Turn
from tests.tui.scripted import NEAR_MISSES, SOURCES, done, progress, report, source, stats
from tests.tui.wire_server import Reply, as_json, problem, serving, stream
from tui.backend import Backend

BOUND = 10.0
"""Seconds that nothing here comes near."""

EVENTS: list[AnswerEvent] = [
    Token("  the"),
    Token("\n\n"),
    Token("data: x\u2028 \x1b[31m é\r\n"),
    Sources(SOURCES),
    done(near_misses=NEAR_MISSES, unsupported=(9,), warnings=("cut",)),
]


def frames(*events: Any, end: str = "\n") -> bytes:
    return "".join(
        f"event: {name}{end}data: {data}{end}{end}" for name, data in (event_to_wire(event) for event in events)
    ).encode()


async def collect(events: AsyncIterator[Any]) -> list[Any]:
    async with asyncio.timeout(BOUND):
        return [event async for event in events]


async def ask(reply: Reply, **given: Any) -> list[Any]:
    async with serving(reply) as server:
        backend = Backend(server.url, None)
        try:
            return await collect(backend.ask("where?", **given))
        finally:
            await backend.aclose()


async def call(reply: Reply, method: Callable[[Backend], Awaitable[Any]]) -> Any:
    async with serving(reply) as server, asyncio.timeout(BOUND):
        backend = Backend(server.url, "secret")
        try:
            return await method(backend)
        finally:
            await backend.aclose()


@pytest.mark.asyncio
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
async def test_events_arrive_as_they_were_sent(end: str) -> None:
    assert await ask(stream(frames(*EVENTS, end=end))) == EVENTS


@pytest.mark.asyncio
async def test_frames_may_be_split_anywhere() -> None:
    whole = b": keep-alive\n\n" + frames(*EVENTS, end="\r\n")
    pieces = [whole[at : at + 53] for at in range(0, len(whole), 53)]
    assert await ask(stream(*pieces)) == EVENTS


@pytest.mark.asyncio
async def test_comments_and_unknown_events_are_passed_over() -> None:
    sent = b": queued\n\n" + frames(EVENTS[0]) + b"event: later\ndata: {}\n\n" + frames(*EVENTS[1:]) + b": bye\n\n"
    assert await ask(stream(sent)) == EVENTS


@pytest.mark.asyncio
async def test_request_names_what_was_given_and_nothing_else() -> None:
    async with serving(stream(frames(*EVENTS))) as server:
        backend = Backend(server.url + "/", "secret")
        turns = (Turn("user", "first"), Turn("assistant", "answer"))
        await collect(backend.ask("where?", top_k=3, corpus="docs", conversation=turns, focus=["src/**"]))
        await collect(backend.ask("where?"))
        await backend.aclose()
    (line, headers, body), (_, _, bare) = server.requests
    assert line == "POST /ask"
    assert headers["authorization"] == "Bearer secret"
    assert headers["accept"] == "text/event-stream"
    assert body == {
        "question": "where?",
        "topK": 3,
        "corpus": "docs",
        "conversation": [{"role": "user", "content": "first"}, {"role": "assistant", "content": "answer"}],
        "focus": ["src/**"],
    }
    assert bare == {"question": "where?"}


@pytest.mark.asyncio
async def test_an_error_event_is_the_last_event() -> None:
    failed = Failed("model_error", "The model broke.", "77")
    assert await ask(stream(frames(Token("so far"), failed))) == [Token("so far"), failed]


@pytest.mark.asyncio
async def test_closing_the_iterator_closes_the_connection() -> None:
    async with serving(stream(frames(Token("one"), Token("two")), stay=True)) as server, asyncio.timeout(BOUND):
        backend = Backend(server.url, None)
        async with aclosing(backend.ask("where?")) as events:
            assert await anext(events) == Token("one")
        await server.client_left.wait()
        await backend.aclose()


@pytest.mark.asyncio
async def test_cancelling_the_reader_closes_the_connection() -> None:
    async with serving(stream(frames(Token("one")), stay=True)) as server, asyncio.timeout(BOUND):
        backend = Backend(server.url, None)
        begun = asyncio.Event()

        async def read() -> None:
            async with aclosing(backend.ask("where?")) as events:
                async for _ in events:
                    begun.set()

        task = asyncio.create_task(read())
        await begun.wait()
        task.cancel()
        await server.client_left.wait()
        await backend.aclose()


@pytest.mark.asyncio
async def test_the_last_event_ends_the_answer_although_the_connection_stays() -> None:
    assert (await ask(stream(frames(*EVENTS), stay=True)))[-1] == EVENTS[-1]


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (stream(frames(*EVENTS[:3])), "before it was complete"),
        (stream(frames(EVENTS[0]), b"event: token\ndata: {"), "before it was complete"),
        (stream(frames(*EVENTS[:3]), headers=["Content-Length: 9999"]), "closed the connection"),
        (stream(b"event: token\ndata: {\n\n"), "does not speak"),
        (stream(b'event: token\ndata: {"words": 1}\n\n'), "does not speak"),
        (stream(b"event: done\ndata: []\n\n"), "does not speak"),
        (Reply([b"<html>"], kind="text/html"), "does not speak"),
        (Reply([b"<html>"], "502 Bad Gateway", "text/html"), "does not speak"),
        (Reply([b"[]"], "404 Not Found", "application/problem+json"), "does not speak"),
    ],
)
async def test_a_broken_answer_is_an_error(reply: Reply, words: str) -> None:
    with pytest.raises(ServerUnreachableError, match=words):
        await ask(reply)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        ("404 Not Found", "unknown_corpus", errors.UnknownCorpusError),
        ("409 Conflict", "index_mismatch", errors.IndexMismatchError),
        ("403 Forbidden", "forbidden", errors.PermissionDeniedError),
        ("503 Service Unavailable", "store_unavailable", errors.StoreUnavailableError),
        ("503 Service Unavailable", "model_unavailable", errors.ChatModelUnavailableError),
        ("418 I'm a teapot", "of_a_later_version", RagPilotError),
    ],
)
async def test_problem_documents_become_errors_of_the_tree(status: str, code: str, kind: type[RagPilotError]) -> None:
    with pytest.raises(RagPilotError) as raised:
        await ask(problem(status, code, "What happened. What to do.", hint="What to do."))
    assert type(raised.value) is kind
    assert (raised.value.message, raised.value.hint) == ("What happened.", "What to do.")


@pytest.mark.asyncio
async def test_a_token_that_is_missing_or_not_known_is_told_by_its_variable() -> None:
    reply = problem(
        "401 Unauthorized", "unauthenticated", "A known bearer token is needed: Authorization: Bearer TOKEN."
    )
    with pytest.raises(errors.AuthenticationError, match=r"asks for a token\. It is taken from RAGPILOT_TOKEN"):
        await ask(reply)
    with pytest.raises(errors.AuthenticationError, match="knows nobody by this token"):
        await call(reply, Backend.health)


@pytest.mark.asyncio
async def test_a_full_queue_tells_when_to_come_back() -> None:
    with pytest.raises(errors.OverloadedError) as raised:
        await ask(problem("429 Too Many Requests", "overloaded", "Too many.", "Retry-After: 10"))
    assert raised.value.retry_after == 10


@pytest.mark.asyncio
async def test_a_refused_field_is_named() -> None:
    with pytest.raises(errors.InvalidRequestError) as raised:
        await ask(problem("422 Unprocessable", "invalid_request", "'topK' must be 1 to 50.", field="topK"))
    assert raised.value.field == "topK"


@pytest.mark.asyncio
async def test_no_server_is_an_error_with_its_address() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    backend = Backend(f"http://127.0.0.1:{port}", None)
    with pytest.raises(ServerUnreachableError, match=f"127.0.0.1:{port}") as raised:
        await collect(backend.ask("where?"))
    assert raised.value.hint
    with pytest.raises(ServerUnreachableError):
        await backend.stats()
    await backend.aclose()


@pytest.mark.asyncio
async def test_a_proxy_in_the_environment_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    assert await ask(stream(frames(*EVENTS))) == EVENTS


@pytest.mark.asyncio
async def test_a_run_ends_with_its_report() -> None:
    events: list[IngestProgress | IngestReport] = [progress("chunks"), progress(), report(added=3)]
    async with serving(stream(frames(*events))) as server:
        backend = Backend(server.url, "secret")
        assert await collect(backend.index(corpus="docs", rebuild=True)) == events
        await backend.aclose()
    assert server.requests[0][2] == {"corpus": "docs", "rebuild": True}


@pytest.mark.asyncio
async def test_a_run_that_fails_raises_the_error_it_names() -> None:
    sent = stream(frames(progress(), Failed("bad_root", "The root is gone.", "1")))
    with pytest.raises(errors.RootError, match="The root is gone"):
        await call(sent, lambda backend: collect(backend.index()))


@pytest.mark.asyncio
async def test_a_run_that_breaks_off_is_an_error() -> None:
    with pytest.raises(ServerUnreachableError, match="before it was complete"):
        await call(stream(frames(progress())), lambda backend: collect(backend.index()))


@pytest.mark.asyncio
async def test_statistics_survive_the_wire() -> None:
    assert await call(as_json(to_wire(stats(7, share=0.5))), lambda backend: backend.stats("default")) == stats(
        7, share=0.5
    )


@pytest.mark.asyncio
async def test_an_empty_index_has_no_time() -> None:
    body = {**to_wire(stats(0)), "lastIngestionTime": None}
    assert (await call(as_json(body), lambda backend: backend.stats())).last_ingestion_time is None


@pytest.mark.asyncio
@pytest.mark.parametrize("status", ["200 OK", "503 Service Unavailable"])
async def test_health_is_told_ill_or_well(status: str) -> None:
    body = {"status": "unavailable", "store": {"ok": False, "detail": "away", "latencyMs": 2.5}}
    found = await call(as_json(body, status), lambda backend: backend.health())
    assert found == {"store": Health(ok=False, detail="away", latency_ms=2.5)}


@pytest.mark.asyncio
async def test_corpora_are_listed() -> None:
    body = {
        "corpora": [
            {
                "name": "docs",
                "default": True,
                "pointCount": 7,
                "lastIngestionTime": "2030-01-02T03:04:05Z",
                "dimensions": 384,
                "embedder": "minilm",
            }
        ]
    }
    (corpus,) = await call(as_json(body), lambda backend: backend.corpora())
    assert corpus.name == "docs"
    assert corpus.last_ingestion_time == datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.mark.asyncio
async def test_a_source_is_asked_for_by_its_id() -> None:
    text = SourceText(source(1, stale=True), "own", "before\n", "after", 8)
    async with serving(as_json(to_wire(text))) as server:
        backend = Backend(server.url, None)
        assert await backend.source("a/b c", "docs", 3) == text
        await backend.aclose()
    assert server.requests[0][0] == "GET /sources/a%2Fb%20c?corpus=docs&context=3"


@pytest.mark.asyncio
async def test_search_is_told_as_the_server_tells_it() -> None:
    body = {"hits": [to_wire(source(1))], "floor": 0.35, "gate": None}
    assert await call(as_json(body), lambda backend: backend.search("where?", k=3)) == body


@pytest.mark.asyncio
@pytest.mark.parametrize("body", [[], {"corpus": "x"}, None])
async def test_json_of_another_program_is_an_error(body: Any) -> None:
    with pytest.raises(ServerUnreachableError, match="does not speak"):
        await call(as_json(body), lambda backend: backend.stats())


@pytest.mark.asyncio
async def test_the_not_found_answer_is_an_answer() -> None:
    events = [Token(NOT_FOUND_ANSWER), Sources(()), done(Outcome.NOT_FOUND, model=None)]
    found = await ask(stream(frames(*events)))
    assert found == events
    assert isinstance(found[-1], Done)
