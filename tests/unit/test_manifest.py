"""The manifest is a cache: what it says is checked, and whatever happens to its file, nothing is lost."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ragpilot.errors import StateError, StateFullError
from ragpilot.ingest.embedding_cache import EmbeddingCache
from ragpilot.ingest.manifest import FILE_NAME, Manifest, Row, left_out
from ragpilot.ingest.reasons import Reason
from ragpilot.types import DocumentState, EmbedderIdentity, LeftOut, Vector

EVERYONE = frozenset({"team:everyone"})
ROW = Row(
    "a.py", "id-a", 10_000_000_001, 5, 20_000_000_000, "hash", 2, EVERYONE, "c0ffee", "", "", ("jwt",), "code", "1"
)
LEFT = Row("b.bin", "id-b", 1, 2, 3, outcome=Reason.BINARY, detail="x", rules="1")


@pytest.fixture
def manifest(tmp_path: Path) -> Iterator[Manifest]:
    with Manifest(tmp_path / "state") as opened:
        yield opened


def state_of(row: Row) -> DocumentState:
    return DocumentState(row.document_id, row.path, row.content_hash, row.mtime_ns, row.size, row.chunks, row.readers)


def test_rows_come_back_whole(manifest: Manifest, tmp_path: Path) -> None:
    assert manifest.revision("x") is None
    manifest.record("x", 7, rows=[ROW, LEFT])
    manifest.record("y", 1, rows=[replace(ROW, chunks=9)])
    assert manifest.rows("x") == {"a.py": ROW, "b.bin": LEFT}
    assert manifest.revision("x") == 7
    with Manifest(tmp_path / "state") as second:
        assert second.rows("x") == manifest.rows("x")
    manifest.record("x", 8, gone=["b.bin"])
    assert list(manifest.rows("x")) == ["a.py"]
    manifest.forget("x")
    assert (manifest.rows("x"), manifest.revision("x")) == ({}, None)
    assert manifest.rows("y")["a.py"].chunks == 9


def test_what_a_run_left_out_stands_instead_of_what_was_left_out_there(manifest: Manifest, tmp_path: Path) -> None:
    def counted() -> dict[str, int]:
        assert left_out(tmp_path / "state", "x") == manifest.left_out("x")
        return manifest.left_out("x")

    items = [LeftOut("a/b/", "ignored"), LeftOut("a/c.bin", "binary"), LeftOut("ab", "binary"), LeftOut("a", "empty")]
    manifest.record_left_out("x", items, scopes=[""])
    manifest.record_left_out("y", items, scopes=["a", "ab"])
    assert counted() == {"binary": 2, "empty": 1, "ignored": 1}
    manifest.record_left_out("x", [], scopes=["a"])
    assert counted() == {"binary": 1}
    manifest.record_left_out("x", [LeftOut("ab", "data")], scopes=["ab", "c%_"])
    assert counted() == {"data": 1}
    manifest.forget("x")
    assert counted() == {"data": 1}
    assert manifest.left_out("y") == {"binary": 2, "empty": 1, "ignored": 1}
    assert left_out(tmp_path / "none", "x") == {}
    assert not (tmp_path / "none").exists()


def test_a_stat_must_be_older_than_the_reading() -> None:
    """A file written again within its timestamp's grain shows no change; such a row is not trusted."""
    second = 1_000_000_000
    fine = replace(ROW, mtime_ns=10 * second + 1, checked_ns=10 * second + 2)
    assert not fine.unchanged(fine.mtime_ns, 5)
    assert replace(fine, checked_ns=11 * second).unchanged(fine.mtime_ns, 5)
    coarse = replace(ROW, mtime_ns=10 * second, checked_ns=11 * second)
    assert not coarse.unchanged(coarse.mtime_ns, 5)
    assert replace(coarse, checked_ns=13 * second).unchanged(coarse.mtime_ns, 5)
    assert replace(fine, checked_ns=11 * second).unchanged(fine.mtime_ns, 5, 11 * second - 1)
    assert not replace(fine, checked_ns=11 * second).unchanged(fine.mtime_ns, 5, 12 * second)
    assert not replace(fine, checked_ns=11 * second).unchanged(fine.mtime_ns, 6)
    assert not replace(fine, checked_ns=11 * second).unchanged(fine.mtime_ns + 1, 5)


def test_rebuilding_keeps_what_the_store_confirms(manifest: Manifest) -> None:
    gone, changed, torn = (replace(ROW, path=path, document_id=path) for path in ("gone.py", "changed.py", "torn.py"))
    manifest.record("x", 1, rows=[ROW, LEFT, gone, changed, torn])
    held = [
        replace(state_of(ROW), readers=frozenset({"team:new"})),
        replace(state_of(changed), content_hash="other"),
        replace(state_of(torn), content_hash="", chunk_count=1),
        replace(state_of(ROW), path="new.py", document_id="id-new"),
    ]
    rows = manifest.rebuild("x", held, 5)
    assert rows == manifest.rows("x")
    assert manifest.revision("x") == 5
    assert set(rows) == {"a.py", "b.bin", "changed.py", "torn.py", "new.py"}
    assert rows["a.py"] == replace(ROW, readers=frozenset({"team:new"}))
    for path in ("changed.py", "torn.py", "new.py"):
        assert not rows[path].unchanged(rows[path].mtime_ns, rows[path].size)
        assert rows[path].rules == ""


@pytest.mark.parametrize("damage", ["garbage", "cut", "empty", "other tables", "another version"])
def test_a_damaged_file_is_made_anew(damage: str, tmp_path: Path) -> None:
    file = tmp_path / FILE_NAME
    with Manifest(tmp_path) as manifest:
        manifest.record("x", 1, rows=[replace(ROW, path=f"{number}.py") for number in range(2000)])
    match damage:
        case "garbage":
            file.write_bytes(b"this is no database" * 1000)
        case "cut":
            file.write_bytes(file.read_bytes()[:20_000])
        case "empty":
            file.write_bytes(b"")
        case _:
            file.unlink()
            connection = sqlite3.connect(file)
            connection.executescript(f"CREATE TABLE t (x); PRAGMA user_version = {99 if 'version' in damage else 0};")
            connection.close()
    with Manifest(tmp_path) as manifest:
        assert (manifest.rows("x"), manifest.revision("x")) == ({}, None)
        manifest.record("x", 2, rows=[ROW])
        assert manifest.rows("x") == {"a.py": ROW}


def test_a_file_that_cannot_be_used_is_said(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).mkdir()
    with pytest.raises(StateError, match="cannot be used"):
        Manifest(tmp_path)


def test_threads_take_turns(manifest: Manifest) -> None:
    def work(number: int) -> None:
        for step in range(20):
            manifest.record("x", step, rows=[replace(ROW, path=f"{number}-{step}")])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(manifest.rows("x")) == 80


# --- the embedding cache

IDENTITY = EmbedderIdentity("fake", 4)


def vector(*numbers: float) -> Vector:
    return np.asarray(numbers, dtype=np.float32)


def test_vectors_come_back_exactly_and_by_embedder(tmp_path: Path) -> None:
    cache = EmbeddingCache(tmp_path, IDENTITY)
    cache.put({"a": vector(0.1, 0.2, 0.3, 0.4), "b": vector(1, 0, 0, 0)})
    cache.close()
    again = EmbeddingCache(tmp_path, IDENTITY)
    found = again.get(["a", "c", "b", "a"])
    assert set(found) == {"a", "b"}
    assert np.array_equal(found["a"], vector(0.1, 0.2, 0.3, 0.4))
    again.close()
    other = EmbeddingCache(tmp_path, replace(IDENTITY, document_prefix="passage: "))
    assert other.get(["a", "b"]) == {}
    other.close()


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE vectors SET vector = CAST(x'0000c03f' || substr(vector, 5) AS BLOB) WHERE rowid = 2",
        "UPDATE vectors SET vector = CAST(x'0000c07f' || substr(vector, 5) AS BLOB) WHERE rowid = 2",
        "UPDATE vectors SET vector = substr(vector, 1, 12) WHERE rowid = 2",
        "UPDATE vectors SET vector = 'words' WHERE rowid = 2",
        "UPDATE vectors SET checksum = zeroblob(8) WHERE rowid = 2",
        # Another text's vector, with the checksum that it has there.
        "UPDATE vectors SET (vector, checksum) = (SELECT vector, checksum FROM vectors WHERE rowid = 1) "
        "WHERE rowid = 2",
    ],
)
def test_an_entry_that_was_damaged_is_not_given_and_can_be_put_again(damage: str, tmp_path: Path) -> None:
    cache = EmbeddingCache(tmp_path, IDENTITY)
    cache.put({"a": vector(0.1, 0.2, 0.3, 0.4), "b": vector(1, 0, 0, 0)})
    cache.close()
    with closing(sqlite3.connect(tmp_path / "embeddings.sqlite3")) as opened, opened:
        assert opened.execute(damage).rowcount == 1
    again = EmbeddingCache(tmp_path, IDENTITY)
    assert set(again.get(["a", "b"])) == {"a"}
    again.put({"b": vector(1, 0, 0, 0)})
    assert set(again.get(["a", "b"])) == {"a", "b"}
    again.close()


def test_the_cache_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr("ragpilot.ingest.embedding_cache.time.time", lambda: now)
    cache = EmbeddingCache(tmp_path, IDENTITY, most_bytes=10 * (4 * 4 + 100))
    cache.put({f"old {number}": vector(1, 0, 0, number) for number in range(10)})
    now = 2000.0
    cache.get(["old 3"])
    cache.put({f"new {number}": vector(0, 1, 0, number) for number in range(9)})
    cache.trim()
    kept = cache.get([*(f"old {n}" for n in range(10)), *(f"new {n}" for n in range(9))])
    assert set(kept) == {"old 3", *(f"new {n}" for n in range(9))}
    cache.close()


def test_a_cache_that_fails_is_gone_without(tmp_path: Path) -> None:
    (tmp_path / "embeddings.sqlite3").mkdir()
    cache = EmbeddingCache(tmp_path, IDENTITY)
    cache.put({"a": vector(1, 0, 0, 0)})
    assert cache.get(["a"]) == {}
    cache.trim()
    cache.close()


# --- on a full disk


def leave_free(monkeypatch: pytest.MonkeyPatch, size: int | None) -> None:
    for module in ("database", "embedding_cache"):
        monkeypatch.setattr(f"ragpilot.ingest.{module}.free_bytes", lambda _: size)


def test_on_a_full_disk_a_copy_is_worked_on_and_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Manifest(tmp_path) as manifest:
        manifest.record("x", 7, rows=[ROW])
        manifest.record_left_out("x", [LeftOut("b.bin", "binary")], scopes=[""])
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    leave_free(monkeypatch, 0)
    with Manifest(tmp_path) as copy:
        assert copy.rows("x") == {"a.py": ROW}
        assert copy.revision("x") == 7
        copy.record("x", 8, rows=[LEFT])
        assert copy.rows("x") == {"a.py": ROW, "b.bin": LEFT}
    assert left_out(tmp_path, "x") == {"binary": 1}
    # Not a byte was written, nor a file beside it made.
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before
    leave_free(monkeypatch, None)
    with Manifest(tmp_path) as manifest:
        assert (manifest.rows("x"), manifest.revision("x")) == ({"a.py": ROW}, 7)


def test_on_a_full_disk_a_file_that_a_kill_has_left_agrees_with_no_revision(
    manifest: Manifest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest.record("x", 7, rows=[ROW])  # still in the log beside the file
    leave_free(monkeypatch, 0)
    with Manifest(tmp_path / "state") as copy:
        assert (copy.rows("x"), copy.revision("x")) == ({}, None)
        assert copy.rebuild("x", [state_of(ROW)], 7)["a.py"].content_hash == ROW.content_hash


def test_a_damaged_file_is_no_obstacle_on_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / FILE_NAME).write_bytes(b"not a database" * 1000)
    leave_free(monkeypatch, 0)
    with Manifest(tmp_path) as copy:
        assert copy.rows("x") == {}


def test_a_disk_that_fills_meanwhile_is_told_with_folder_and_bytes(
    manifest: Manifest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest.record("x", 7, rows=[ROW])
    leave_free(monkeypatch, 3_000)
    monkeypatch.setattr("ragpilot.files.free_bytes", lambda _: 3_000)
    with pytest.raises(StateFullError) as caught:
        manifest.record("x", 8, gone=["a.py"])
    assert f"the disk of {tmp_path / 'state'} is full, 3.0 kB are free" in caught.value.message
    assert "RAGPILOT_HOME" in caught.value.hint
    leave_free(monkeypatch, None)
    assert (manifest.rows("x"), manifest.revision("x")) == ({"a.py": ROW}, 7)


def test_what_the_database_says_of_a_full_disk_is_told_as_such(manifest: Manifest) -> None:
    with manifest._database.transaction() as connection:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages}")  # its own way of having no more room
    with pytest.raises(StateFullError):
        manifest.record_left_out("x", [LeftOut("p" * 1000, "binary")] * 1000, scopes=[""])
    assert manifest.left_out("x") == {}


def test_the_cache_leaves_the_last_of_the_disk_to_the_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = EmbeddingCache(tmp_path, IDENTITY)
    cache.put({"a": vector(1, 0, 0, 0)})
    leave_free(monkeypatch, 100_000_000)
    cache.put({"b": vector(0, 1, 0, 0)})
    assert set(cache.get(["a", "b"])) == {"a"}
    leave_free(monkeypatch, 0)
    assert cache.get(["a"]) == {}
    leave_free(monkeypatch, None)
    cache.close()
    again = EmbeddingCache(tmp_path, IDENTITY)
    assert set(again.get(["a", "b"])) == {"a"}
    again.close()
