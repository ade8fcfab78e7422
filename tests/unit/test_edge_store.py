"""What is particular to the embedded store: record, checks before a write, damage, half-written documents."""

from __future__ import annotations

import json
import math
import os
import shutil
import signal
import uuid
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
import pytest_asyncio

from ragpilot.adapters import edge_writes
from ragpilot.adapters.chunk_rows import DOCUMENT_FIELDS, FIELDS, from_payload, to_chunk, to_payload, to_row
from ragpilot.adapters.document_tally import Tally
from ragpilot.adapters.edge_collections import Collections
from ragpilot.adapters.edge_owner import Work, answer
from ragpilot.adapters.edge_reads import frequency_of
from ragpilot.adapters.edge_record import RESERVED, CollectionRecord
from ragpilot.adapters.edge_shard import create_shard, open_shard
from ragpilot.adapters.edge_store import EdgeStore
from ragpilot.errors import IndexMismatchError, StoreDamagedError, StoreError, StoreFullError, StoreInUseError
from ragpilot.types import Chunk, EmbedderIdentity, IndexedChunk, IndexIdentity, IngestScope, SparseVector, StoreQuery
from tests.builders import chunk
from tests.contract.folders import quick_folder
from tests.fakes import ANN, OPERATOR, sparse

IDENTITY = IndexIdentity(EmbedderIdentity("minilm", 4, revision="r1", truncation=128), "chunker-1")
SCOPE = IngestScope(OPERATOR, "default")
QUERY = StoreQuery("default", np.ones(4, dtype=np.float32), sparse({1: 1.0}))


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with quick_folder(tmp_path_factory) as made:
        yield made


@pytest_asyncio.fixture
async def store(folder: Path) -> AsyncIterator[EdgeStore]:
    opened = EdgeStore(folder)
    yield opened
    await opened.aclose()


def indexed(item: Chunk) -> IndexedChunk:
    return IndexedChunk(item, sparse({1: 1.0}))


# --- the record


def load(folder: Path) -> CollectionRecord:
    record = CollectionRecord.load(folder / "collection.json", "default")
    assert record is not None
    return record


def test_after_a_crash_the_revision_is_one_that_nobody_was_given(tmp_path: Path) -> None:
    record = CollectionRecord.create(tmp_path / "collection.json", "default", IDENTITY)
    given = {record.info().revision}
    for _ in range(3):
        for _ in range(RESERVED + 10):
            record.advance()
            given.add(record.info().revision)
        # The process is killed here: nothing was settled.
        record = load(tmp_path)
        assert record.info().revision > max(given)
        given.add(record.info().revision)
    assert len(given) == 3 * (RESERVED + 10) + 4


def test_after_a_clean_end_the_revision_is_the_last_one_given(tmp_path: Path) -> None:
    record = CollectionRecord.create(tmp_path / "collection.json", "default", IDENTITY)
    for _ in range(3):
        record.advance()
        record.settle()
        assert load(tmp_path).info() == record.info()
        # And once a write follows, a crash shows again.
        last = record.info().revision
        record.advance()
        assert load(tmp_path).info().revision > last + 1
        record = load(tmp_path)


def test_a_record_costs_one_write_for_many_revisions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = CollectionRecord.create(tmp_path / "collection.json", "default", IDENTITY)
    written: list[int] = []
    monkeypatch.setattr(record, "_write", written.append)
    for _ in range(RESERVED - 1):
        record.advance()
    assert len(written) == 1


def test_a_collection_built_anew_repeats_no_revision(tmp_path: Path) -> None:
    first = CollectionRecord.create(tmp_path / "collection.json", "default", IDENTITY).info().revision
    (tmp_path / "collection.json").unlink()
    second = CollectionRecord.create(tmp_path / "collection.json", "default", IDENTITY).info().revision
    assert second >= first > 1_700_000_000_000


def test_the_record_comes_back_as_it_was(tmp_path: Path) -> None:
    record = CollectionRecord.create(tmp_path / "collection.json", "default", IDENTITY)
    record.ingested(datetime(2026, 1, 2, 3, 4, 5, 678_901, tzinfo=UTC))
    record.settle()
    assert load(tmp_path).info() == record.info()
    assert [file.name for file in tmp_path.iterdir()] == ["collection.json"]


def test_two_corpora_never_share_a_folder_where_case_is_ignored(tmp_path: Path) -> None:
    CollectionRecord.create(tmp_path / "collection.json", "Default", IDENTITY)
    with pytest.raises(StoreError, match="holds the corpus 'Default', not 'default'"):
        load(tmp_path)


@pytest.mark.parametrize("content", ["", "{", "[]", "null", '{"schema": 1}', '{"schema": 1, "embedder": 3}', "\xff"])
def test_a_record_that_cannot_be_read_is_damage(tmp_path: Path, content: str) -> None:
    (tmp_path / "collection.json").write_text(content, encoding="latin-1")
    with pytest.raises(StoreDamagedError, match=r"collection\.json") as caught:
        load(tmp_path)
    assert "ragpilot index --rebuild" in caught.value.hint


# --- identity and version


@pytest.mark.asyncio
async def test_a_mismatch_names_both_identities_and_the_way_out(store: EdgeStore) -> None:
    await store.ensure(SCOPE, IDENTITY)
    prefixed = IndexIdentity(replace(IDENTITY.embedder, question_prefix="query: "), "chunker-1")
    with pytest.raises(IndexMismatchError) as caught:
        await store.ensure(SCOPE, prefixed)
    text = str(caught.value)
    assert text.count("minilm") == 2
    assert "question prefix 'query: '" in text
    assert "`ragpilot index --rebuild`" in text
    with pytest.raises(IndexMismatchError, match="chunker-2") as caught:
        await store.ensure(SCOPE, IndexIdentity(IDENTITY.embedder, "chunker-2"))
    assert caught.value.hint == "`ragpilot index` cuts it anew; vectors of texts that did not change are kept."


@pytest.mark.asyncio
async def test_a_collection_of_another_version_is_refused_and_can_be_dropped(folder: Path) -> None:
    store = EdgeStore(folder)
    await store.ensure(SCOPE, IDENTITY)
    await store.aclose()
    record = folder / "default" / "collection.json"
    record.write_text(json.dumps({**json.loads(record.read_text()), "schema": 99}))
    store = EdgeStore(folder)
    for attempt in (store.describe("default"), store.ensure(SCOPE, IDENTITY), store.search(ANN, QUERY)):
        with pytest.raises(IndexMismatchError, match="another version of RagPilot") as caught:
            await attempt
        assert "ragpilot index --rebuild" in caught.value.hint
    await store.drop(SCOPE)
    await store.ensure(SCOPE, IDENTITY)
    await store.aclose()


# --- damage


@pytest.mark.asyncio
@pytest.mark.parametrize("damage", ["folder gone", "segment lost", "panic", "log"])
async def test_a_damaged_shard_is_named_and_can_be_rebuilt(folder: Path, damage: str) -> None:
    store = EdgeStore(folder)
    await store.ensure(SCOPE, IDENTITY)
    item = chunk()
    await store.upsert(SCOPE, item.document_id, [indexed(item)])
    await store.aclose()
    shard = folder / "default" / "shard"
    (segment,) = (shard / "segments").iterdir()
    match damage:
        case "folder gone":
            shutil.rmtree(shard)
        case "segment lost":
            (segment / "segment.json").unlink()
        case "panic":
            # Of this the engine makes a panic, which is no Exception.
            status = segment / "vector_storage-lexical" / "deleted" / "status.dat"
            status.write_bytes(status.read_bytes()[: status.stat().st_size // 2])
        case _:
            (shard / "wal" / "first-index").write_bytes(b"\xff" * 18)
    store = EdgeStore(folder)
    for attempt in (store.search(ANN, QUERY), store.ensure(SCOPE, IDENTITY), store.count(ANN, "default")):
        with pytest.raises(StoreDamagedError) as caught:
            await attempt
        assert str(shard) in caught.value.message
        assert "ragpilot index --rebuild" in caught.value.hint
    health = await store.check()
    assert not health.ok
    assert str(shard) in health.detail
    await store.drop(SCOPE)
    assert not (folder / "default").exists()
    await store.ensure(SCOPE, IDENTITY)
    assert (await store.check()).ok
    await store.aclose()


@pytest.mark.asyncio
async def test_a_file_that_was_cut_short_or_lost_is_damage(folder: Path) -> None:
    """The engine opens such a shard as if there had never been more in it."""
    store = EdgeStore(folder)
    await store.ensure(SCOPE, IDENTITY)
    for number in range(4):
        item = chunk(path=f"src/{number}.py")
        await store.upsert(SCOPE, item.document_id, [indexed(item)])
    await store.aclose()
    (segment,) = (folder / "default/shard/segments").iterdir()
    for name, share in {
        "mutable_id_tracker.mappings": 0.5,
        "mutable_id_tracker.versions": 0.0,
        "payload_storage/page_0.dat": 0.0,
        "vector_storage-body/vectors/chunk_0.mmap": 0.0,
        "payload_index/*-map/page_0.dat": None,
    }.items():
        file = next(segment.glob(name))
        whole = file.read_bytes()
        file.unlink()
        if share is not None:
            file.write_bytes(whole[: int(len(whole) * share)])
        store = EdgeStore(folder)
        for attempt in (store.ensure(SCOPE, IDENTITY), store.count(ANN, "default"), store.search(ANN, QUERY)):
            with pytest.raises(StoreDamagedError, match=f"damaged: .*{file.name} (has|is missing)") as caught:
                await attempt
            assert "ragpilot index --rebuild" in caught.value.hint
        await store.aclose()
        file.write_bytes(whole)
    store = EdgeStore(folder)
    assert await store.count(ANN, "default") == 4
    await store.aclose()


@pytest.mark.asyncio
async def test_chunks_that_went_missing_are_damage(folder: Path) -> None:
    store = EdgeStore(folder)
    await store.ensure(SCOPE, IDENTITY)
    await store.upsert(SCOPE, chunk().document_id, [indexed(chunk())])
    await store.aclose()
    file = folder / "default/collection.json"
    record = json.loads(file.read_bytes())
    assert record["seal"]["chunks"] == 1
    record["seal"]["chunks"] = 7
    file.write_text(json.dumps(record), encoding="utf-8")
    store = EdgeStore(folder)
    with pytest.raises(StoreDamagedError, match="6 of its 7 chunks are missing"):
        await store.count(ANN, "default")
    await store.aclose()


@pytest.mark.asyncio
async def test_a_store_that_was_killed_is_no_damage(folder: Path) -> None:
    """Neither while it was only read, nor behind a write, nor over many rounds of both."""
    expected = 0
    for number in range(6):
        store = EdgeStore(folder)
        await store.ensure(SCOPE, IDENTITY)
        assert await store.count(ANN, "default") == expected
        if number % 2:
            item = chunk(path=f"src/{number}.py")
            await store.upsert(SCOPE, item.document_id, [indexed(item)])
            if number == 3:
                await store.delete_documents(SCOPE, [chunk(path="src/1.py").document_id])
            expected = number // 4 + 1
        assert store.owner_pid is not None
        os.kill(store.owner_pid, signal.SIGKILL)
        await store.aclose()


def test_a_shard_that_another_opener_holds_is_in_use_and_not_damaged(folder: Path) -> None:
    shard = create_shard(folder / "shard", 4)
    with pytest.raises(StoreInUseError, match="open"):
        open_shard(folder / "shard")
    shard.close()
    open_shard(folder / "shard").close()


@pytest.mark.asyncio
async def test_an_interrupted_creation_or_removal_leaves_no_collection(folder: Path) -> None:
    store = EdgeStore(folder)
    await store.ensure(SCOPE, IDENTITY)
    item = chunk()
    await store.upsert(SCOPE, item.document_id, [indexed(item)])
    await store.aclose()
    # As it stands when the shard is there and its record not yet, or not any more.
    (folder / "default" / "collection.json").unlink()
    store = EdgeStore(folder)
    assert await store.describe("default") is None
    assert await store.count(ANN, "default") == 0
    await store.ensure(SCOPE, IDENTITY)
    assert await store.count(ANN, "default") == 0
    await store.aclose()


# --- before a write

GOOD = chunk(symbol="good")
REFUSED = {
    "no UUID": (replace(GOOD, id="chunk-1"), sparse({1: 1.0})),
    "another spelling": (replace(GOOD, id=GOOD.id.upper()), sparse({1: 1.0})),
    "a lone surrogate in the text": (replace(GOOD, text="\ud800"), sparse({1: 1.0})),
    "a lone surrogate in the path": (replace(GOOD, path="a\udcff.py"), sparse({1: 1.0})),
    "a lone surrogate in a reader": (replace(GOOD, readers=frozenset({"user:\ud800"})), sparse({1: 1.0})),
    "a number past 64 bits": (replace(GOOD, mtime_ns=2**63), sparse({1: 1.0})),
    "a term without weight": (GOOD, SparseVector((1, 2), (1.0,))),
    "terms out of order": (GOOD, SparseVector((2, 1), (1.0, 1.0))),
    "a term twice": (GOOD, SparseVector((1, 1), (1.0, 1.0))),
    "a negative term": (GOOD, SparseVector((-1,), (1.0,))),
    "a term past 32 bits": (GOOD, SparseVector((2**32,), (1.0,))),
    "a weight of nothing": (GOOD, SparseVector((1,), (0.0,))),
    "a weight that is no number": (GOOD, SparseVector((1,), (math.nan,))),
    "a weight past single precision": (GOOD, SparseVector((1,), (1e39,))),
}


@pytest.mark.asyncio
async def test_a_chunk_that_cannot_be_stored_is_refused_before_any_is_written(store: EdgeStore) -> None:
    await store.ensure(SCOPE, IDENTITY)
    first = chunk(symbol="first")
    before = await store.describe("default")
    for reason, (bad, lexical) in REFUSED.items():
        with pytest.raises(StoreError):
            await store.upsert(SCOPE, first.document_id, [indexed(first), IndexedChunk(bad, lexical)])
        assert await store.count(ANN, "default") == 0, reason
    assert await store.describe("default") == before
    await store.upsert(SCOPE, first.document_id, [indexed(first), indexed(GOOD)])
    assert await store.count(ANN, "default") == 2


@pytest.mark.asyncio
async def test_vectors_of_unlike_shape_and_of_another_dimension_are_refused(store: EdgeStore) -> None:
    await store.ensure(SCOPE, IDENTITY)
    await store.upsert(SCOPE, GOOD.document_id, [indexed(GOOD)])
    vectors = {GOOD.id: np.ones(4, dtype=np.float32), str(uuid.uuid4()): np.ones(3, dtype=np.float32)}
    with pytest.raises(StoreError, match=r"shapes \[\(3,\), \(4,\)\]"):
        await store.set_vectors(SCOPE, "body", vectors)
    with pytest.raises(StoreError, match="have 3 numbers, those of the collection 'default' 4"):
        await store.set_vectors(SCOPE, "body", {GOOD.id: np.ones(3, dtype=np.float32)})
    with pytest.raises(StoreError, match="not finite"):
        await store.search(ANN, replace(QUERY, vector=np.full(4, np.nan, dtype=np.float32)))
    with pytest.raises(StoreError, match="not finite"):
        await store.search(ANN, replace(QUERY, lexical=SparseVector((1,), (math.inf,))))
    assert await store.count(ANN, "default", having="body") == 0


def test_the_codec_holds_every_field_of_a_chunk() -> None:
    item = replace(chunk(symbol="Class.method"), commit="abc", readers=frozenset({"user:b", "user:a"}))
    row = to_row(item)
    assert to_chunk(item.corpus, row) == item
    payload = to_payload(row, document_chunks=7)
    assert payload["readers"] == ["user:a", "user:b"]
    assert from_payload(uuid.UUID(item.id), payload) == row
    assert {"id", "corpus", *FIELDS} == set(Chunk.__dataclass_fields__)


# --- documents and statistics


@pytest.mark.asyncio
async def test_a_half_written_document_counts_as_changed(store: EdgeStore) -> None:
    await store.ensure(SCOPE, IDENTITY)
    old = [replace(chunk(text=f"{n}", start=n), content_hash="old", size=1, mtime_ns=1) for n in range(3)]
    await store.upsert(SCOPE, old[0].document_id, [indexed(item) for item in old])
    (whole,) = await store.documents(SCOPE)
    assert whole.content_hash == "old"

    rows = [tuple(to_payload(to_row(item), 3)[field] for field in DOCUMENT_FIELDS) for item in old]
    new = replace(old[0], content_hash="new", size=2, mtime_ns=2)
    changed = tuple(to_payload(to_row(new), 1)[field] for field in DOCUMENT_FIELDS)
    for seen in (rows[:2], [changed, *rows[1:]], [*rows, changed]):
        tally = Tally()
        for row in seen:
            tally.add([row])
        (state,) = tally.states()
        assert (state.content_hash, state.chunk_count) == ("", len(seen))


@pytest.mark.parametrize("total", [1, 2, 10, 999, 100_000, 1_000_000])
def test_a_frequency_follows_exactly_from_its_weight_in_single_precision(total: int) -> None:
    steps = np.unique(np.geomspace(1, total, 300).round().astype(int))
    for held in {*steps.tolist(), total, max(1, total - 1), max(1, total // 2)}:
        # As the engine computes it, in single precision throughout.
        frequency, count = np.float32(held), np.float32(total)
        ratio = (count - frequency + np.float32(0.5)) / (frequency + np.float32(0.5))
        assert frequency_of(float(np.log(ratio + np.float32(1))), total) == held


def test_one_flush_serves_a_batch_and_a_failed_one_fails_it_all(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    collections = Collections(folder)
    edge_writes.ensure(collections, "default", IDENTITY)
    flushes: list[bool] = []
    monkeypatch.setattr(Collections, "flush", lambda _: flushes.append(True))
    item = chunk()
    write: Work = (edge_writes.upsert, ("default", item.document_id, [to_row(item)], [([1], [1.0])]), {})
    replies = answer(collections, [write, (edge_writes.describe, ("nowhere",), {}), write])
    assert (replies, flushes) == ([(True, None)] * 3, [True])

    def disk_full(_: Collections) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Collections, "flush", disk_full)
    replies = answer(collections, [write, write])
    assert [succeeded for succeeded, _ in replies] == [False, False]
    assert all(isinstance(error, StoreFullError) for _, error in replies)
    collections.close()
