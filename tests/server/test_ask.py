from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from werkzeug.datastructures import Headers

from ragpilot.config import ServerSettings
from ragpilot.errors import (
    ChatModelTimeoutError,
    ChatModelUnavailableError,
    RagPilotError,
    StoreError,
    StoreUnavailableError,
)
from ragpilot.types import NOT_FOUND_ANSWER, EmbedderIdentity, IndexIdentity, Outcome
from server.app import Server
from tests.corpus import two_corpora
from tests.fakes import ScriptedChatModel
from tests.server.support import Stand, answer_of, events_of, server_settings, settings_of

HARD = ["\n", "\n\n", "\r\n", "data: x", "event: y\n", "\u2028", "\x85", "  indented", " the", " ", "\0", "é🤖", " [1]"]


async def post(app: Server, body: Any, **headers: str) -> tuple[int, Headers, bytes]:
    given = {"data": body} if isinstance(body, bytes) else {"json": body}
    sent = {"Content-Type": "application/json", **{name.replace("_", "-"): value for name, value in headers.items()}}
    response = await app.test_client().post("/ask", headers=sent, **given)
    return response.status_code, response.headers, await response.get_data(as_text=False)


@pytest.mark.asyncio
async def test_tokens_then_one_sources_then_done() -> None:
    stand = Stand()
    status, headers, body = await post(await stand.app(), {"question": "context budget"})
    events = events_of(body)
    assert status == 200
    assert headers["Content-Type"] == "text/event-stream"
    assert headers["Cache-Control"] == "no-cache, no-transform"
    assert headers["X-Accel-Buffering"] == "no"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert [name for name, _ in events] == ["token", "token", "sources", "done"]
    assert answer_of(events) == "The answer is [1]."
    in_prompt = [block.hit.chunk.id for block in stand.chat.prompts[0].blocks]  # type: ignore[attr-defined]
    assert [source["id"] for source in events[2][1]] == in_prompt
    assert set(events[2][1][0]) == {
        "filePath", "symbol", "score", "id", "title", "startLine", "endLine", "citation", "sourceType", "stale",
        "cited",
    }  # fmt: skip
    assert set(events[3][1]) == {
        "outcome", "requestId", "model", "extract", "plan", "receipt", "nearMisses", "unsupported", "warnings",
        "promptTokens", "answerTokens", "timings",
    }  # fmt: skip
    assert events[3][1]["requestId"] == headers["X-Request-Id"]
    assert len(headers["X-Request-Id"]) == 32


@pytest.mark.asyncio
async def test_an_answer_survives_byte_for_byte_in_both_forms() -> None:
    app = await Stand(chat=ScriptedChatModel(HARD)).app()
    _, _, stream = await post(app, {"question": "context budget"})
    assert answer_of(events_of(stream)) == "".join(HARD)
    _, headers, body = await post(app, {"question": "context budget"}, Accept="application/json")
    assert (headers["Content-Type"], headers["Cache-Control"]) == ("application/json", "no-store")
    answer = json.loads(body)
    assert answer["answer"] == "".join(HARD)
    assert [source["filePath"] for source in answer["sources"]] == ["core/prompting.py"]
    assert answer["done"]["requestId"] == headers["X-Request-Id"]


@pytest.mark.asyncio
async def test_the_not_found_answer_calls_no_model() -> None:
    stand = Stand()
    app = await stand.app()
    events = events_of((await post(app, {"question": "quagga zebra okapi"}))[2])
    assert events[:2] == [("token", {"text": NOT_FOUND_ANSWER}), ("sources", [])]
    assert events[2][1]["outcome"] == Outcome.NOT_FOUND
    assert stand.chat.opened == 0  # type: ignore[attr-defined]


@pytest.mark.asyncio
async def test_the_fields_of_the_request_reach_the_core() -> None:
    stand = Stand()
    body = {"question": "context budget", "topK": 3, "conversation": [{"role": "user", "content": "before"}]}
    events = events_of((await post(await stand.app(), body))[2])
    assert events[-1][1]["plan"]["topK"] == 3
    assert [turn.content for turn in stand.chat.prompts[0].turns] == ["before"]  # type: ignore[attr-defined]


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        (b"", 400, None),
        (b"{bad", 400, None),
        (b"\xff", 400, None),
        (b'{"question": NaN}', 400, None),
        (b"[]", 400, None),
        ({"question": ""}, 422, "question"),
        ({"question": " \n "}, 422, "question"),
        ({"question": 3}, 422, "question"),
        ({"question": None}, 422, "question"),
        ({"question": "x" * 16_001}, 422, "question"),
        ({"question": "x" * 1_000_000}, 413, None),
        ({"question": "x", "topK": 0}, 422, "topK"),
        ({"question": "x", "topK": -1}, 422, "topK"),
        ({"question": "x", "topK": 51}, 422, "topK"),
        ({"question": "x", "topK": "8"}, 422, "topK"),
        ({"question": "x", "topK": True}, 422, "topK"),
        ({"question": "x", "topk": 8}, 422, "topk"),
        ({"question": "x", "corpus": "nobody's"}, 404, None),
    ],
)
async def test_bad_input_gets_its_problem_and_changes_nothing(body: Any, status: int, field: str | None) -> None:
    stand = Stand()
    app = await stand.app()
    found, headers, content = await post(app, body)
    problem = json.loads(content)
    assert (found, headers["Content-Type"]) == (status, "application/problem+json")
    assert (problem["status"], problem.get("field")) == (status, field)
    assert problem["requestId"] == headers["X-Request-Id"]
    assert stand.chat.opened == 0  # type: ignore[attr-defined]
    assert (await post(app, {"question": "context budget"}))[0] == 200


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "kind",
    ["", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/jsonp",
     "application/json; charset=utf-16", "application/json, text/plain", "application/xml"],
)  # fmt: skip
async def test_a_body_of_another_type_is_refused(kind: str) -> None:
    app = await Stand().app()
    status, _, content = await post(app, b'{"question": "x"}', Content_Type=kind)
    assert (status, json.loads(content)["code"]) == (415, "unsupported_media_type")


@pytest.mark.asyncio
@pytest.mark.parametrize("path", ["/ask", "/ask/", "//ask", "/search", "/index"])
async def test_no_post_takes_what_a_page_can_send_without_asking(path: str) -> None:
    app = await Stand().app()
    response = await app.test_client().post(path, data=b"{}", headers={"Content-Type": "text/plain"})
    assert response.status_code == 415


@pytest.mark.asyncio
async def test_compressed_bodies_are_refused() -> None:
    status, _, _ = await post(await Stand().app(), b"\x1f\x8b", Content_Encoding="gzip")
    assert status == 415


@pytest.mark.asyncio
async def test_json_in_other_spellings_is_taken() -> None:
    app = await Stand().app()
    for kind in ("application/json;charset=UTF-8", "APPLICATION/JSON"):
        assert (await post(app, b'{"question": "x"}', Content_Type=kind))[0] == 200


@pytest.mark.asyncio
async def test_a_form_that_nobody_offers_is_not_acceptable() -> None:
    status, _, content = await post(await Stand().app(), {"question": "x"}, Accept="text/html")
    assert (status, json.loads(content)["code"]) == (406, "not_acceptable")


@pytest.mark.asyncio
@pytest.mark.parametrize("accept", ["text/event-stream", "application/json"])
@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ChatModelUnavailableError("The model is away.", hint="Start it."), 503),
        (ChatModelTimeoutError("It was silent."), 503),
        (StoreError("The store failed."), 503),
        (RagPilotError("secret detail"), 500),
    ],
)
async def test_what_fails_before_the_first_event_is_a_status(accept: str, error: RagPilotError, status: int) -> None:
    stand = Stand(chat=ScriptedChatModel(failure=error))
    found, headers, content = await post(await stand.app(), {"question": "context budget"}, Accept=accept)
    problem = json.loads(content)
    assert (found, headers["Content-Type"], problem["code"]) == (status, "application/problem+json", error.code)
    assert ("secret detail" in problem["detail"]) is False
    assert (str(error) == problem["detail"]) is (status == 503)


@pytest.mark.asyncio
async def test_what_fails_later_ends_the_stream_with_an_error_event() -> None:
    model = ScriptedChatModel(["a", "b"], failure=ChatModelUnavailableError("It went away."), fail_after=1)
    app = await Stand(chat=model).app()
    status, headers, content = await post(app, {"question": "context budget"})
    events = events_of(content)
    assert status == 200
    assert events == [
        ("token", {"text": "a"}),
        (
            "error",
            {"code": "model_unavailable", "message": "It went away.", "requestId": headers["X-Request-Id"]},
        ),
    ]
    status, _, content = await post(app, {"question": "context budget"}, Accept="application/json")
    assert (status, json.loads(content)["code"]) == (503, "model_unavailable")


SECRET = "what the question said"


class Unforeseen(ScriptedChatModel):
    """Fails in a way that no error of RagPilot's speaks of."""

    async def stream(self, prompt: Any, *, temperature: float, max_tokens: int, report: Any = None) -> Any:
        if self.fail_after:
            yield "a"
        raise ZeroDivisionError(SECRET)


@pytest.mark.asyncio
@pytest.mark.parametrize("late", [0, 1])
async def test_what_nobody_foresaw_is_told_without_detail(late: int, caplog: pytest.LogCaptureFixture) -> None:
    app = await Stand(chat=Unforeseen(fail_after=late)).app()
    status, headers, content = await post(app, {"question": "context budget"})
    assert SECRET.encode() not in content
    assert b"ZeroDivisionError" not in content
    if late:
        assert events_of(content)[-1][1]["code"] == "internal_error"
    else:
        assert (status, json.loads(content)["code"]) == (500, "internal_error")
        ours = [record for record in caplog.records if record.name.startswith("server.")]
        text = "\n".join(record.getMessage() for record in ours)
        assert "ZeroDivisionError" in text
        assert headers["X-Request-Id"] in text
        assert SECRET not in text


@pytest.mark.asyncio
async def test_a_store_that_is_away_is_a_status() -> None:
    stand = Stand()
    app = await stand.app()
    stand.store.failure = StoreUnavailableError("The store is away.")
    status, _, content = await post(app, {"question": "context budget"})
    assert (status, json.loads(content)["code"]) == (503, "store_unavailable")


@pytest.mark.asyncio
async def test_an_index_of_another_embedder_is_a_conflict() -> None:
    stand = Stand()
    stand.identity = IndexIdentity(EmbedderIdentity("other", 64), "test")
    status, _, content = await post(await stand.app(), {"question": "context budget"})
    assert (status, json.loads(content)["code"]) == (409, "index_mismatch")
    assert "--rebuild" in json.loads(content)["detail"]


@pytest.mark.asyncio
async def test_a_corpus_that_one_may_not_know_is_told_like_one_that_is_not() -> None:
    app = await Stand(settings=two_corpora()).app()
    words = [json.loads((await post(app, {"question": "x", "corpus": name}))[2]) for name in ("secret", "absent")]
    assert [problem["status"] for problem in words] == [404, 404]
    assert words[0]["detail"].replace("secret", "absent") == words[1]["detail"]


@pytest.mark.asyncio
async def test_nothing_indexed_is_said_in_the_answer() -> None:
    stand = Stand(settings=settings_of(server=ServerSettings()))
    stand.index = _nothing  # type: ignore[method-assign]
    events = events_of((await post(await stand.app(), {"question": "context budget"}))[2])
    assert events[0][1]["text"] == NOT_FOUND_ANSWER
    assert "ragpilot index" in events[-1][1]["warnings"][0]


async def _nothing(*_: object, **__: object) -> None:
    return None


@pytest.mark.asyncio
async def test_the_log_has_a_line_a_request_and_nothing_of_its_text(caplog: pytest.LogCaptureFixture) -> None:
    app = await Stand(settings=server_settings()).app()
    with caplog.at_level(logging.INFO):
        _, headers, _ = await post(app, {"question": "context budget zyzzyva"}, Authorization="Bearer sesame")
        await post(app, {"question": "context budget zyzzyva"})
    lines = [record.getMessage() for record in caplog.records if record.name == "server.guard"]
    assert len(lines) == 2
    assert lines[0].startswith("POST /ask 401 ")
    assert lines[0].endswith(headers["X-Request-Id"])
    for told in ("zyzzyva", "sesame", "enforced here", "The answer"):
        assert told not in caplog.text
