"""The grants of the configuration are in force before a server answers anything from its index."""

from __future__ import annotations

import asyncio
import json
import logging

import pytest

from ragpilot.config import CorpusSettings
from ragpilot.errors import IngestRunningError, StateError, StoreFullError, StoreUnavailableError
from ragpilot.types import Actor
from server import runs
from server.problems import ProblemError
from server.runs import SERVER, IngestRuns
from tests.server.support import LOCAL_TOKEN, ScriptedIngestion, Stand, bearer, running, until

CORPORA = [CorpusSettings(name="one"), CorpusSettings(name="two")]


class Granting(ScriptedIngestion):
    """Applies grants once ``open`` is set; fails for the corpora of ``failures``."""

    def __init__(self, failures: dict[str, Exception] | None = None) -> None:
        super().__init__()
        self.open = asyncio.Event()
        self.failures = failures or {}

    async def apply_grants(self, actor: Actor, corpus: CorpusSettings) -> int:
        await self.open.wait()
        if corpus.name in self.failures:
            raise self.failures[corpus.name]
        return await super().apply_grants(actor, corpus)


@pytest.mark.asyncio
async def test_grants_are_applied_before_the_first_answer() -> None:
    ingestion = ScriptedIngestion()
    async with running(await Stand(ingestion=ingestion).app()) as server:
        assert (await server.call("GET", "/corpora")).status == 200
        assert ingestion.granted == [(SERVER, "default")]
        assert SERVER.principals == frozenset()
        assert (await server.call("GET", "/corpora")).status == 200
        assert len(ingestion.granted) == 1


@pytest.mark.asyncio
async def test_one_corpus_that_fails_keeps_no_other_from_its_grants_and_is_tried_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    ingestion = Granting({"one": StoreUnavailableError("secret words")})
    ingestion.open.set()
    granting = IngestRuns(ingestion, CORPORA)
    with caplog.at_level(logging.INFO):
        # Its store answers for itself, and does not answer.
        await granting.granted()
    assert ingestion.granted == [(SERVER, "two")]
    assert "the grants of corpus one are not applied: store_unavailable" in caplog.text
    assert "1 documents of corpus two" in caplog.text
    assert "secret words" not in caplog.text
    ingestion.failures.clear()
    await granting.granted()
    assert ingestion.granted == [(SERVER, "two"), (SERVER, "one")]
    await granting.granted()
    assert len(ingestion.granted) == 2


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "failure",
    [ZeroDivisionError("secret words"), StateError("secret words"), StoreFullError("secret words")],
    ids=["defect", "state", "full disk"],
)
async def test_while_grants_cannot_be_applied_nothing_is_answered_by_older_ones(
    failure: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    ingestion = Granting({"one": failure})
    ingestion.open.set()
    granting = IngestRuns(ingestion, CORPORA)
    for _ in range(2):
        with pytest.raises(ProblemError, match="not in force yet"):
            await granting.granted()
    assert ingestion.granted == [(SERVER, "two")]
    assert "secret words" not in caplog.text
    ingestion.failures.clear()
    await granting.granted()
    assert ingestion.granted == [(SERVER, "two"), (SERVER, "one")]


@pytest.mark.asyncio
async def test_a_slow_store_answers_nothing_and_nothing_else_writes_until_its_grants_are_applied(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(runs, "GRANTS_SECONDS", 0.01)
    ingestion = Granting()
    app = await Stand(ingestion=ingestion).app()
    async with running(app) as server:
        for path in ("/corpora", "/index/stats", "/sources/x"):
            response = await server.call("GET", path)
            assert (response.status, json.loads(response.body)["code"]) == (503, "grants_pending")
            assert response.headers["retry-after"] == "2"
        assert (await server.call("GET", "/health")).status == 200
        assert "nothing is answered until they are" in caplog.text
        monkeypatch.setattr(runs, "GRANTS_SECONDS", 5.0)
        asked = asyncio.create_task(server.call("POST", "/index", b"{}", bearer(LOCAL_TOKEN)))
        await until(lambda: app.context.lifecycle.open_requests == 1)
        assert app.context.runs.busy
        assert (ingestion.runs, ingestion.fills) == ([], [])
        ingestion.open.set()
        async with asyncio.timeout(5):
            assert (await asked).status == 200
        assert len(ingestion.runs) == 1
        await until(lambda: not app.context.runs.busy)
        assert len(ingestion.fills) >= 1


@pytest.mark.asyncio
async def test_a_shutdown_does_not_wait_for_grants(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "GRANTS_SECONDS", 0.01)
    app = await Stand(ingestion=Granting()).app()
    async with running(app) as server:
        assert (await server.call("GET", "/corpora")).status == 503
        assert app.context.runs.busy
    assert not app.context.runs.busy


@pytest.mark.asyncio
async def test_beside_a_run_of_its_own_process_a_server_grants_and_writes_nothing_else() -> None:
    ingestion = Granting()
    ingestion.open.set()
    beside = IngestRuns(ingestion, CORPORA, writes=False)
    beside.fill()
    await beside.granted()
    with pytest.raises(IngestRunningError):
        beside.start(SERVER, CORPORA[0], None, rebuild=False)
    assert ingestion.granted == [(SERVER, "one"), (SERVER, "two")]
    assert not beside.busy
    assert beside.indexing("one")
