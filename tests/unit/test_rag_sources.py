from __future__ import annotations

import asyncio
import math

import pytest

from ragpilot import rag_sources
from ragpilot.config import RagSourceSettings, RetrievalSettings
from ragpilot.errors import ConfigError
from ragpilot.found import Retrieval
from ragpilot.ports import RagSource
from ragpilot.rag_sources import load_sources, register
from ragpilot.retrieval import Retriever
from ragpilot.types import RagRequest, RagResult
from tests.builders import chunk
from tests.corpus import Corpus
from tests.fakes import ANN


class Wiki(RagSource):
    default_min_score = 0.5

    def __init__(self, *results: RagResult) -> None:
        self.results = list(results)
        self.asked: list[RagRequest] = []

    async def search(self, request: RagRequest) -> list[RagResult]:
        self.asked.append(request)
        return self.results


class TextOnly(RagSource):
    async def search_text(self, query: str, max_results: int) -> list[RagResult]:
        return [RagResult(f"{query} {max_results}", 0.9, "wiki/page")]


class Neither(RagSource):
    pass


PAGE = RagResult("the context budget of the wiki", 0.8, "wiki/Budget", title="Budget")


async def searched(
    *sources: RagSource, settings: RetrievalSettings | None = None, min_score: float | None = None
) -> Retrieval:
    corpus = Corpus()
    await corpus.index([chunk("core/prompting.py", "context budget", header="context budget")])
    retriever = Retriever(
        corpus.store,
        corpus.embedder,
        settings or RetrievalSettings(gate="off"),
        identity=corpus.identity,
        sources=[register(f"s{at}", source) for at, source in enumerate(sources)],
    )
    async with asyncio.timeout(10):
        return await retriever.search(ANN, "context budget", corpus="default", min_score=min_score)


def paths(found: Retrieval) -> set[str]:
    return {hit.chunk.path for hit in found.hits}


@pytest.mark.asyncio
async def test_a_further_source_gives_hits_beside_the_index_and_knows_who_asks() -> None:
    wiki = Wiki(PAGE)
    found = await searched(wiki)
    assert paths(found) == {"core/prompting.py", "wiki/Budget"}
    assert wiki.asked[0].actor == ANN
    (hit,) = (hit for hit in found.hits if hit.chunk.path == "wiki/Budget")
    assert (hit.score, hit.chunk.title) == (0.8, "Budget")


@pytest.mark.asyncio
async def test_its_own_floor_holds_unless_one_was_set_by_hand() -> None:
    low = RagResult("the context budget as the wiki has it", 0.45, "wiki/low")
    assert "wiki/low" not in paths(await searched(Wiki(low)))
    below_the_embedders = Wiki(RagResult("the context budget as the wiki has it", 0.3, "wiki/low"))
    below_the_embedders.default_min_score = 0.2
    assert "wiki/low" in paths(await searched(below_the_embedders))
    by_hand = RetrievalSettings(gate="off", min_score=0.4)
    assert "wiki/low" not in paths(await searched(below_the_embedders, settings=by_hand))
    assert "wiki/low" not in paths(await searched(below_the_embedders, min_score=0.6))


@pytest.mark.asyncio
async def test_the_configured_floor_wins_over_the_sources_own() -> None:
    assert register("wiki", Wiki(), min_score=0.1).floor(0.35) == 0.1
    assert register("wiki", Wiki()).floor(0.35) == 0.5
    assert register("text", TextOnly()).floor(0.35) == 0.35


@pytest.mark.asyncio
async def test_nonsense_scores_and_empty_texts_are_dropped() -> None:
    found = await searched(
        Wiki(*(RagResult("x", score, "bad") for score in (math.nan, math.inf, 1.5)), RagResult(" ", 0.9, "bad"))
    )
    assert paths(found) == {"core/prompting.py"}


@pytest.mark.asyncio
async def test_a_source_that_fails_or_hangs_is_left_out_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rag_sources, "SOURCE_SECONDS", 0.05)

    class Broken(RagSource):
        async def search(self, request: RagRequest) -> list[RagResult]:
            raise RuntimeError("password=hunter2")

    class Hangs(RagSource):
        async def search(self, request: RagRequest) -> list[RagResult]:
            await asyncio.Event().wait()
            return []

    found = await searched(Broken(), Hangs())
    assert paths(found) == {"core/prompting.py"}
    assert [warning.split("'")[1] for warning in found.warnings] == ["s0", "s1"]
    assert "hunter2" not in str(found.warnings)


@pytest.mark.asyncio
async def test_each_method_calls_the_other_by_default() -> None:
    (result,) = await TextOnly().search(RagRequest("q", ANN, 3))
    assert result.text == "q 3"
    assert await Wiki(PAGE).search_text("q", 3) == [PAGE]


def test_one_that_overrides_neither_is_refused() -> None:
    with pytest.raises(ConfigError, match="neither"):
        register("wiki", Neither())


@pytest.mark.parametrize(
    ("module", "message"),
    [
        ("tests.unit.test_rag_sources", "names no class"),
        ("tests.unit.nowhere:Wiki", "cannot be loaded"),
        ("tests.unit.test_rag_sources:Absent", "cannot be loaded"),
        ("tests.unit.test_rag_sources:chunk", "no RagSource"),
        ("tests.unit.test_rag_sources:Neither", "neither"),
    ],
)
def test_a_configured_source_that_is_none_is_refused_by_name(module: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_sources([RagSourceSettings(name="wiki", module=module)])


def test_a_configured_source_is_loaded() -> None:
    (found,) = load_sources(
        [RagSourceSettings(name="text", module="tests.unit.test_rag_sources:TextOnly", min_score=0.6)]
    )
    assert (found.name, found.min_score, type(found.source).__name__) == ("text", 0.6, "TextOnly")
