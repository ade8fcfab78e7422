"""Who somebody is: by every way that a token comes in, and by every way in which none does."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from ragpilot import bootstrap, cli, cli_session
from ragpilot.actors import new_token, token_hash
from ragpilot.bootstrap import Application
from ragpilot.config import ActorSettings, Environment
from server.problems import UNAUTHENTICATED
from tests.fakes import FakeEmbedder, MemoryStore, ScriptedChatModel
from tests.security.doors import ACCESS, DOCUMENTS, DOORS, World, settings
from tests.server.agents import HEADERS, message
from tests.server.support import Response, bearer

REFUSED: dict[str, dict[str, str]] = {
    "none": {},
    "empty": {"Authorization": ""},
    "no token": {"Authorization": "Bearer"},
    "blank token": {"Authorization": "Bearer  "},
    "unknown": bearer("x"),
    "long": bearer("x" * 4_000),
    "two words": {"Authorization": "Bearer token-of-bob token-of-bob"},
    "two tokens": {"Authorization": "Bearer token-of-bob,token-of-bob"},
    "another scheme": {"Authorization": "Basic token-of-bob"},
    "no scheme": {"Authorization": "token-of-bob"},
    "quoted": {"Authorization": 'Bearer "token-of-bob"'},
    "a hash": bearer(token_hash("token-of-bob")),
    "a variable": bearer("env:PATH"),
    "letters": {"Authorization": "Bearer t\u00f6ken"},
    "another case": bearer("TOKEN-OF-BOB"),
    "twice": {"Authorization": "Bearer token-of-bob", "authorization": "Bearer token-of-bob"},
    "twice, one empty": {"Authorization": "Bearer token-of-bob", "authorization": ""},
    "twice, two people": {"Authorization": "Bearer token-of-bob", "authorization": "Bearer token-of-admin"},
}
"""Headers that are no known token. Header names count in any case, so two spellings are two headers."""


def alike(response: Response) -> tuple[int, dict[str, str], bytes]:
    """A refusal without what differs from request to request."""
    headers = {name: value for name, value in response.headers.items() if name not in {"date", "x-request-id"}}
    return response.status, headers, response.body.replace(response.headers["x-request-id"].encode(), b"ID")


@pytest.mark.asyncio
async def test_whatever_is_wrong_with_a_header_every_door_says_the_same() -> None:
    world = World(MemoryStore())
    await world.fill(DOCUMENTS[:4])
    asked = [door for door in DOORS if ACCESS[door.entry] is not None]
    async with asyncio.timeout(60), world.serving() as server:
        for door in asked:
            said = {
                name: alike(await server.call(door.method, door.path, door.body, {**door.headers, **header}))
                for name, header in REFUSED.items()
            }
            status, headers, body = said["none"]
            assert (status, headers["www-authenticate"]) == (401, "Bearer")
            assert UNAUTHENTICATED in body.decode()
            for name, refusal in said.items():
                assert refusal == said["none"], (door.entry, name)
        for header in REFUSED.values():
            response = await server.call("GET", "/health", headers=header)
            assert (response.status, response.body) == (200, b'{"status":"ok"}')


@pytest.mark.asyncio
async def test_each_of_several_tokens_counts_until_it_is_taken_out_of_the_configuration() -> None:
    first, second = new_token(), new_token()

    async def statuses(*held: str) -> list[int]:
        hashes = [token_hash(token) for token in held]
        actors = [ActorSettings(name="bob", principals=["user:bob"], tokens=hashes)]
        async with asyncio.timeout(20), World(MemoryStore(), given=settings(actors=actors)).serving() as server:
            calls = [
                await server.call(method, path, body, {**HEADERS, **bearer(token)})
                for token in (first, second)
                for method, path, body in (("GET", "/corpora", None), ("POST", "/mcp", message("tools/list")))
            ]
        return [response.status for response in calls]

    assert await statuses(first, second) == [200, 200, 200, 200]
    assert await statuses(second) == [401, 401, 200, 200]


# --- commands, without a server

PEOPLE = {"bob": ["user:bob"], "tess": ["team:core"]}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MemoryStore:
    """A folder with a document for each of two people, indexed; every command works on it in this process."""
    for name in PEOPLE:
        (tmp_path / "shop" / name).mkdir(parents=True)
        (tmp_path / "shop" / name / "budget.md").write_text(f"# Budget of {name}\n\nCANARY{name.upper()}\n")
    actors = "".join(
        f'[[actors]]\nname = "{name}"\nprincipals = {principals}\ntokens = ["{token_hash(f"token-of-{name}")}"]\n'
        for name, principals in PEOPLE.items()
    )
    grants = "".join(
        f'[[corpora.grants]]\npaths = ["{name}/**"]\nreaders = {principals}\n' for name, principals in PEOPLE.items()
    )
    corpus = f'[[corpora]]\nname = "shop"\nroots = ["{tmp_path / "shop"}"]\nreaders = []\n{grants}'
    operator = (
        f'[[actors]]\nname = "olga"\npermissions = ["ingest", "admin"]\ntokens = ["{token_hash("token-of-olga")}"]\n'
    )
    config = tmp_path / "ragpilot.toml"
    config.write_text(f'{corpus}{actors}{operator}[retrieval]\nmin_score = 0.05\ngate = "off"\n')
    store = MemoryStore()

    @asynccontextmanager
    async def build(environment: Environment) -> AsyncIterator[Application]:
        embedder, chat = FakeEmbedder(), ScriptedChatModel()
        async with bootstrap.build(environment, store=store, embedder=embedder, chat=chat) as application:
            yield application

    monkeypatch.setattr(cli_session, "build", build)
    monkeypatch.setenv("RAGPILOT_CONFIG", str(config))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RAGPILOT_TOKEN", "token-of-olga")
    assert cli.run(["index", "--quiet"]) == 0
    return store


def ran(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    capsys.readouterr()
    code = cli.run(list(arguments))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.mark.parametrize("name", PEOPLE)
def test_commands_ask_for_whom_the_variable_says(
    project: MemoryStore, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("RAGPILOT_TOKEN", f"token-of-{name}")
    code, printed, _ = ran(capsys, "search", "budget", "--json")
    assert code == 0
    assert [hit["filePath"] for hit in json.loads(printed)["hits"]] == [f"{name}/budget.md"]
    code, printed, _ = ran(capsys, "ask", "budget", "--json")
    assert code == 0
    assert [source["filePath"] for source in json.loads(printed)["sources"]] == [f"{name}/budget.md"]
    code, printed, _ = ran(capsys, "status", "--json")
    found: list[dict[str, Any]] = json.loads(printed)["corpora"]
    assert [corpus["documents"] for corpus in found] == [1]


@pytest.mark.parametrize("token", ["", "wrong", token_hash("token-of-bob"), "TOKEN-OF-BOB"])
@pytest.mark.parametrize("command", [("ask", "budget"), ("search", "budget"), ("status",), ("index",)])
def test_commands_refuse_a_token_that_is_not_known_without_a_word_of_anything(
    project: MemoryStore,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    command: tuple[str, ...],
    token: str,
) -> None:
    monkeypatch.setenv("RAGPILOT_TOKEN", token)
    code, printed, told = ran(capsys, *command)
    assert (code, printed) == (1, "")
    assert told == "Error: The token is missing or not known.\nIt is taken from RAGPILOT_TOKEN.\n"


@pytest.mark.parametrize("name", PEOPLE)
def test_a_command_that_writes_needs_the_permission(
    project: MemoryStore, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("RAGPILOT_TOKEN", f"token-of-{name}")
    before = dict(project.chunks)
    code, _, told = ran(capsys, "index", "--rebuild")
    assert code == 1
    assert "lacks the permission 'ingest'" in told
    assert project.chunks == before
