from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ragpilot import doctor
from ragpilot.adapters.edge_store import EdgeStore
from ragpilot.config import Environment, Settings
from ragpilot.errors import ConfigError, StoreError, StoreInUseError, StoreUnavailableError
from ragpilot.types import Finding, Health, IndexedChunk, IndexIdentity, IngestScope
from tests.builders import chunk
from tests.fakes import OPERATOR, FakeEmbedder, MemoryStore, ScriptedChatModel, sparse

pytestmark = pytest.mark.asyncio

EMBEDDER = FakeEmbedder()
IDENTITY = IndexIdentity(EMBEDDER.identity, "chunker-1")
SCOPE = IngestScope(OPERATOR, "default")


async def examined(store: MemoryStore, identity: IndexIdentity = IDENTITY) -> dict[str, Finding]:
    findings = await doctor.examine_parts(store, EMBEDDER, ScriptedChatModel(), identity, ["default"])
    return {finding.part: finding for finding in findings}


async def test_an_index_that_matches_is_well() -> None:
    store = MemoryStore()
    await store.ensure(SCOPE, IDENTITY)
    await store.record_ingestion(SCOPE, datetime(2026, 1, 2, 3, 4, tzinfo=UTC))
    found = await examined(store)
    assert doctor.is_well(found.values())
    assert found["corpus default"].text == "The index matches the embedder; last run 2026-01-02 03:04 UTC."
    assert found["model"].text == "scripted model"


async def test_another_embedder_is_bad_and_says_how_to_rebuild() -> None:
    store = MemoryStore()
    await store.ensure(SCOPE, IDENTITY)
    other = replace(IDENTITY, embedder=replace(IDENTITY.embedder, name="other"))
    finding = (await examined(store, other))["corpus default"]
    assert finding.state == "bad"
    assert "built with fake (64 dimensions" in finding.text
    assert "configured is other" in finding.text
    assert "ragpilot index --rebuild" in finding.advice


async def test_an_index_that_is_cut_otherwise_is_bad_and_says_how_to_cut_it_anew() -> None:
    store = MemoryStore()
    await store.ensure(SCOPE, IDENTITY)
    finding = (await examined(store, replace(IDENTITY, chunker="newer")))["corpus default"]
    assert finding.state == "bad"
    assert finding.advice == "`ragpilot index` cuts it anew; vectors of texts that did not change are kept."


async def test_nothing_indexed_is_no_fault() -> None:
    finding = (await examined(MemoryStore()))["corpus default"]
    assert (finding.state, finding.advice) == ("note", "Index it: ragpilot index")


async def test_a_store_that_is_away_is_one_fault_and_not_one_a_corpus() -> None:
    found = await examined(MemoryStore(failure=StoreUnavailableError("gone")))
    assert found["store"].state == "bad"
    assert "corpus default" not in found
    assert not doctor.is_well(found.values())


async def test_a_damaged_index_is_bad_although_its_record_is_whole(tmp_path: Path) -> None:
    store = EdgeStore(tmp_path / "store")
    await store.ensure(SCOPE, IDENTITY)
    await store.upsert(SCOPE, chunk().document_id, [IndexedChunk(chunk(), sparse({1: 1.0}))])
    await store.aclose()
    (segment,) = (tmp_path / "store/default/shard/segments").iterdir()
    (segment / "mutable_id_tracker.mappings").write_bytes(b"")
    store = EdgeStore(tmp_path / "store")
    findings = await doctor.examine_parts(store, EMBEDDER, ScriptedChatModel(), IDENTITY, ["default"])
    await store.aclose()
    finding = next(finding for finding in findings if finding.part == "corpus default")
    assert finding.state == "bad"
    assert "mutable_id_tracker.mappings has 0 bytes" in finding.text
    assert "ragpilot index --rebuild" in finding.advice


async def test_errors_become_findings() -> None:
    held = doctor.from_error(StoreInUseError("held by 17", hint="ask it"))
    assert (held.part, held.state, held.advice) == ("store", "note", "ask it")
    assert doctor.from_error(ConfigError("wrong")).state == "bad"
    assert doctor.from_error(StoreError("broken"), "corpus a").part == "corpus a"


async def test_a_state_folder_says_how_much_is_free_and_when_that_is_too_little(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = Environment(settings=Settings(), state=tmp_path / "state")
    monkeypatch.setattr(doctor, "free_bytes", lambda _: 45_600_000_000)
    assert doctor.examine_configuration(environment)[-1].text.endswith("; 45.6 GB are free on its disk.")
    monkeypatch.setattr(doctor, "free_bytes", lambda _: 1_000_000)
    finding = doctor.examine_configuration(environment)[-1]
    assert finding.state == "note"
    assert "1.0 MB are free" in finding.text
    assert "less than 64.0 MB" in finding.advice


async def test_configuration_names_files_and_a_state_folder_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    environment = Environment(settings=Settings(), state=tmp_path / "state", files=["/a.toml"], notes=["odd"])
    findings = doctor.examine_configuration(environment)
    assert [finding.state for finding in findings] == ["ok", "note", "ok"]
    assert "/a.toml" in findings[0].text
    blocked = doctor.examine_configuration(Environment(settings=Settings(), state=tmp_path / "file" / "state"))
    assert blocked[-1].state == "bad"
    assert "RAGPILOT_HOME" in blocked[-1].advice


async def test_advice_is_proposed_once_a_key_and_rendered_below_its_finding() -> None:
    findings = [
        *doctor.from_health({"store": Health(ok=True, detail="here"), "model": Health(ok=False, detail="away")}),
        Finding("services", "ok", "one", "set it", {"chat.model": "a"}),
        Finding("services", "ok", "two", "or it", {"chat.kind": "openai", "chat.model": "b"}),
    ]
    assert doctor.proposed(findings) == {"chat.model": "a"}
    assert doctor.render(findings) == [
        "ok    store     here",
        "BAD   model     away",
        "ok    services  one",
        "                -> set it",
        "ok    services  two",
        "                -> or it",
    ]
    assert doctor.render([]) == []
