from __future__ import annotations

from dataclasses import replace

import pytest

from ragpilot.adapters.minilm import MiniLmEmbedder
from ragpilot.config import RetrievalSettings, Settings
from ragpilot.errors import EmbedderError, IndexMismatchError
from ragpilot.types import EmbedderIdentity, GateCalibration, IndexIdentity, IngestScope
from tests.builders import chunk
from tests.corpus import Corpus
from tests.fakes import ANN, BOB, NOBODY, OPERATOR, FakeEmbedder, broken_embedder

BUDGET = chunk("core/prompting.py", "def enforce(blocks): context budget tokens are cut here", header="context budget")
RETRY = chunk("net/retry.py", "def backoff(): sleep longer each time", header="net retry backoff")
SECRET = chunk(
    "ops/rotation.py", "context budget of the secret team", header="context budget", readers=frozenset({"user:bob"})
)


async def searched(corpus: Corpus, question: str, actor: object = ANN, **given: object) -> list[str]:
    found = await corpus.retriever.search(actor, question, corpus="default", **given)  # type: ignore[arg-type]
    return [hit.chunk.path for hit in found.hits]


@pytest.mark.asyncio
async def test_the_right_chunk_leads_and_its_score_is_the_raw_cosine() -> None:
    corpus = Corpus()
    await corpus.index([BUDGET, RETRY])
    found = await corpus.retriever.search(ANN, "context budget", corpus="default")
    assert found.hits[0].chunk.id == BUDGET.id
    assert found.hits[0].score == pytest.approx(1.0, abs=1e-6)
    assert [hit.rank for hit in found.hits] == list(range(1, len(found.hits) + 1))


@pytest.mark.asyncio
async def test_what_an_actor_may_not_read_is_not_found() -> None:
    corpus = Corpus()
    await corpus.index([BUDGET, SECRET])
    assert await searched(corpus, "context budget", ANN) == [BUDGET.path]
    assert await searched(corpus, "context budget", BOB) == [SECRET.path]
    assert await searched(corpus, "context budget", NOBODY) == []


@pytest.mark.asyncio
async def test_unreadable_chunks_move_no_score_no_bound_and_no_evidence() -> None:
    alone, beside = Corpus(), Corpus()
    await alone.index([BUDGET, RETRY])
    others = [chunk(f"x{n}.py", f"context budget {n}", readers=frozenset({"user:bob"})) for n in range(30)]
    await beside.index([BUDGET, RETRY, *others])
    first = await alone.retriever.search(ANN, "where is the context budget?", corpus="default")
    second = await beside.retriever.search(ANN, "where is the context budget?", corpus="default")
    assert (first.hits, first.bounds, first.evidence, first.trace) == (
        second.hits,
        second.bounds,
        second.evidence,
        second.trace,
    )


@pytest.mark.asyncio
async def test_hits_under_the_floor_are_dropped_and_become_near_misses() -> None:
    corpus = Corpus(settings=Settings(retrieval=RetrievalSettings(gate="off", min_score=0.999)))
    await corpus.index([RETRY])
    found = await corpus.retriever.search(ANN, "net retry backoff strategy", corpus="default")
    assert found.hits == ()
    assert found.near_misses[0].path == RETRY.path
    assert found.near_misses[0].bound == "floor"
    assert found.near_misses[0].needed == 0.999
    assert found.trace[0]["fate"] == "dropped_by_floor"


@pytest.mark.asyncio
async def test_the_request_can_raise_the_floor_and_never_lower_it() -> None:
    corpus = Corpus()
    await corpus.index([RETRY])
    raised = await corpus.retriever.search(ANN, "backoff strategy", corpus="default", min_score=0.999)
    lowered = await corpus.retriever.search(ANN, "backoff strategy", corpus="default", min_score=-1.0)
    assert (raised.bounds.floor, raised.bounds.floor_origin, raised.hits) == (0.999, "request", ())
    assert lowered.bounds.floor == 0.35


@pytest.mark.asyncio
async def test_a_question_that_fails_the_gate_has_no_hits_and_no_retry() -> None:
    corpus = Corpus(settings=Settings(retrieval=RetrievalSettings(gate=1.3, min_score=0.0)))
    await corpus.index([BUDGET, RETRY])
    found = await corpus.retriever.search(ANN, "context budget", corpus="default")
    assert found.hits == ()
    assert found.bounds.gate == 1.3
    assert found.near_misses[0].bound == "gate"
    assert found.trace[0]["fate"] == "dropped_by_gate"
    assert "retry" not in found.timings


@pytest.mark.asyncio
async def test_what_is_far_from_its_bound_is_no_near_miss() -> None:
    corpus = Corpus()
    await corpus.index([BUDGET, RETRY])
    found = await corpus.retriever.search(ANN, "quagga zebra okapi", corpus="default")
    assert (found.hits, found.near_misses) == ((), ())
    assert found.trace


@pytest.mark.asyncio
async def test_the_gate_counts_the_rare_words_that_one_chunk_holds() -> None:
    corpus = Corpus(settings=Settings(retrieval=RetrievalSettings(gate=0.9, min_score=0.0)))
    await corpus.index([BUDGET, RETRY])
    held = await corpus.retriever.search(ANN, "backoff longer", corpus="default")
    foreign = await corpus.retriever.search(ANN, "backoff zebra stripes quagga", corpus="default")
    assert held.evidence > foreign.evidence


@pytest.mark.asyncio
async def test_the_gate_of_the_embedder_rises_with_what_may_be_read() -> None:
    embedder = FakeEmbedder()
    embedder.gate = GateCalibration(threshold=0.5, per_decade=0.05, reference_chunks=10)
    corpus = Corpus(settings=Settings(), embedder=embedder)
    await corpus.index([chunk(f"f{n}.py", f"text {n}") for n in range(100)])
    found = await corpus.retriever.search(ANN, "text", corpus="default")
    assert found.bounds.gate == 0.55
    assert corpus.retriever.bounds(1).gate == 0.45


@pytest.mark.asyncio
async def test_headers_are_embedded_at_the_question_while_no_vector_is_in() -> None:
    complete, lexical_only = Corpus(), Corpus()
    await complete.index([BUDGET, RETRY], bodies=False)
    await lexical_only.index([BUDGET, RETRY], headers=False, bodies=False)
    expected = await complete.retriever.search(ANN, "context budget", corpus="default")
    found = await lexical_only.retriever.search(ANN, "context budget", corpus="default")
    assert [(hit.chunk.id, round(hit.score, 6)) for hit in found.hits] == [
        (hit.chunk.id, round(hit.score, 6)) for hit in expected.hits
    ][: len(found.hits)]
    embedder = lexical_only.embedder
    assert isinstance(embedder, FakeEmbedder)
    count = embedder.documents_embedded
    await lexical_only.retriever.search(ANN, "context budget", corpus="default")
    assert embedder.documents_embedded == count


@pytest.mark.asyncio
async def test_fewer_hits_than_wanted_bring_one_deeper_search(monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = Corpus()
    await corpus.index([chunk(f"f{n}.py", f"needle {n} and {n * n}", header=f"needle {n}") for n in range(1000)])
    depths: list[int] = []
    search = corpus.store.search

    async def recording(actor: object, query: object) -> object:
        depths.append(query.dense_limit)  # type: ignore[attr-defined]
        return await search(actor, query)  # type: ignore[arg-type]

    monkeypatch.setattr(corpus.store, "search", recording)
    await corpus.retriever.search(ANN, "needle zebra quagga", corpus="default", min_score=0.99)
    assert depths == [100, 400]


@pytest.mark.asyncio
async def test_top_k_bounds_the_hits() -> None:
    corpus = Corpus()
    await corpus.index([chunk(f"f{n}.py", f"needle {n} {n * n}", header="needle") for n in range(30)])
    assert len(await searched(corpus, "needle")) == 8
    assert len(await searched(corpus, "needle", top_k=3)) == 3
    assert len(await searched(corpus, "needle", top_k=50)) == 30


@pytest.mark.asyncio
async def test_small_talk_reaches_neither_embedder_nor_store() -> None:
    corpus = Corpus(embedder=broken_embedder())
    assert await searched(corpus, "hello there!") == []
    found = await corpus.searcher.search(ANN, "hello there!")
    assert (found["hits"], found["warnings"]) == ([], [])


@pytest.mark.asyncio
async def test_an_index_of_another_embedder_is_refused_by_name_even_with_equal_dimensions() -> None:
    corpus = Corpus()
    other = IndexIdentity(EmbedderIdentity("other-model", 64), "test")
    await corpus.store.ensure(IngestScope(OPERATOR, "default"), other)
    with pytest.raises(IndexMismatchError, match="other-model") as caught:
        await searched(corpus, "context budget")
    assert "ragpilot index --rebuild" in caught.value.hint


@pytest.mark.asyncio
async def test_an_index_that_was_cut_otherwise_is_refused_until_a_run_cuts_it_anew() -> None:
    corpus = Corpus()
    await corpus.store.ensure(IngestScope(OPERATOR, "default"), replace(corpus.identity, chunker="earlier"))
    with pytest.raises(IndexMismatchError, match="earlier") as caught:
        await searched(corpus, "context budget")
    assert caught.value.hint.startswith("`ragpilot index` cuts it anew")


@pytest.mark.asyncio
async def test_a_missing_collection_finds_nothing() -> None:
    assert await searched(Corpus(), "context budget") == []


@pytest.mark.asyncio
async def test_a_failing_embedder_is_an_error_not_an_empty_answer() -> None:
    with pytest.raises(EmbedderError):
        await searched(Corpus(embedder=broken_embedder()), "context budget")


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "question",
    ["'", '"foo" OR bar*', "NEAR(", "SELECT * FROM x; --", "🦊 ¿dónde?", "def f():\n  pass\n" * 300, "\ud800", "\0"],
)
async def test_odd_questions_are_questions(question: str) -> None:
    corpus = Corpus()
    await corpus.index([BUDGET, RETRY])
    found = await corpus.retriever.search(ANN, question, corpus="default")
    assert len(found.hits) <= 2


@pytest.mark.asyncio
async def test_what_a_question_names_passes_by_its_name() -> None:
    """Vectors of a definition say what it is about; its bare name can be far from that."""
    corpus = Corpus(settings=Settings(), embedder=MiniLmEmbedder())
    url_for = chunk(
        "web/helpers.py",
        "def url_for(endpoint): ...",
        symbol="url_for",
        header="web helpers: the address of an endpoint",
    )
    await corpus.index([url_for, BUDGET, RETRY])
    by_name = await corpus.retriever.search(ANN, "url_for", corpus="default")
    assert by_name.hits[0].chunk.id == url_for.id
    assert by_name.hits[0].score == pytest.approx(1.0, abs=1e-3)
    asked = await corpus.retriever.search(ANN, "where is url_for defined?", corpus="default")
    assert asked.hits[0].chunk.id == url_for.id
    assert 0.5 < asked.hits[0].score < 1.0
    unknown = await corpus.retriever.search(ANN, "send_parcel", corpus="default")
    assert unknown.hits == ()
    foreign = await corpus.retriever.search(NOBODY, "url_for", corpus="default")
    assert foreign.hits == ()
    await corpus.embedder.aclose()
