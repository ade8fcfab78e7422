from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from server import patience
from server.app import Server
from tests.corpus import two_corpora
from tests.server.support import TOKENS, Stand, bearer, with_actors


async def search(app: Server, body: dict[str, Any], **headers: str) -> tuple[int, Any]:
    response = await app.test_client().post("/search", json=body, headers=headers)
    return response.status_code, json.loads(await response.get_data(as_text=False))


@pytest.mark.asyncio
async def test_hits_come_as_sources_beside_the_bounds_in_force() -> None:
    stand = Stand()
    status, found = await search(await stand.app(), {"question": "context budget", "k": 200})
    assert status == 200
    assert set(found) == {
        "hits", "floor", "floorOrigin", "evidence", "gate", "gateOrigin", "nearMisses", "plan", "timings", "warnings",
    }  # fmt: skip
    (hit,) = found["hits"]
    assert (hit["filePath"], hit["symbol"], hit["score"]) == ("core/prompting.py", "fill", 1.0)
    assert hit["citation"] == "core/prompting.py:1-2 (fill)"
    assert (found["floor"], found["gate"], found["plan"]["k"]) == (0.35, None, 200)
    assert stand.chat.opened == 0  # type: ignore[attr-defined]


@pytest.mark.asyncio
async def test_a_search_names_the_sources_of_the_answer_with_their_scores() -> None:
    app = await Stand().app()
    asked = await app.test_client().post(
        "/ask", json={"question": "context budget"}, headers={"Accept": "application/json"}
    )
    sources = json.loads(await asked.get_data(as_text=False))["sources"]
    _, found = await search(app, {"question": "context budget"})
    assert [(hit["id"], hit["score"]) for hit in found["hits"]] == [(one["id"], one["score"]) for one in sources]


@pytest.mark.asyncio
async def test_what_is_near_and_not_near_enough_is_a_near_miss() -> None:
    app = await Stand().app()
    status, found = await search(app, {"question": "context a b c d e f g"})
    assert (status, found["hits"]) == (200, [])
    assert {(miss["path"], miss["bound"]) for miss in found["nearMisses"]} == {("core/prompting.py", "floor")}
    status, found = await search(app, {"question": "quagga zebra okapi"})
    assert (status, found["hits"], found["nearMisses"]) == (200, [], [])


@pytest.mark.asyncio
async def test_an_actor_finds_what_he_may_read_and_nothing_else() -> None:
    app = await Stand(settings=with_actors()).app()
    _, anns = await search(app, {"question": "secret diary"}, **bearer(TOKENS["ann"]))
    _, bobs = await search(app, {"question": "secret diary"}, **bearer(TOKENS["bob"]))
    assert [hit["filePath"] for hit in anns["hits"]] == []
    assert [hit["filePath"] for hit in bobs["hits"]] == ["bob/diary.md"]


@pytest.mark.asyncio
async def test_limits_and_unknown_corpora() -> None:
    app = await Stand(settings=two_corpora()).app()
    cases: list[tuple[dict[str, Any], int]] = [
        ({"question": "x", "k": 201}, 422),
        ({"question": "x", "topK": 8}, 422),
        ({"question": "x", "corpus": "secret"}, 404),
        ({"question": "x", "corpus": "absent"}, 404),
    ]
    for body, status in cases:
        assert (await search(app, body))[0] == status


@pytest.mark.asyncio
@pytest.mark.parametrize("silent", [True, False])
async def test_what_hangs_meets_a_limit_on_every_route_that_reads(
    silent: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand = Stand()
    app = await stand.app()

    async def hang(*_: Any, **__: Any) -> Any:
        await asyncio.Event().wait()

    monkeypatch.setattr(patience, "READ_SECONDS", 0.2)
    for name in ("search", "count", "last_indexed", "get", *(["check"] if silent else [])):
        monkeypatch.setattr(stand.store, name, hang)
    client = app.test_client()
    async with asyncio.timeout(10):
        for response in (
            await client.post("/search", json={"question": "context budget"}),
            await client.get("/corpora"),
            await client.get("/index/stats"),
            await client.get("/sources/x"),
        ):
            found = json.loads(await response.get_data(as_text=False))
            assert response.headers["Content-Type"] == "application/problem+json"
            assert (response.status_code, found["code"], found["detail"]) == (
                (503, "store_unavailable", "The store of the index does not answer. Ask again in a moment.")
                if silent
                else (504, "timeout", "There was no result within 0.2 s.")
            )
