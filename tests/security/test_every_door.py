"""Every route and every tool of the running application, by six kinds of actor.

One that is not in the table fails the suite, and so does any answer that holds a word of what its actor may not read.
The chat model repeats everything that it is told, so a word in a prompt is a word in the answer.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from server.app import create_app
from server.mcp_toolbox import Toolbox
from server.problems import UNAUTHENTICATED
from tests.contract.folders import quick_folder
from tests.fakes import MemoryStore
from tests.security.doors import ACCESS, DOCUMENTS, DOORS, HOLDS, KINDS, MAY, Door, World, canaries, readable
from tests.security.worlds import inline_edge
from tests.server.agents import answer
from tests.server.support import Response


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, int], Response]:
    """Every door, knocked at by every kind: kind and place of the door -> response."""

    async def knock() -> dict[tuple[str, int], Response]:
        with quick_folder(tmp_path_factory) as folder:
            world = World(inline_edge(folder))
            await world.fill(DOCUMENTS)
            async with asyncio.timeout(60), world.serving() as server:
                found = {(kind, at): await door.knock(server, kind) for kind in KINDS for at, door in enumerate(DOORS)}
            await world.store.aclose()
            return found

    return asyncio.run(knock())


def of_entry(entry: str) -> list[int]:
    return [at for at, door in enumerate(DOORS) if door.entry == entry]


@pytest.mark.asyncio
async def test_the_table_names_every_route_and_every_tool() -> None:
    app = create_app(World(MemoryStore()))
    routes = {
        f"{method} {rule.rule}"
        for rule in app.url_map.iter_rules()
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
    }
    tools = {f"tool {each.name}" for each in Toolbox(app.context).all()}
    assert routes | tools == set(ACCESS)
    assert {door.entry for door in DOORS} == set(ACCESS)


def status_of(door: Door, response: Response) -> int:
    """The status; of a tool that is refused inside a 200, what a route would have said."""
    if response.status != 200 or not door.entry.startswith("tool"):
        return response.status
    found = answer(response)
    unknown = found.get("error", {}).get("code") == -32602
    return 403 if unknown else 200


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("entry", ACCESS)
def test_who_gets_in(answers: dict[tuple[str, int], Response], entry: str, kind: str) -> None:
    needed = ACCESS[entry]
    for at in of_entry(entry):
        door, response = DOORS[at], answers[kind, at]
        status = status_of(door, response)
        if needed is None:
            assert status == 200
            body = json.loads(response.body)
            assert set(body) == ({"status", "store", "embedder", "model"} if kind in MAY else {"status"})
        elif kind not in MAY:
            assert status == 401
            assert UNAUTHENTICATED in response.body.decode()
        elif needed not in MAY[kind]:
            assert status == 403
        elif entry == "GET /sources/<chunk_id>":
            assert status == (200 if door.path in {f"/sources/{item.id}" for item in shop(kind)} else 404)
        else:
            assert status == 200


def shop(kind: str) -> list[Any]:
    return [item for item in readable(kind) if item.corpus == "shop"]


@pytest.mark.parametrize("kind", KINDS)
def test_nobody_is_told_a_word_of_what_he_may_not_read(answers: dict[tuple[str, int], Response], kind: str) -> None:
    own = canaries(readable(kind))
    foreign = canaries(DOCUMENTS) - own
    told = {at: response.body.decode() for (who, at), response in answers.items() if who == kind}
    for at, body in told.items():
        assert not {word for word in foreign if word in body}, DOORS[at].entry
        if kind != "admin":
            assert "vault" not in body
            assert "CANARYVAULT" not in body
    if HOLDS[kind]:
        for entry in ("POST /ask", "tool ask"):
            assert {word for word in own if word in told[of_entry(entry)[0]]}
        assert {word for word in own if word in told[of_entry("tool rag_query")[0]]}
        paths = {item.path for item in readable(kind)}
        assert {path for path in paths if path in told[of_entry("POST /search")[0]]}


@pytest.mark.parametrize("kind", KINDS)
def test_counts_are_of_what_the_kind_may_read(answers: dict[tuple[str, int], Response], kind: str) -> None:
    if kind not in MAY:
        return
    stats = json.loads(answers[kind, of_entry("GET /index/stats")[0]].body)
    mine = shop(kind)
    assert (stats["pointCount"], stats["documents"]) == (len(mine), len({item.path for item in mine}))
    newest = max((item.indexed_at for item in mine), default=None)
    told = stats["lastIngestionTime"]
    assert (told is None) == (newest is None)
    assert newest is None or told.startswith(
        {1_700_000_000: "2023", 1_800_000_000: "2027", 1_900_000_000: "2030"}[newest]
    )
