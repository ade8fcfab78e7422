"""Who may have the index written learns nothing from it of files that he may not read.

Two folders that differ only in such files give the same progress and reports, the same figures of what was left out,
and the same refusals of a path; an administrator is told of everything.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ragpilot.actors import token_hash
from ragpilot.config import ActorSettings, CorpusSettings, GrantSettings, Settings
from ragpilot.errors import InvalidRequestError
from ragpilot.events import to_wire
from ragpilot.types import Actor, IngestProgress, IngestReport
from server.app import create_app
from tests.fakes import MemoryStore
from tests.ingestion import Project
from tests.security.doors import Door, get, post, tool
from tests.server.agents import answer
from tests.server.support import Running, Stand, bearer, events_of, running, until

INA = Actor("ina", frozenset({"team:core"}), frozenset({"ask", "ingest"}))
ROBOT = Actor("robot", frozenset(), frozenset({"ingest"}))
ADMIN = Actor("ada", frozenset(), frozenset({"ask", "ingest", "admin"}))

OPEN = {
    "src/orders.py": "def total(order):\n    return sum(order)\n",
    "src/retry.py": "def retry_calls(attempts):\n    return attempts\n",
    "docs/guide.md": "# Guide\n\nHow to order.\n\n## Returns\n\nSend it back.\n",
    "docs/logo.svg": "<svg></svg>",
    "src/empty.py": "",
    "config.ini": "[db]\npassword = kD83jf0sLq2vXz91\n",
    ".gitignore": "build/\nhr/drafts/\n",
    "build/out.js": "var a = 1\n",
}
HIDDEN = {
    **{f"hr/file{n}.md": f"# Pay {n}\n\nSalary {n}\n\n## Bonus\n\nNone\n" for n in range(30)},
    "hr/orders.py": OPEN["src/orders.py"],
    "hr/broken.ipynb": "{",
    "hr/empty.md": "",
    "hr/tokens.ini": "[db]\npassword = Zp81nWq0Rt5yLm3b\n",
    "hr/photo.png": "\x00\x01" * 99,
    "hr/drafts/next.md": "# Next year\n",
    "src/deep/plan.key.md": "# A plan\n",
    "keys/plan.key.md": "# Another plan\n",
}
GRANTS = [GrantSettings(paths=["hr/**", "*.key.md"], readers=["team:hr"])]


class Place(Project):
    """The files of everybody, and those of the ones who may read more."""

    def __init__(self, folder: Path, *, hidden: bool) -> None:
        root = folder / "project"
        corpus = CorpusSettings(name="shop", roots=[str(root)], readers=["team:core"], grants=GRANTS)
        super().__init__(folder, files=OPEN | HIDDEN if hidden else OPEN, corpus=corpus)
        (root / ".git").mkdir()
        if hidden:
            (root / "hr/refused.md").write_text("# No\n")
            (root / "hr/refused.md").chmod(0)
            (root / "hr/out").symlink_to("/etc")
            (root / "hr/loop").symlink_to(root / "hr/loop")


def comparable(report: IngestReport) -> IngestReport:
    return replace(report, seconds=0.0, seconds_to_searchable=0.0)


@pytest.fixture
def places(tmp_path: Path) -> tuple[Place, Place]:
    """The same project with files that not everybody may read, and without."""
    return Place(tmp_path / "full", hidden=True), Place(tmp_path / "own", hidden=False)


@pytest.mark.asyncio
@pytest.mark.parametrize("actor", [INA, ROBOT], ids=lambda actor: actor.name)
async def test_reports_are_those_of_an_index_without_what_cannot_be_read(
    places: tuple[Place, Place], actor: Actor
) -> None:
    told: list[list[IngestReport]] = []
    for place in places:
        reports = [await place.run(actor=actor), await place.run(actor=actor)]
        place.write(
            {"src/orders.py": "def total(order):\n    return 0\n", "src/new.py": "def fresh():\n    return 1\n"}
        )
        (place.root / "docs/guide.md").unlink()
        if place is places[0]:
            place.write({"hr/file1.md": "# Other\n", "hr/new.md": "# New\n"})
            (place.root / "hr/file2.md").unlink()
        reports += [await place.run(actor=actor), await place.run(actor=actor, path=place.root)]
        reports += [await place.run(actor=actor, rebuild=True)]
        told.append([comparable(report) for report in reports])
    assert told[0] == told[1]
    first, again, third, narrow, rebuilt = told[0]
    if actor is ROBOT:
        assert [report.outcome for report in told[0]] == ["nothing"] * 5
        assert (first.added, first.chunks, first.embedded, first.left_out, first.redacted) == (0, 0, 0, (), ())
        assert first.warnings == ("Nothing is indexed here that you may read.",)
        return
    assert (first.outcome, first.added, again.unchanged) == ("complete", 4, 4)
    assert (third.added, third.changed, third.removed, narrow.unchanged, rebuilt.added) == (1, 1, 1, 4, 4)
    assert [item.path for item in first.redacted] == ["config.ini"]
    assert {item.path for item in first.left_out} == {".gitignore", "build/", "docs/logo.svg", "src/empty.py"}
    assert first.embedded == 2 * first.chunks > 0


@pytest.mark.asyncio
async def test_an_administrator_is_told_everything(places: tuple[Place, Place]) -> None:
    full, own = [await place.run(actor=ADMIN) for place in places]
    assert full.added - own.added >= 30 + 1 + 1 + 2
    assert full.chunks > own.chunks
    assert {item.path for item in full.redacted} == {"config.ini", "hr/tokens.ini"}
    assert {"hr/drafts/", "hr/empty.md", "hr/photo.png"} <= {item.path for item in full.left_out}


@pytest.mark.asyncio
async def test_progress_counts_nothing_else(places: tuple[Place, Place]) -> None:
    full, _ = places
    for bodies in (True, False):
        full.restart()
        events = await full.events(actor=INA, bodies=bodies, rebuild=not bodies)
        progress = [event for event in events if isinstance(event, IngestProgress)]
        report = events[-1]
        assert isinstance(report, IngestReport)
        assert {event.stage for event in progress} >= {"scan", "chunks", "headers"}
        for event in progress:
            limit = {"scan": 0, "chunks": len(OPEN)}.get(event.stage, report.chunks)
            assert max(event.done, event.total) <= limit
            assert event.files <= report.added
            assert event.chunks <= report.chunks


@pytest.mark.asyncio
async def test_a_plan_counts_nothing_else(places: tuple[Place, Place]) -> None:
    full, own = [await place.service.plan(INA, place.corpus) for place in places]
    assert replace(full, seconds=0.0, seconds_to_searchable=0.0) == replace(own, seconds=0.0, seconds_to_searchable=0.0)
    assert (await places[0].service.plan(ADMIN, places[0].corpus)).documents > own.documents


@pytest.mark.asyncio
async def test_what_is_left_out_is_counted_of_what_may_be_heard_of(places: tuple[Place, Place]) -> None:
    for place in places:
        await place.run()
    full, own = [await place.service.left_out(INA, place.corpus) for place in places]
    assert full == own == {"data": 1, "empty": 1, "ignore file": 1, "ignored": 1}
    assert await places[0].service.left_out(ROBOT, places[0].corpus) == {}
    everything = await places[0].service.left_out(ADMIN, places[0].corpus)
    assert sum(everything.values()) > sum(own.values())
    changed = places[0].corpus.model_copy(update={"grants": []})
    assert await places[0].service.left_out(INA, changed) == everything


PATHS = (
    *("hr", "hr/", "hr/file1.md", "hr/absent.md", "hr/out", "hr/out/passwd", "hr/loop", "hr/drafts", "keys"),
    *("keys/plan.key.md", "src/deep", "src/deep/plan.key.md", "absent", "absent/deep", "src/orders.py/x", "x" * 300),
)


@pytest.mark.asyncio
async def test_a_path_that_may_not_be_heard_of_is_one_that_is_not_there(places: tuple[Place, Place]) -> None:
    for place in places:
        for path in PATHS:
            with pytest.raises(InvalidRequestError) as caught:
                await place.run(actor=INA, path=place.root / path)
            assert (caught.value.field, caught.value.message) == (
                "path",
                "'path' names nothing inside the roots that you may read.",
            )
        assert place.paths == []
        assert (await place.run(actor=INA, path=place.root / "src")).added == 2


# --- through a server


class Served(Stand):
    """A server whose runs are real ones over a place, and a corpus of others beside it."""

    def __init__(self, place: Place) -> None:
        actors = [
            ActorSettings(
                name=actor.name,
                principals=sorted(actor.principals),
                permissions=sorted(actor.permissions),
                tokens=[token_hash(f"token-of-{actor.name}")],
            )
            for actor in (INA, ADMIN)
        ]
        vault = CorpusSettings(name="vault", roots=[str(place.root)], readers=["team:board"])
        settings = Settings(corpora=[place.corpus, vault], actors=actors)
        super().__init__(settings=settings, store=MemoryStore())
        place.store = self.store
        self.ingestion = place.restart()  # type: ignore[assignment]
        self.status._left_out = self.ingestion.left_out  # type: ignore[attr-defined]


@asynccontextmanager
async def served(place: Place) -> AsyncIterator[Running]:
    async with running(create_app(Served(place))) as server:
        yield server


async def knock(server: Running, door: Door, who: str) -> tuple[int, Any]:
    if door.method == "GET":
        # How far the filling behind a run has come is a matter of time.
        await until(lambda: not server.app.context.runs.busy, seconds=20)
    response = await server.call(door.method, door.path, door.body, {**door.headers, **bearer(f"token-of-{who}")})
    if door.path == "/mcp":
        return response.status, answer(response)
    if response.headers["content-type"] == "text/event-stream":
        return response.status, [item for item in events_of(response.body) if item[0] != "progress"]
    return response.status, json.loads(response.body)


def stripped(found: Any) -> Any:
    """Without times and ids."""
    if isinstance(found, dict):
        unlike = ("seconds", "secondsToSearchable", "requestId", "lastIngestionTime")
        return {name: stripped(value) for name, value in found.items() if name not in unlike}
    if isinstance(found, list | tuple):
        return [stripped(item) for item in found]
    return found


DOORS = [
    post("/index", {}, Accept="application/json"),
    post("/index", {}),
    get("/index/stats"),
    get("/corpora"),
    *(post("/index", {"path": path}, Accept="application/json") for path in PATHS),
    *(post("/index", {"path": path}) for path in ("hr", "absent", "hr/loop")),
    post("/index", {"path": "src"}, Accept="application/json"),
    post("/index", {"path": "../elsewhere"}, Accept="application/json"),
    post("/index", {"corpus": "vault"}, Accept="application/json"),
    post("/index", {"corpus": "vault", "path": "hr"}, Accept="application/json"),
    get("/index/stats?corpus=vault"),
]


@pytest.mark.asyncio
async def test_every_door_that_writes_tells_of_what_may_be_read_alone(places: tuple[Place, Place]) -> None:
    told = []
    for place in places:
        async with served(place) as server:
            answers = [await knock(server, door, "ina") for door in DOORS]
            tools = [await knock(server, tool("rag_ingest", path=path), "ina") for path in (".", "hr", "absent")]
            results = [(status, found["result"]["structuredContent"] if at == 0 else found["result"]["content"])
                       for at, (status, found) in enumerate(tools)]  # fmt: skip
            told.append(stripped([*answers, *results]))
    assert told[0] == told[1]
    words = json.dumps(told[0])
    assert not [word for word in ("vault\\", "'vault', ", "team:hr", "keys/plan", "tokens.ini") if word in words]
    report, stats = told[0][0][1], told[0][2][1]
    counts = (report["added"], report["outcome"], stats["documents"], sum(stats["leftOut"].values()))
    assert counts == (4, "complete", 4, 4)
    assert [item["name"] for item in told[0][3][1]["corpora"]] == ["shop"]
    refused = [answer for answer, door in zip(told[0], DOORS, strict=False) if b'"path"' in (door.body or b"")]
    by_path = {json.dumps(answer[1]) for answer in refused[: len(PATHS)]}
    assert len(by_path) == 1
    assert "'path' names nothing inside the roots that you may read." in by_path.pop()


@pytest.mark.asyncio
async def test_an_administrator_sees_files_and_corpora_of_others(places: tuple[Place, Place]) -> None:
    async with served(places[0]) as server:
        status, report = await knock(server, post("/index", {}, Accept="application/json"), "ada")
        assert (status, report["added"] > 30) == (200, True)
        assert [item["name"] for item in (await knock(server, get("/corpora"), "ada"))[1]["corpora"]] == [
            "shop",
            "vault",
        ]
        narrow = await knock(server, post("/index", {"path": "hr", "corpus": "shop"}, Accept="application/json"), "ada")
        assert (narrow[0], narrow[1]["unchanged"] > 30) == (200, True)
        absent = await knock(server, post("/index", {"path": "hr/no"}, Accept="application/json"), "ada")
        assert (absent[0], absent[1]["detail"]) == (422, "'path' names nothing inside the roots.")


def test_the_comparison_is_of_the_whole_wire() -> None:
    assert set(to_wire(IngestReport("a", "complete", 0, 0, 0, 0, 0, 0, (), (), 0.0, 0.0))) >= {
        *("added", "changed", "unchanged", "removed", "chunks", "embedded", "leftOut", "failed", "warnings", "redacted")
    }
