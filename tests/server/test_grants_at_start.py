"""The grants of the configuration are in force before a server answers its first question."""

from __future__ import annotations

import asyncio
import logging

import pytest

from ragpilot.config import CorpusSettings
from ragpilot.errors import StoreUnavailableError
from ragpilot.types import Actor
from server import runs
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
async def test_grants_are_applied_before_the_first_request() -> None:
    ingestion = ScriptedIngestion()
    async with running(await Stand(ingestion=ingestion).app()) as server:
        assert (await server.call("GET", "/corpora")).status == 200
        assert ingestion.granted == [(SERVER, "default")]
        assert SERVER.principals == frozenset()


@pytest.mark.asyncio
async def test_one_corpus_that_fails_keeps_no_other_from_its_grants(caplog: pytest.LogCaptureFixture) -> None:
    ingestion = Granting({"one": StoreUnavailableError("secret words")})
    ingestion.open.set()
    with caplog.at_level(logging.INFO):
        await IngestRuns(ingestion, CORPORA).apply_grants()
    assert ingestion.granted == [(SERVER, "two")]
    assert "the grants of corpus one are not applied: store_unavailable" in caplog.text
    assert "1 documents of corpus two" in caplog.text
    assert "secret words" not in caplog.text


@pytest.mark.asyncio
async def test_a_defect_is_logged_and_does_not_end_the_server(caplog: pytest.LogCaptureFixture) -> None:
    ingestion = Granting({"one": ZeroDivisionError("secret words")})
    ingestion.open.set()
    await IngestRuns(ingestion, CORPORA).apply_grants()
    assert ingestion.granted == [(SERVER, "two")]
    assert "unexpected ZeroDivisionError" in caplog.text
    assert "secret words" not in caplog.text


@pytest.mark.asyncio
async def test_a_slow_store_delays_the_start_only_so_long_and_nothing_else_writes_meanwhile(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(runs, "GRANTS_SECONDS", 0.01)
    ingestion = Granting()
    app = await Stand(ingestion=ingestion).app()
    async with running(app) as server:
        assert (await server.call("GET", "/corpora")).status == 200
        assert "not applied yet" in caplog.text
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
        assert (await server.call("GET", "/corpora")).status == 200
        assert app.context.runs.busy
    assert not app.context.runs.busy
