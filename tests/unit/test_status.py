from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ragpilot.config import CorpusSettings, Settings
from ragpilot.errors import PermissionDeniedError, StoreError, UnknownCorpusError, UnknownSourceError
from ragpilot.ingest.read import content_hash
from ragpilot.types import Actor, CollectionInfo, IngestScope
from tests.builders import chunk
from tests.corpus import Corpus, two_corpora
from tests.fakes import ANN, BOB, NOBODY, OPERATOR, FakeEmbedder, MemoryStore, broken_embedder

MINE = chunk("a.py", "mine", indexed_at=1_700_000_000)
BOBS = chunk("b.md", "bobs", source_type="docs-markdown", readers=frozenset({"user:bob"}), indexed_at=1_800_000_000)


@pytest.mark.asyncio
async def test_statistics_hold_what_the_actor_may_read_and_nothing_more() -> None:
    corpus = Corpus()
    await corpus.index([MINE, BOBS], bodies=False)
    stats = await corpus.status.stats(ANN)
    assert (stats.point_count, stats.documents, stats.header_share, stats.body_share) == (1, 1, 1.0, 0.0)
    assert stats.chunks_by_source_type == {"code-python": 1}
    assert stats.last_ingestion_time is not None
    assert stats.last_ingestion_time.timestamp() == 1_700_000_000
    nothing = await corpus.status.stats(NOBODY)
    assert (nothing.point_count, nothing.last_ingestion_time, nothing.chunks_by_source_type) == (0, None, {})


@pytest.mark.asyncio
async def test_what_is_left_out_is_for_those_who_ingest_and_for_all_where_there_are_no_actors() -> None:
    async def left_out(actor: Actor, corpus: CorpusSettings) -> dict[str, int]:
        return {"binary": 3} if actor == OPERATOR else {}

    actors = [{"name": "ann", "tokens": ["env:ANN_TOKEN"]}]
    corpus = Corpus(left_out=left_out, settings=Settings.model_validate({"actors": actors}))
    await corpus.index([MINE])
    assert (await corpus.status.stats(OPERATOR)).left_out == {"binary": 3}
    assert (await corpus.status.stats(ANN)).left_out is None
    assert (await Corpus(left_out=left_out).status.stats(ANN)).left_out == {}


@pytest.mark.asyncio
async def test_corpora_are_listed_to_those_who_may_know_of_them() -> None:
    corpus = Corpus(settings=two_corpora())
    assert [info.name for info in await corpus.status.corpora(ANN)] == ["open"]
    assert [info.name for info in await corpus.status.corpora(BOB)] == ["secret"]
    assert await corpus.status.corpora(NOBODY) == []


@pytest.mark.asyncio
async def test_who_may_not_ask_is_refused_here_and_not_only_at_the_door() -> None:
    corpus = Corpus()
    await corpus.index([MINE])
    mute = Actor("mute", ANN.principals, frozenset({"ingest", "admin"}))
    for asked in (corpus.status.stats(mute), corpus.status.corpora(mute), corpus.status.source(mute, None, MINE.id)):
        with pytest.raises(PermissionDeniedError, match="'ask'"):
            await asked


@pytest.mark.asyncio
async def test_who_may_know_of_no_corpus_is_told_no_name_of_one() -> None:
    corpus = Corpus(settings=two_corpora())
    await corpus.index([MINE])
    stats = await corpus.status.stats(NOBODY)
    assert (stats.corpus, stats.point_count, stats.documents) == ("", 0, 0)
    with pytest.raises(UnknownSourceError, match=f"^There is no source '{MINE.id}'\\.$"):
        await corpus.status.source(NOBODY, None, MINE.id)
    for name in ("none", "secret", ""):
        with pytest.raises(UnknownCorpusError):
            await corpus.status.stats(NOBODY, name)


@pytest.mark.asyncio
async def test_a_source_comes_with_the_lines_around_it(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text("\n".join(f"line {n}" for n in range(1, 21)), encoding="utf-8")
    item = chunk("a.py", "line 8\nline 9", start=8, end=9, mtime_ns=file.stat().st_mtime_ns)
    item = replace(item, size=file.stat().st_size, content_hash=content_hash(file.read_bytes()))
    corpus = Corpus(files={"a.py": file})
    await corpus.index([item])
    source = await corpus.status.source(ANN, None, item.id, context=3)
    assert (source.before, source.text, source.after, source.first_line) == (
        "line 5\nline 6\nline 7",
        "line 8\nline 9",
        "line 10\nline 11\nline 12",
        5,
    )
    assert not source.source.stale


@pytest.mark.asyncio
async def test_a_changed_file_gives_the_indexed_text_alone(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text("changed", encoding="utf-8")
    corpus = Corpus(files={"a.py": file})
    await corpus.index([MINE])
    source = await corpus.status.source(ANN, None, MINE.id)
    assert (source.before, source.text, source.after, source.source.stale) == ("", "mine", "", True)


@pytest.mark.asyncio
async def test_an_unreadable_source_does_not_exist() -> None:
    corpus = Corpus()
    await corpus.index([MINE, BOBS])
    with pytest.raises(UnknownSourceError) as hidden:
        await corpus.status.source(ANN, None, BOBS.id)
    with pytest.raises(UnknownSourceError) as missing:
        await corpus.status.source(ANN, None, "nonsense")
    assert str(hidden.value).replace(BOBS.id, "nonsense") == str(missing.value)


@pytest.mark.asyncio
async def test_health_names_store_embedder_and_model() -> None:
    health = await Corpus(embedder=broken_embedder()).status.health()
    assert {name: part.ok for name, part in health.items()} == {"store": True, "embedder": False, "model": True}


@pytest.mark.asyncio
@pytest.mark.parametrize("dimensions", [64, 32])
async def test_an_index_of_another_embedder_is_not_well_and_names_both(dimensions: int) -> None:
    before = Corpus(embedder=FakeEmbedder(name="former"))
    await before.index([MINE])
    assert set(await before.status.health()) == {"store", "embedder", "model"}
    now = Corpus(embedder=FakeEmbedder(dimensions, name="present"), store=before.store)
    words = (
        "the index was built with former (64 dimensions); configured is "
        f"present ({dimensions} dimensions): `ragpilot index --rebuild`"
    )
    health = await now.status.health()
    assert health["store"].ok
    assert (health["index"].ok, health["index"].detail) == (False, f"Corpus default: {words}")
    stats = await now.status.stats(ANN)
    assert (stats.embedder.name, stats.misfit) == ("former", words)
    [info] = await now.status.corpora(ANN)
    assert (info.embedder, info.dimensions) == ("former", 64)
    assert (await before.status.stats(ANN)).misfit is None


@pytest.mark.asyncio
async def test_a_store_that_cannot_open_an_index_is_not_well() -> None:
    class Foreign(MemoryStore):
        async def describe(self, corpus: str) -> CollectionInfo | None:
            raise StoreError("The collection was not made by RagPilot.", hint="Name another prefix.")

    health = await Corpus(store=Foreign()).status.health()
    told = (health["store"].ok, health["store"].detail)
    assert told == (False, "The collection was not made by RagPilot. Name another prefix.")
    assert "index" not in health


@pytest.mark.asyncio
async def test_an_index_that_an_earlier_chunker_has_cut_is_told_with_the_command_that_cuts_it_anew() -> None:
    corpus = Corpus()
    await corpus.index([MINE])
    await corpus.store.adopt_chunker(IngestScope(OPERATOR, "default"), "0;max_chars=1000")
    detail = (await corpus.status.health())["index"].detail
    assert detail.startswith("Corpus default: the index was cut into passages by other rules (0;max_chars=1000) than ")
    assert detail.endswith(": `ragpilot index` cuts it anew")
    assert (await corpus.status.stats(ANN)).misfit == detail.removeprefix("Corpus default: ")
