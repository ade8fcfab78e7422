"""`ragpilot doctor` over parts that are fakes, services that are protocol servers, and files that are real."""

from __future__ import annotations

import io
import json
import os
import tomllib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ragpilot import bootstrap, calibrations, cli_session, cli_status, runtime
from ragpilot.adapters import survey
from ragpilot.bootstrap.chat_models import CHAT_MODELS, ChosenChat
from ragpilot.bootstrap.embedders import EMBEDDERS
from ragpilot.bootstrap.services import survey_services
from ragpilot.bootstrap.stores import STORES
from ragpilot.cli import run
from ragpilot.config import ChatSettings, Environment, Settings
from ragpilot.errors import (
    AuthenticationError,
    ConfigError,
    EmbedderUnavailableError,
    RagPilotError,
    StoreUnavailableError,
)
from ragpilot.ingest.pipeline import index_identity
from ragpilot.runtime import OwnerLock, ServerRecord
from ragpilot.settings_loader import load
from ragpilot.types import Calibration, EmbedderIdentity, GateCalibration, IngestScope
from tests.fakes import OPERATOR, FakeEmbedder, MemoryStore, ScriptedChatModel
from tests.protocol.background import in_background
from tests.protocol.ollama_server import OllamaServer

KNOWN = GateCalibration(0.5, 0.05)
SCOPE = IngestScope(OPERATOR, "default")


@dataclass
class Stand:
    """A working folder and the parts that its configuration stands for."""

    folder: Path
    capsys: pytest.CaptureFixture[str]
    store: MemoryStore = field(default_factory=MemoryStore)
    embedder: FakeEmbedder = field(default_factory=FakeEmbedder)
    chat: ScriptedChatModel = field(default_factory=ScriptedChatModel)
    failures: dict[str, RagPilotError] = field(default_factory=dict)

    def doctor(self, *arguments: str, config: str | None = None) -> tuple[int, dict[str, list[dict[str, Any]]]]:
        """Exit code, and the findings by part."""
        before = ["--config", config] if config else []
        code = run([*before, "-C", str(self.folder), "doctor", "--json", *arguments])
        findings: dict[str, list[dict[str, Any]]] = {}
        for finding in json.loads(self.capsys.readouterr().out):
            findings.setdefault(finding["part"], []).append(finding)
        return code, findings

    def environment(self) -> Environment:
        return load(config=None, directory=self.folder, environ=os.environ)

    async def index(self, identity: EmbedderIdentity | None = None) -> None:
        """An empty index of the corpus, built with this embedder."""
        environment = self.environment()
        built = index_identity(identity or self.embedder.identity, environment.settings.ingest)
        await self.store.ensure(SCOPE, built)
        await self.store.record_ingestion(SCOPE, datetime(2026, 1, 2, tzinfo=UTC))
        environment.state.mkdir(parents=True, exist_ok=True, mode=0o700)


@pytest.fixture
def stand(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    unused_tcp_port: int,
) -> Stand:
    folder = tmp_path / "project"
    folder.mkdir()
    made = Stand(folder, capsys)
    made.embedder.gate = KNOWN
    monkeypatch.setattr(survey, "COMPATIBLE_PORTS", {})
    monkeypatch.setenv("OLLAMA_HOST", f"127.0.0.1:{unused_tcp_port}")

    def failing(part: str) -> None:
        if part in made.failures:
            raise made.failures[part]

    async def embedder(_: Environment) -> FakeEmbedder:
        failing("embedder")
        return made.embedder

    async def chat(_: ChatSettings) -> ChosenChat:
        failing("model")
        return ChosenChat(made.chat, "It was chosen by lot.")

    def store(_: Environment) -> MemoryStore:
        failing("store")
        return made.store

    monkeypatch.setitem(EMBEDDERS, "minilm", embedder)
    monkeypatch.setitem(CHAT_MODELS, "auto", chat)
    monkeypatch.setitem(STORES, "embedded", store)
    return made


# --- without a server


def test_a_fresh_machine_is_well_and_stays_untouched(stand: Stand, own_environment: Path) -> None:
    code, found = stand.doctor()
    assert code == 0
    assert found["store"][0]["advice"] == "Index it: ragpilot index"
    assert [finding["text"] for finding in found["model"]] == ["scripted model", "It was chosen by lot."]
    assert found["embedder"][0]["state"] == "ok"
    assert {finding["state"] for finding in found["services"]} == {"note"}
    assert not (own_environment / "ragpilot").exists()
    assert stand.embedder.closed


def test_a_file_that_is_not_read_and_a_root_that_is_not_there_are_noted(stand: Stand) -> None:
    file = stand.folder / "config.toml"
    file.write_text("[retrieval]\ntop_k = 3\n")
    code, found = stand.doctor()
    assert (code, found["configuration"][1]["state"]) == (0, "note")
    assert found["configuration"][1]["text"] == f'{file} is not read: it does not say schema = "ragpilot/1".'
    file.write_text('schema = "ragpilot/1"\n[[corpora]]\nname = "shop"\nroots = ["gone"]\n')
    code, found = stand.doctor()
    assert (code, found["corpus shop"][0]["state"]) == (0, "note")
    assert found["corpus shop"][0]["text"] == f"Its root {stand.folder / 'gone'} is not on this machine."


@pytest.mark.asyncio
async def test_an_index_that_matches_and_one_that_does_not(stand: Stand) -> None:
    await stand.index()
    findings = await _examined(stand)
    assert findings["corpus default"] == ("ok", "The index matches the embedder; last run 2026-01-02 00:00 UTC.")
    assert stand.store.closed
    stand.embedder = FakeEmbedder(name="newer")
    stand.embedder.gate = KNOWN
    state, text = (await _examined(stand))["corpus default"]
    assert state == "bad"
    assert "built with fake" in text


async def _examined(stand: Stand) -> dict[str, tuple[str, str]]:
    from ragpilot.cli_doctor import examine

    return {finding.part: (finding.state, finding.text) for finding in await examine(stand.environment())}


def test_a_part_that_fails_hides_no_other(stand: Stand) -> None:
    stand.environment().state.mkdir(parents=True, mode=0o700)
    stand.failures["embedder"] = EmbedderUnavailableError("It is away.", hint="Start it.")
    code, found = stand.doctor()
    assert code == 1
    assert (found["embedder"][0]["state"], found["embedder"][0]["advice"]) == ("bad", "Start it.")
    assert found["store"][0] == {**found["store"][0], "state": "ok", "text": "memory"}
    assert found["model"][0]["state"] == "ok"
    stand.failures = {"model": ConfigError("chat.url is not set."), "store": StoreUnavailableError("gone")}
    code, found = stand.doctor()
    assert (code, found["model"][0]["state"], found["store"][0]["state"]) == (1, "bad", "bad")
    assert found["embedder"][0]["state"] == "ok"


def test_a_store_in_use_by_another_command_is_no_fault(stand: Stand) -> None:
    with OwnerLock(stand.environment().state, "index"):
        code, found = stand.doctor()
    assert code == 0
    assert found["store"][0]["state"] == "note"
    assert "is in use by" in found["store"][0]["text"]


def test_a_broken_configuration_is_the_finding(stand: Stand) -> None:
    file = stand.folder / "mine.toml"
    file.write_text("[chat]\nkidn = 1\n")
    code, found = stand.doctor(config=str(file))
    assert code == 1
    assert list(found) == ["configuration"]
    assert "mine.toml:2: unknown key 'kidn' in chat" in found["configuration"][0]["text"]


def test_an_embedder_without_bounds_is_told_how_to_get_them(stand: Stand, own_environment: Path) -> None:
    stand.embedder.gate = None
    code, found = stand.doctor()
    assert code == 0
    assert found["embedder"][-1]["state"] == "note"
    assert found["embedder"][-1]["advice"] == "Fit them: ragpilot calibrate"
    kept = Calibration(stand.embedder.identity, 0.5, KNOWN, datetime(2026, 1, 2, tzinfo=UTC), 1.0, 0.0)
    calibrations.keep(own_environment / "ragpilot", kept)
    assert len(stand.doctor()[1]["embedder"]) == 1


def test_where_the_gate_is_configured_nothing_is_missing(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    stand.embedder.gate = None
    monkeypatch.setenv("RAGPILOT_RETRIEVAL__GATE", "off")
    assert len(stand.doctor()[1]["embedder"]) == 1


def test_findings_as_lines(stand: Stand) -> None:
    assert run(["-C", str(stand.folder), "doctor"]) == 0
    lines = stand.capsys.readouterr().out.splitlines()
    assert lines[0] == "ok    configuration  No config.toml is in force; everything is a default."
    assert any(line.strip() == "-> Index it: ragpilot index" for line in lines)


# --- with a server


@pytest.fixture
def served(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> Stand:
    """As if a server ran: its answers are those of the core over the same parts."""

    async def record(_: Path, *, indexing: bool) -> ServerRecord:
        return ServerRecord("http://127.0.0.1:5200", 1, "now")

    @asynccontextmanager
    async def session(environment: Environment, role: str, environ: Any) -> AsyncIterator[cli_session.Session]:
        if "server" in stand.failures:
            raise stand.failures["server"]
        parts: dict[str, Any] = {"store": stand.store, "embedder": stand.embedder, "chat": stand.chat}
        async with bootstrap.build(environment, **parts) as application:
            yield cli_session.StoreSession(application, OPERATOR)

    monkeypatch.setattr(runtime, "find_server", record)
    monkeypatch.setattr(cli_session, "open_session", session)
    return stand


@pytest.mark.asyncio
async def test_a_server_is_asked_for_its_parts_and_corpora(served: Stand) -> None:
    assert (await _examined(served))["corpus default"][0] == "note"
    (served.folder / "app.py").write_text("def configuration() -> None:\n    pass\n")
    environment = served.environment()
    parts: dict[str, Any] = {"store": served.store, "embedder": served.embedder, "chat": served.chat}
    async with bootstrap.build(environment, **parts) as application:
        async for _ in application.ingestion.run(OPERATOR, environment.settings.corpora[0]):
            pass
    found = await _examined(served)
    assert found["server"] == ("ok", "Runs at http://127.0.0.1:5200.")
    assert found["corpus default"] == ("ok", "1 document, 1 chunk; a question finds its way.")
    assert found["store"] == ("ok", "memory")
    served.embedder.identity = EmbedderIdentity("newer", 64)
    state, text = (await _examined(served))["corpus default"]
    assert state == "bad"
    assert "was built with fake" in text


def test_a_server_that_does_not_know_us(served: Stand) -> None:
    served.failures["server"] = AuthenticationError("A token is needed.", hint="It is taken from RAGPILOT_TOKEN.")
    code, found = served.doctor()
    assert code == 1
    assert found["server"][-1]["advice"] == "It is taken from RAGPILOT_TOKEN."


# --- --fix


@pytest.fixture
def ollama(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_HOST", in_background(OllamaServer))


def answer(monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{word}\n"))


@pytest.mark.usefixtures("ollama")
def test_what_is_agreed_to_is_written_into_a_new_file(
    stand: Stand, own_environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = own_environment / ".config" / "ragpilot" / "config.toml"
    answer(monkeypatch, "n")
    assert run(["-C", str(stand.folder), "doctor", "--fix"]) == 0
    printed = stand.capsys.readouterr()
    assert '+model = "qwen:latest"' in printed.err
    assert f"Write this into {file}?" in printed.err
    assert "Nothing was written." in printed.err
    assert not file.exists()
    answer(monkeypatch, "y")
    assert run(["-C", str(stand.folder), "doctor", "--fix"]) == 0
    assert tomllib.loads(file.read_text()) == {"schema": "ragpilot/1", "chat": {"model": "qwen:latest"}}
    stand.capsys.readouterr()
    # What is settled is not advised again.
    assert run(["-C", str(stand.folder), "doctor", "--fix"]) == 0
    assert "There is nothing to be set" in stand.capsys.readouterr().err


@pytest.mark.usefixtures("ollama")
def test_a_named_file_keeps_all_that_it_says(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    file = stand.folder / "mine.toml"
    file.write_text('# ours\nschema = "ragpilot/1"\n\n[chat]\n# calm\ntemperature = 0.1\n')
    answer(monkeypatch, "y")
    assert run(["--config", str(file), "-C", str(stand.folder), "doctor", "--fix"]) == 0
    assert file.read_text() == (
        '# ours\nschema = "ragpilot/1"\n\n[chat]\nmodel = "qwen:latest"\n# calm\ntemperature = 0.1\n'
    )


@pytest.mark.usefixtures("ollama")
def test_the_file_in_force_is_offered_if_it_is_trusted_and_else_it_is_said(
    stand: Stand, own_environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = stand.folder / "config.toml"
    own = own_environment / ".config" / "ragpilot" / "config.toml"
    file.write_text('schema = "ragpilot/1"\n\n[retrieval]\ntop_k = 3\n')
    answer(monkeypatch, "n")
    run(["-C", str(stand.folder), "doctor", "--fix"])
    said = stand.capsys.readouterr().err
    assert f"{file} is in force over {own}, but came with its folder and is not trusted" in said
    assert f"Write this into {own}?" in said
    assert run(["-C", str(stand.folder), "trust"]) == 0
    answer(monkeypatch, "y")
    run(["-C", str(stand.folder), "doctor", "--fix"])
    assert f"Write this into {file}?" in stand.capsys.readouterr().err
    assert tomllib.loads(file.read_text())["chat"] == {"model": "qwen:latest"}
    assert not own.exists()
    assert run(["-C", str(stand.folder), "doctor"]) == 0


# --- where services are looked for


@pytest.mark.asyncio
async def test_keys_go_only_where_they_are_configured_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[survey.Addresses] = []

    async def surveyed(addresses: survey.Addresses, *, chat_is_open: bool) -> list[Any]:
        asked.append(addresses)
        assert chat_is_open is False
        return []

    monkeypatch.setattr(survey, "survey", surveyed)
    monkeypatch.setenv("CHAT_KEY", "one")
    monkeypatch.setenv("STORE_KEY", "two")
    monkeypatch.delenv("OLLAMA_HOST", raising=False)
    stored = {"kind": "qdrant", "url": "http://q:6333", "api_key_env": "STORE_KEY"}
    for kind in ("openai", "ollama"):
        chat = {"kind": kind, "url": "http://c:8080", "model": "m", "api_key_env": "CHAT_KEY"}
        settings = Settings.model_validate({"chat": chat, "store": stored})
        await survey_services(Environment(settings=settings, state=Path("/nowhere")))
    assert asked == [
        survey.Addresses(None, "http://c:8080", "one", "http://q:6333", "two", frozenset({"qdrant"})),
        survey.Addresses("http://c:8080", None, None, "http://q:6333", "two", frozenset({"qdrant", "ollama"})),
    ]


@pytest.mark.asyncio
async def test_ollama_is_looked_for_where_a_part_is_configured_to_find_it(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[survey.Addresses] = []

    async def surveyed(addresses: survey.Addresses, *, chat_is_open: bool) -> list[Any]:
        asked.append(addresses)
        return []

    monkeypatch.setattr(survey, "survey", surveyed)
    monkeypatch.setenv("OLLAMA_HOST", "elsewhere")
    embedder = {"kind": "ollama", "url": "http://e:1"}
    for settings in ({}, {"embedder": embedder}, {"embedder": embedder, "chat": {"url": "http://c:1"}}):
        parsed = Settings.model_validate(settings)
        await survey_services(Environment(settings=parsed, state=Path("/nowhere")))
    assert [(addresses.ollama, set(addresses.needed)) for addresses in asked] == [
        ("elsewhere", set()),
        ("http://e:1", {"ollama"}),
        ("http://c:1", {"ollama"}),
    ]


@pytest.mark.parametrize(("started", "older"), [("2020-01-01T00:00:00Z", True), ("2999-01-01T00:00:00Z", False)])
def test_a_server_older_than_its_configuration_is_told(
    served: Stand, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], started: str, *, older: bool
) -> None:
    file = served.folder / "config.toml"
    file.write_text('schema = "ragpilot/1"\n[retrieval]\ntop_k = 9\n')

    async def record(_: Path, *, indexing: bool) -> ServerRecord:
        return ServerRecord("http://127.0.0.1:5200", 1, started)

    monkeypatch.setattr(runtime, "find_server", record)
    told = [item["text"] for item in served.doctor()[1]["server"] if "not in force" in item["text"]]
    beginning = f"onfiguration not in force: {file} was changed after the server started"
    assert [text.startswith(f"C{beginning}") for text in told] == ([True] if older else [])
    assert runtime.changed_since(ServerRecord("", 1, started), [str(file), "/nowhere"]) == [
        f"c{text[1:]}" for text in told
    ]


def test_status_names_a_configuration_that_is_not_in_force(capsys: pytest.CaptureFixture[str]) -> None:
    facts: dict[str, Any] = {"version": "1", "directory": "/d", "files": [], "passedOver": None, "state": "/s"}
    cli_status._print_status({**facts, "server": "http://127.0.0.1:1", "notInForce": ["configuration not in force: x"],
                                "inUseBy": None, "health": {}, "corpora": []})  # fmt: skip
    assert "Server: http://127.0.0.1:1\n  configuration not in force: x\n" in capsys.readouterr().out
