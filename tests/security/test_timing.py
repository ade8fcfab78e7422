"""How long an actor waits does not tell what else is indexed: the same work is done for him, whatever that is.

What is compared is the work, call by call; a clock is only asked whether a refusal over ten thousand foreign chunks
takes grossly longer than one over none.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import pytest

from ragpilot.answering import AskService
from ragpilot.freshness import Freshness
from ragpilot.retrieval import Retriever
from ragpilot.types import Actor, Chunk, StoreQuery, Vector
from tests.builders import chunk, request
from tests.contract.folders import quick_folder
from tests.fakes import FakeEmbedder, FakeTokenCounter, MemoryStore
from tests.security.doors import DOCUMENTS, HOLDS, MAY, EchoModel, World, readable, settings
from tests.security.worlds import ANN, BOB, NOBODY, Held, Index, gated_embedder, inline_edge, whole

QUESTIONS = (
    "where is the budget of a retry?",
    "budget",
    "how do I bake bread at home?",
    "hello",
    "CANARYBOB CANARYOPS",
)


class Watched(MemoryStore):
    """Notes what it is asked for by readers."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[Any, ...]] = []

    async def search(self, actor: Actor, query: StoreQuery) -> Any:
        self.asked.append(("search", actor, query.corpus, query.dense_limit, query.lexical_limit, query.lexical))
        return await super().search(actor, query)

    async def term_statistics(self, actor: Actor, corpus: str, terms: Sequence[int]) -> Any:
        self.asked.append(("terms", actor, corpus, tuple(terms)))
        return await super().term_statistics(actor, corpus, terms)

    async def get(self, actor: Actor, corpus: str, chunk_id: str) -> Chunk | None:
        self.asked.append(("get", actor, corpus, chunk_id))
        return await super().get(actor, corpus, chunk_id)


class WatchedEmbedder(FakeEmbedder):
    """Notes what it embeds."""

    def __init__(self) -> None:
        super().__init__(64)
        self.gate = gated_embedder().gate
        self.embedded: list[str] = []

    async def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        self.embedded += texts
        return await super().embed_documents(texts)


async def work(actor: Actor, documents: list[Chunk], question: str) -> tuple[list[Any], list[str], list[str], int]:
    """What one question makes a server do: calls of the store, texts embedded, questions embedded, prompts."""
    world = World(Watched())
    await world.fill(documents)
    embedder = WatchedEmbedder()
    retriever = Retriever(world.store, embedder, world.settings.retrieval, identity=world.identity)
    chat = EchoModel(context_window=200_000)
    asker = AskService(retriever, chat, FakeTokenCounter(), settings(), Freshness(lambda *_: None))
    await asker.query(actor, request(question))
    assert isinstance(world.store, Watched)
    return world.store.asked, embedder.embedded, embedder.questions, len(chat.prompts)


@pytest.mark.asyncio
@pytest.mark.parametrize("kind", MAY)
@pytest.mark.parametrize("question", QUESTIONS)
async def test_a_question_causes_the_same_work_whatever_else_is_indexed(kind: str, question: str) -> None:
    actor = Actor(kind, HOLDS[kind] or frozenset())
    alone = await work(actor, readable(kind), question)
    beside = await work(actor, DOCUMENTS, question)
    assert alone == beside
    assert len(alone[2]) == (question != "hello")


@pytest.mark.asyncio
async def test_what_one_actor_was_shown_is_not_there_sooner_for_another() -> None:
    """The same words, in a document of ann's and in one of bob's, whose header vectors are not in yet."""

    async def embedded_for_bob(*, ann_first: bool) -> tuple[list[str], list[str]]:
        embedder = WatchedEmbedder()
        index = Index(MemoryStore(), embedder)
        await index.open()
        for name in ("ann", "bob"):
            item = chunk(f"{name}.py", "retry", header="budget retry", readers=frozenset({f"user:{name}"}))
            await index.put(Held([item]))
        retriever = index.retriever()
        if ann_first:
            await retriever.search(ANN, "budget retry", corpus=index.corpus)
        before = len(embedder.embedded)
        for _ in range(2):
            await retriever.search(BOB, "budget retry", corpus=index.corpus)
        return embedder.embedded[:before], embedder.embedded[before:]

    assert await embedded_for_bob(ann_first=False) == ([], ["budget retry"])
    assert await embedded_for_bob(ann_first=True) == (["budget retry"], ["budget retry"])


async def quickest(index: Index, actor: Actor, question: str) -> float:
    """Seconds of the quickest of many tries: what a machine can do, however busy it is."""
    retriever = index.retriever()
    best = float("inf")
    for _ in range(40):
        began = time.perf_counter()
        await retriever.search(actor, question, corpus=index.corpus)
        best = min(best, time.perf_counter() - began)
    return best


@pytest.mark.asyncio
async def test_a_refusal_takes_not_grossly_longer_over_ten_thousand_foreign_chunks(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    seconds = []
    for documents in (0, 100):
        with quick_folder(tmp_path_factory) as folder:
            index = Index(inline_edge(folder), gated_embedder())
            await index.open()
            for number in range(documents):
                readers = frozenset({"user:bob", "team:ops"})
                passages = [
                    chunk(f"d{number}.py", f"budget retry {at}", start=at + 1, end=at + 1, readers=readers)
                    for at in range(100)
                ]
                await index.put(whole(passages))
            found = await index.retriever().search(NOBODY, "budget retry", corpus=index.corpus)
            assert (found.hits, found.readable) == ((), 0)
            seconds.append(await quickest(index, NOBODY, "budget retry"))
            await index.store.aclose()
    assert seconds[1] < 5 * seconds[0] + 0.003
