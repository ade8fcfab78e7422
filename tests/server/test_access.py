"""Every route of the running application, by every kind of actor: a route without a row here fails the suite."""

from __future__ import annotations

import json
from typing import Any

import pytest
from werkzeug.datastructures import Headers

from ragpilot.config import Settings
from server.app import Server
from server.problems import UNAUTHENTICATED
from tests.server.support import BUDGET, LOCAL_TOKEN, TOKENS, Stand, bearer, settings_of, with_actors

ACCESS = {
    ("POST", "/ask"): "ask",
    ("POST", "/search"): "ask",
    ("GET", "/index/stats"): "ask",
    ("GET", "/corpora"): "ask",
    ("GET", "/sources/<chunk_id>"): "ask",
    ("POST", "/index"): "ingest",
    ("GET", "/health"): None,
}
BODIES: dict[str, Any] = {
    "/ask": {"question": "context budget"},
    "/search": {"question": "context budget"},
    "/index": {},
}

REFUSED = [
    {"Authorization": ""},
    {"Authorization": "Bearer"},
    {"Authorization": "Bearer "},
    {"Authorization": "Bearer two words"},
    {"Authorization": f"Basic {TOKENS['ann']}"},
    {"Authorization": TOKENS["ann"]},
    {"Authorization": f"Bearer {TOKENS['ann']},Bearer {TOKENS['ann']}"},
    bearer("unknown"),
    bearer("unknown" * 1000),
]


def routes(app: Server) -> set[tuple[str, str]]:
    return {(m, rule.rule) for rule in app.url_map.iter_rules() for m in (rule.methods or set()) - {"HEAD", "OPTIONS"}}


async def call(app: Server, method: str, rule: str, headers: Any = ()) -> tuple[int, Headers, bytes]:
    path = rule.replace("<chunk_id>", BUDGET.id)
    body = {"json": BODIES[rule]} if method == "POST" else {}
    response = await app.test_client().open(path, method=method, headers=headers, **body)
    return response.status_code, response.headers, await response.get_data(as_text=False)


@pytest.mark.asyncio
async def test_the_table_holds_every_route() -> None:
    assert routes(await Stand().app()) == set(ACCESS)


@pytest.mark.asyncio
@pytest.mark.parametrize(("method", "rule"), ACCESS)
@pytest.mark.parametrize("who", ["nobody", "unknown", "ann", "bob", "olga"])
async def test_configured_actors_do_what_they_may(method: str, rule: str, who: str) -> None:
    app = await Stand(settings=with_actors()).app()
    headers = {} if who == "nobody" else bearer(TOKENS.get(who, "unknown"))
    status, _, body = await call(app, method, rule, headers)
    needed = ACCESS[method, rule]
    holds = {"ann": {"ask"}, "bob": {"ask"}, "olga": {"ask", "ingest"}}.get(who)
    if needed is None:
        assert status == 200
        assert set(json.loads(body)) == ({"status"} if holds is None else {"status", "store", "embedder", "model"})
    elif holds is None:
        assert status == 401
    elif needed not in holds:
        assert (status, json.loads(body)["code"]) == (403, "forbidden")
    elif rule == "/sources/<chunk_id>" and who == "bob":
        assert (status, json.loads(body)["code"]) == (404, "unknown_source")
    else:
        assert status == 200


@pytest.mark.asyncio
@pytest.mark.parametrize(("method", "rule"), ACCESS)
async def test_without_actors_anyone_on_this_machine_asks_and_the_local_token_writes(method: str, rule: str) -> None:
    app = await Stand().app()
    status, _, _ = await call(app, method, rule)
    assert status == (403 if ACCESS[method, rule] == "ingest" else 200)
    status, _, _ = await call(app, method, rule, bearer(LOCAL_TOKEN))
    assert status == 200


@pytest.mark.asyncio
@pytest.mark.parametrize("settings", [settings_of(), with_actors()], ids=["local", "actors"])
@pytest.mark.parametrize("header", REFUSED, ids=lambda header: header["Authorization"][:30] or "empty")
async def test_a_header_that_is_no_known_token_is_refused_in_the_same_words(
    settings: Settings, header: dict[str, str]
) -> None:
    app = await Stand(settings=settings).app()
    for (method, rule), needed in ACCESS.items():
        status, headers, body = await call(app, method, rule, header)
        if needed is None:
            assert (status, json.loads(body)) == (200, {"status": "ok"})
        else:
            assert (status, headers["WWW-Authenticate"]) == (401, "Bearer")
            assert json.loads(body)["detail"] == UNAUTHENTICATED


@pytest.mark.asyncio
async def test_two_headers_are_refused_even_where_both_are_right() -> None:
    app = await Stand(settings=with_actors()).app()
    twice = [("Authorization", f"Bearer {TOKENS['ann']}")] * 2
    assert (await call(app, "GET", "/corpora", twice))[0] == 401


@pytest.mark.asyncio
async def test_the_scheme_is_read_in_any_case() -> None:
    app = await Stand(settings=with_actors()).app()
    status, _, _ = await call(app, "GET", "/corpora", {"Authorization": f"bearer  {TOKENS['ann']}"})
    assert status == 200


@pytest.mark.asyncio
async def test_the_local_token_means_nothing_where_actors_are_configured() -> None:
    app = await Stand(settings=with_actors()).app()
    assert (await call(app, "POST", "/index", bearer(LOCAL_TOKEN)))[0] == 401


@pytest.mark.asyncio
async def test_a_refusal_comes_before_the_body_is_judged() -> None:
    app = await Stand(settings=with_actors()).app()
    response = await app.test_client().post("/ask", json={"nonsense": 1})
    assert response.status_code == 401
