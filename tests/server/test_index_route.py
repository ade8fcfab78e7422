from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from werkzeug.datastructures import Headers

from ragpilot.config import CorpusSettings
from ragpilot.errors import InvalidRequestError, RootError
from ragpilot.events import ingest_event_from_wire
from ragpilot.types import Actor, IngestProgress
from server import ingest
from server.app import Server
from server.runs import SERVER
from tests.fakes import OPERATOR
from tests.server.support import (
    LOCAL_TOKEN,
    PROGRESS,
    REPORT,
    ScriptedIngestion,
    Stand,
    bearer,
    events_of,
    running,
    settings_of,
    until,
)


async def post(app: Server, body: dict[str, Any], **headers: str) -> tuple[int, Headers, bytes]:
    response = await app.test_client().post("/index", json=body, headers={**bearer(LOCAL_TOKEN), **headers})
    return response.status_code, response.headers, await response.get_data(as_text=False)


def corpora(tmp_path: Path) -> list[CorpusSettings]:
    for name in ("one/src", "two/docs", "outside"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "one/src/a.py").write_text("a")
    (tmp_path / "one/out").symlink_to(tmp_path / "outside")
    (tmp_path / "one/loop").symlink_to(tmp_path / "one/loop")
    (tmp_path / "link").symlink_to(tmp_path / "one")
    return [
        CorpusSettings(name="one", roots=[str(tmp_path / "link")]),
        CorpusSettings(name="two", roots=[str(tmp_path / "two")]),
    ]


@pytest.mark.asyncio
async def test_progress_then_the_report() -> None:
    ingestion = ScriptedIngestion(gate=asyncio.Semaphore(0))
    async with running(await Stand(ingestion=ingestion).app()) as server:
        connection = await server.connect()
        await connection.send("POST", "/index", b"{}", bearer(LOCAL_TOKEN))
        status, headers = await connection.read_head()
        assert (status, headers["content-type"]) == (200, "text/event-stream")
        first = await connection.read_chunk()
        assert ingest_event_from_wire("progress", first.decode().split("data: ")[1]) == PROGRESS
        ingestion.gate.release()  # type: ignore[union-attr]
        last = await connection.read_chunk()
        assert ingest_event_from_wire("report", last.decode().split("data: ")[1]) == REPORT
        assert await connection.read_chunk() == b""
        await connection.close()
    actor, corpus, path, rebuild, bodies = ingestion.runs[0]
    assert (actor.name, corpus, path, rebuild, bodies) == ("local", "default", None, False, False)


@pytest.mark.asyncio
async def test_the_report_alone_as_json() -> None:
    _, headers, body = await post(await Stand().app(), {"rebuild": True}, Accept="application/json")
    assert headers["Content-Type"] == "application/json"
    assert json.loads(body)["outcome"] == "complete"


@pytest.mark.asyncio
async def test_a_run_that_cannot_start_is_a_status() -> None:
    ingestion = ScriptedIngestion(failure=RootError("The root is a file.", hint="Name a folder."))
    status, _, body = await post(await Stand(ingestion=ingestion).app(), {})
    assert (status, json.loads(body)["code"]) == (422, "bad_root")


@pytest.mark.asyncio
async def test_a_run_that_breaks_ends_with_an_error_event() -> None:
    class Breaking(ScriptedIngestion):
        async def run(self, *args: Any, **kwargs: Any) -> Any:
            yield PROGRESS
            await self.gate.acquire()  # type: ignore[union-attr]
            raise ZeroDivisionError

    ingestion = Breaking(gate=asyncio.Semaphore(0))
    async with running(await Stand(ingestion=ingestion).app()) as server:
        connection = await server.connect()
        await connection.send("POST", "/index", b"{}", bearer(LOCAL_TOKEN))
        assert (await connection.read_head())[0] == 200
        await connection.read_chunk()
        ingestion.gate.release()  # type: ignore[union-attr]
        (name, failed) = events_of(await connection.read_chunk())[0]
        assert (name, failed["code"]) == ("error", "internal_error")
        await connection.close()


@pytest.mark.asyncio
async def test_a_second_run_at_once_is_a_conflict_and_the_first_outlives_its_client() -> None:
    ingestion = ScriptedIngestion(gate=asyncio.Semaphore(0))
    app = await Stand(ingestion=ingestion).app()
    async with running(app) as server:
        watcher = await server.connect()
        await watcher.send("POST", "/index", b"{}", bearer(LOCAL_TOKEN))
        await watcher.read_head()
        second = await server.call("POST", "/index", b"{}", bearer(LOCAL_TOKEN))
        assert (second.status, json.loads(second.body)["code"]) == (409, "ingest_running")
        await watcher.close()
        await until(lambda: app.context.lifecycle.open_requests == 0)
        assert (app.context.runs.busy, ingestion.ended) == (True, 0)
        ingestion.gate.release()  # type: ignore[union-attr]
        await until(lambda: not app.context.runs.busy)
        assert len(ingestion.runs) == ingestion.ended == 1
        ingestion.gate.release()  # type: ignore[union-attr]
        assert (await server.call("POST", "/index", b"{}", bearer(LOCAL_TOKEN))).status == 200


@pytest.mark.asyncio
async def test_a_run_that_only_fills_vectors_makes_room_for_the_next() -> None:
    headers = IngestProgress("headers", 0, 3, 1, 3, 0.0, None)
    ingestion = ScriptedIngestion(events=(PROGRESS, headers, REPORT), gate=asyncio.Semaphore(0))
    async with running(await Stand(ingestion=ingestion).app()) as server:
        watcher = await server.connect()
        await watcher.send("POST", "/index", b"{}", bearer(LOCAL_TOKEN))
        await watcher.read_head()
        assert (await server.call("POST", "/index", b"{}", bearer(LOCAL_TOKEN))).status == 409
        ingestion.gate.release()  # type: ignore[union-attr]
        told = b""
        while b"headers" not in told:
            told += await watcher.read_chunk()
        ingestion.events = (REPORT,)
        second = await server.call("POST", "/index", b'{"vectors": false}', bearer(LOCAL_TOKEN))
        assert events_of(second.body)[-1][1]["outcome"] == "complete"
        while b"outcome" not in told:
            told += await watcher.read_chunk()
        await watcher.close()
    assert ingestion.with_headers == [True, False]
    assert (len(ingestion.runs), ingestion.ended) == (2, 2)


@pytest.mark.asyncio
async def test_missing_vectors_are_filled_after_the_start_and_after_a_run() -> None:
    ingestion = ScriptedIngestion()
    settings = settings_of(corpora=[CorpusSettings(name="one"), CorpusSettings(name="two")])
    app = await Stand(ingestion=ingestion, settings=settings).app()
    async with running(app) as server:
        await until(lambda: len(ingestion.fills) == 2)
        assert [corpus for _, corpus in ingestion.fills] == ["one", "two"]
        assert ingestion.fills[0][0] == SERVER
        assert not SERVER.principals
        await server.call("POST", "/index", b"{}", bearer(LOCAL_TOKEN))
        await until(lambda: len(ingestion.fills) == 4)


@pytest.mark.asyncio
async def test_a_run_interrupts_the_filling_and_a_shutdown_ends_both() -> None:
    ingestion = ScriptedIngestion(gate=asyncio.Semaphore(0), fill_gate=asyncio.Event())
    app = await Stand(ingestion=ingestion).app()
    async with running(app) as server:
        await until(lambda: len(ingestion.fills) == 1)
        assert app.context.runs.busy
        watcher = await server.connect()
        await watcher.send("POST", "/index", b"{}", bearer(LOCAL_TOKEN))
        await watcher.read_head()
        assert (ingestion.fills_ended, len(ingestion.fills)) == (1, 1)
        await watcher.read_chunk()
        server.stop.set()
        assert events_of(await watcher.read_chunk())[0][1]["code"] == "shutting_down"
        await watcher.close()
    assert (ingestion.ended, app.context.runs.busy) == (1, False)
    assert len(ingestion.fills) == 1


@pytest.mark.asyncio
async def test_a_filling_that_fails_harms_nothing(caplog: pytest.LogCaptureFixture) -> None:
    class Failing(ScriptedIngestion):
        async def fill(self, actor: Any, corpus_name: str) -> Any:
            self.fills.append((actor, corpus_name))
            if corpus_name == "one":
                raise RootError("gone")
            raise ZeroDivisionError
            yield REPORT  # type: ignore[unreachable]  # what makes it a generator

    ingestion = Failing()
    settings = settings_of(corpora=[CorpusSettings(name="one"), CorpusSettings(name="two")])
    async with running(await Stand(ingestion=ingestion, settings=settings).app()) as server:
        await until(lambda: len(ingestion.fills) == 2)
        assert (await server.call("GET", "/health")).status == 200
    assert "corpus one ended: bad_root" in caplog.text


@pytest.mark.asyncio
async def test_a_path_narrows_the_run_and_finds_its_corpus(tmp_path: Path) -> None:
    ingestion = ScriptedIngestion()
    app = await Stand(ingestion=ingestion, settings=settings_of(corpora=corpora(tmp_path))).app()
    for body in ({"path": str(tmp_path / "two/docs")}, {"path": "docs"}, {"path": "docs", "corpus": "two"}):
        status, _, content = await post(app, body, Accept="application/json")
        assert (status, content[:1]) == (200, b"{")
        assert ingestion.runs[-1][1:3] == ("two", tmp_path / "two/docs")


@pytest.mark.asyncio
@pytest.mark.parametrize("path", ["../outside", "/etc", "out", "absent", "a\0b", "loop", "x" * 5000, "x" * 300])
async def test_a_path_that_leads_elsewhere_is_refused(tmp_path: Path, path: str) -> None:
    ingestion = ScriptedIngestion()
    app = await Stand(ingestion=ingestion, settings=settings_of(corpora=corpora(tmp_path))).app()
    status, _, content = await post(app, {"path": path})
    assert (status, json.loads(content)["field"]) == (422, "path")
    assert ingestion.runs == []


def holding(*places: Path) -> ingest.Holds:
    return lambda _, __, path: path in places


def locate(actor: Actor, among: list[CorpusSettings], path: str, *held: Path) -> tuple[CorpusSettings, Path]:
    return ingest.locate(actor, among, path, holding(*held))


def test_what_is_indexed_and_gone_is_found_where_it_was(tmp_path: Path) -> None:
    one, two = corpora(tmp_path)
    for actor in (OPERATOR, replace(OPERATOR, permissions=frozenset({"ingest"}))):
        assert locate(actor, [one, two], "gone", tmp_path / "two/gone") == (two, tmp_path / "two/gone")
        assert locate(actor, [one, two], "docs", tmp_path / "one/docs") == (two, tmp_path / "two/docs")
    with pytest.raises(InvalidRequestError, match="names nothing inside the roots"):
        locate(OPERATOR, [one, two], "gone", tmp_path / "two/other")


def test_what_counts_is_where_a_path_leads(tmp_path: Path) -> None:
    one, two = corpora(tmp_path)
    assert locate(OPERATOR, [one, two], str(tmp_path / "one/src/a.py")) == (one, tmp_path / "one/src/a.py")
    assert locate(OPERATOR, [one, two], str(tmp_path / "link/src")) == (one, tmp_path / "one/src")
    assert locate(OPERATOR, [one, two], ".") == (one, tmp_path / "one")
    assert locate(OPERATOR, [two], "docs/../docs") == (two, tmp_path / "two/docs")
    words = set()
    for outside in (str(tmp_path / "outside"), str(tmp_path / "nowhere"), "out/x", "../one"):
        with pytest.raises(InvalidRequestError) as caught:
            locate(OPERATOR, [one] if outside != "../one" else [two], outside)
        words.add(caught.value.message.replace("'two'", "'one'"))
    assert words == {"'path' must lie inside a root of 'one', links followed."}


def test_the_innermost_root_counts_and_so_does_what_exists(tmp_path: Path) -> None:
    one, two = corpora(tmp_path)
    inner = CorpusSettings(name="inner", roots=[str(tmp_path / "one/src")])
    assert locate(OPERATOR, [one, inner], str(tmp_path / "one/src/a.py")) == (inner, tmp_path / "one/src/a.py")
    assert locate(OPERATOR, [one, two, inner], "docs") == (two, tmp_path / "two/docs")


@pytest.mark.asyncio
async def test_a_run_over_what_is_indexed_and_gone(tmp_path: Path) -> None:
    ingestion = ScriptedIngestion(indexed=("gone.md",))
    app = await Stand(ingestion=ingestion, settings=settings_of(corpora=corpora(tmp_path))).app()
    for path, status in (("docs/gone.md", 200), ("docs/never.md", 422)):
        assert (await post(app, {"path": path, "corpus": "two"}, Accept="application/json"))[0] == status
    assert [run[2] for run in ingestion.runs] == [tmp_path / "two/docs/gone.md"]


@pytest.mark.asyncio
async def test_a_rebuild_is_for_a_whole_corpus(tmp_path: Path) -> None:
    ingestion = ScriptedIngestion()
    app = await Stand(ingestion=ingestion, settings=settings_of(corpora=corpora(tmp_path))).app()
    status, _, content = await post(app, {"path": "docs", "rebuild": True})
    assert (status, json.loads(content)["field"], ingestion.runs) == (422, "rebuild", [])
