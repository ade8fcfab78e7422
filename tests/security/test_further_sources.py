"""Sources beside the index are told who asks; one that knows no actors is for those who hold ``team:everyone``."""

from __future__ import annotations

import pytest

from ragpilot.config import RetrievalSettings
from ragpilot.ports import RagSource
from ragpilot.rag_sources import register
from ragpilot.retrieval import Retriever
from ragpilot.types import Actor, RagRequest, RagResult
from tests.fakes import MemoryStore
from tests.security.worlds import ACTORS, ANN, Index, gated_embedder

EVERYONE = Actor("eve", frozenset({"team:everyone"}))


class Wiki(RagSource):
    """Gives the same page to whoever it is asked for."""

    async def search_text(self, query: str, max_results: int) -> list[RagResult]:
        return [RagResult("budget retry", 0.99, "wiki/budget")]


class Tickets(RagSource):
    """Gives to each the tickets of his own."""

    async def search(self, request: RagRequest) -> list[RagResult]:
        return [RagResult("budget retry", 0.99, f"tickets/{name}") for name in sorted(request.actor.principals)]


async def found(source: RagSource, actor: Actor) -> list[str]:
    index = Index(MemoryStore(), gated_embedder())
    await index.open()
    retriever = Retriever(
        index.store,
        index.embedder,
        RetrievalSettings(gate="off"),
        identity=index.identity,
        sources=[register("further", source)],
    )
    result = await retriever.search(actor, "budget retry", corpus=index.corpus)
    return [hit.chunk.path for hit in result.hits]


@pytest.mark.asyncio
async def test_a_source_that_knows_no_actors_is_for_those_who_are_everyone() -> None:
    assert await found(Wiki(), EVERYONE) == ["wiki/budget"]
    for actor in ACTORS:
        assert await found(Wiki(), actor) == []


@pytest.mark.asyncio
async def test_a_source_that_knows_actors_is_told_who_asks() -> None:
    assert await found(Tickets(), EVERYONE) == ["tickets/team:everyone"]
    # Alike passages of two places are one hit.
    assert await found(Tickets(), ANN) == ["tickets/team:core"]
