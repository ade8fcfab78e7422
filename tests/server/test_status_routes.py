from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any
from unittest.mock import AsyncMock

import pytest

from ragpilot.errors import StoreUnavailableError
from ragpilot.events import corpus_from_wire, health_from_wire, source_text_from_wire, stats_from_wire
from ragpilot.types import Health
from server import status
from server.app import Server
from server.status import HealthBoard
from tests.corpus import two_corpora
from tests.fakes import MemoryStore
from tests.server.support import BOBS, BUDGET, TOKENS, Stand, bearer, with_actors

WELL = {"store": Health(ok=True, detail="well", latency_ms=1.5)}
ILL = {"store": Health(ok=False, detail="away")}


async def get(app: Server, path: str, **headers: str) -> tuple[int, Any]:
    response = await app.test_client().get(path, headers=headers)
    assert response.headers["Cache-Control"] == "no-store"
    return response.status_code, json.loads(await response.get_data(as_text=False))


@pytest.mark.asyncio
async def test_health_tells_each_part() -> None:
    found, told = await get(await Stand().app(), "/health")
    assert (found, told["status"]) == (200, "ok")
    assert told["store"] == {"ok": True, "detail": "memory", "latencyMs": 0.0}
    assert set(health_from_wire(told)) == {"store", "embedder", "model"}


@pytest.mark.asyncio
async def test_a_part_that_is_away_makes_the_server_unavailable() -> None:
    stand = Stand()
    app = await stand.app()
    stand.store.failure = StoreUnavailableError("The store is away.")
    found, told = await get(app, "/health")
    assert (found, told["status"], told["store"]["ok"], told["model"]["ok"]) == (503, "unavailable", False, True)


@pytest.mark.asyncio
async def test_why_the_store_is_ill_is_told_to_the_owner_and_logged_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(status, "FRESH_SECONDS", 0.0)
    monkeypatch.setattr(MemoryStore, "check", AsyncMock(return_value=Health(ok=False, detail="connection refused")))
    owner = await Stand().app()
    for _ in range(3):
        assert (await get(owner, "/health"))[1]["store"]["detail"] == "connection refused"
    assert [r.getMessage() for r in caplog.records if r.name == "server.status"] == [
        "store is not well: connection refused"
    ]
    guarded = await Stand(settings=with_actors()).app()
    _, told = await get(guarded, "/health", **bearer(TOKENS["ann"]))
    assert told["store"]["detail"] == status.STORE_ILL


@pytest.mark.asyncio
async def test_an_index_of_another_embedder_makes_the_server_unavailable() -> None:
    stand = Stand()
    app = await stand.app()
    held = stand.store.infos["default"]
    built = replace(held.identity, embedder=replace(held.identity.embedder, name="former"))
    stand.store.infos["default"] = replace(held, identity=built)
    found, told = await get(app, "/health")
    assert (found, told["status"], told["index"]["ok"]) == (503, "unavailable", False)
    assert "was built with former" in told["index"]["detail"]
    _, told = await get(app, "/index/stats")
    assert told["embedder"]["name"] == "former"
    assert told["misfit"].endswith(": `ragpilot index --rebuild`")


@pytest.mark.asyncio
async def test_statistics_are_those_of_the_actor() -> None:
    app = await Stand(settings=with_actors()).app()
    for name, documents in (("ann", {"core/prompting.py", "net/retry.py"}), ("bob", {"bob/diary.md"})):
        found, told = await get(app, "/index/stats", **bearer(TOKENS[name]))
        stats = stats_from_wire(told)
        assert (found, stats.point_count, stats.documents) == (200, len(documents), len(documents))
        assert told["lastIngestionTime"].endswith("Z")


@pytest.mark.asyncio
async def test_the_query_of_a_get_is_as_strict_as_a_body() -> None:
    app = await Stand().app()
    for path, field in [
        ("/index/stats?corpsu=default", "corpsu"),
        ("/index/stats?corpus=a&corpus=b", "corpus"),
        (f"/sources/{BUDGET.id}?context=-1", "context"),
        (f"/sources/{BUDGET.id}?context=201", "context"),
        (f"/sources/{BUDGET.id}?lines=3", "lines"),
    ]:
        found, problem = await get(app, path)
        assert (found, problem["field"]) == (422, field)
    assert (await get(app, "/index/stats?corpus=absent"))[0] == 404


@pytest.mark.asyncio
async def test_corpora_are_those_that_the_actor_may_know_of() -> None:
    found, told = await get(await Stand(settings=two_corpora()).app(), "/corpora")
    assert (found, [corpus_from_wire(item).name for item in told["corpora"]]) == (200, ["open"])


@pytest.mark.asyncio
async def test_a_source_is_found_by_its_id_by_those_who_may_read_it() -> None:
    app = await Stand(settings=with_actors()).app()
    found, told = await get(app, f"/sources/{BUDGET.id}", **bearer(TOKENS["ann"]))
    assert (found, source_text_from_wire(told).text) == (200, BUDGET.text)
    words = []
    for name in (BOBS.id, "00000000-0000-0000-0000-000000000000", "no-uuid"):
        found, problem = await get(app, f"/sources/{name}", **bearer(TOKENS["ann"]))
        assert found == 404
        words.append(problem["detail"].replace(name, "…"))
    assert len(set(words)) == 1


@pytest.mark.asyncio
async def test_a_check_is_good_for_everyone_who_asks_for_a_while() -> None:
    looks = 0

    async def look() -> dict[str, Health]:
        nonlocal looks
        looks += 1
        await asyncio.sleep(0)
        return WELL

    board = HealthBoard(look)
    assert await asyncio.gather(*(board.parts() for _ in range(20))) == [WELL] * 20
    assert await board.parts() == WELL
    assert looks == 1


@pytest.mark.asyncio
async def test_a_slow_check_does_not_keep_a_poller_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status, "FRESH_SECONDS", 0.0)
    monkeypatch.setattr(status, "PATIENCE_SECONDS", 0.01)
    busy, answers = asyncio.Event(), [WELL, ILL]

    async def look() -> dict[str, Health]:
        if len(answers) == 1:
            await busy.wait()
        return answers.pop(0)

    board = HealthBoard(look)
    assert await board.parts() == WELL
    assert await board.parts() == WELL
    busy.set()
    assert await board.parts() == ILL


@pytest.mark.asyncio
async def test_a_check_that_hangs_or_breaks_means_that_something_is_ill(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status, "CHECK_SECONDS", 0.01)

    async def hang() -> dict[str, Health]:
        await asyncio.Event().wait()
        return WELL

    async def fail() -> dict[str, Health]:
        raise ZeroDivisionError

    for look, words in ((hang, "no answer within"), (fail, "check failed")):
        parts = await HealthBoard(look).parts()
        assert set(parts) == {"store", "embedder", "model"}
        assert all(not part.ok and words in part.detail for part in parts.values())
