"""Whatever is written, changed, granted and removed: an actor gets what a store would give that holds nothing else.

A state machine writes to a store and keeps its own account of it. At each question a second store is made that holds
only what the actor may read, and every read of the two must give the same: ids, order and scores, dense, lexical and
fused, counts, statistics and times. So what cannot be read has no influence, and what can be read is found.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from ragpilot.adapters.edge_store import EdgeStore
from ragpilot.ports import ChunkStore
from ragpilot.types import Actor, Candidate, StoreQuery, TermStatistics
from tests.builders import chunk
from tests.fakes import VECTOR_NAMES, MemoryStore
from tests.security.worlds import ACTORS, PRINCIPALS, Held, Index, gated_embedder, inline_edge, memory_folder, readable

WORDS = ("retry", "budget", "token", "parser", "cache", "walk")
STEPS_AT_LEAST = 10_000

names = st.sampled_from([f"src/f{number}.py" for number in range(9)])
some_words = st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join)
granted = st.frozensets(st.sampled_from(PRINCIPALS), max_size=3)
passages = st.lists(st.tuples(some_words, some_words), min_size=1, max_size=3, unique=True)
actors = st.sampled_from(ACTORS)

Open = Callable[..., ChunkStore]


class Scoped(RuleBasedStateMachine):
    """Writes to one store, and compares each read with a store of only what the actor may read."""

    open_store: ClassVar[Open] = inline_edge
    open_twin: ClassVar[Open] = inline_edge
    steps: ClassVar[int] = 0
    questions: ClassVar[int] = 0

    def __init__(self) -> None:
        super().__init__()
        self.held = ExitStack()
        self.folder = Path(self.held.enter_context(tempfile.TemporaryDirectory(dir=memory_folder())))
        self.loop = self.held.enter_context(asyncio.Runner())
        self.documents: dict[str, Held] = {}
        self.clock = itertools.count(1_700_000_000)
        self.twins = itertools.count()

    @initialize()
    def start(self) -> None:
        self.index = Index(type(self).open_store(self.folder / "store"), gated_embedder())
        self.loop.run(self.index.open())
        # Kept from question to question, so that what it remembers for one actor could reach another.
        self.retriever = self.index.retriever()

    @rule(name=names, readers=granted, told=passages, headers=st.booleans(), bodies=st.booleans())
    def put(self, name: str, readers: frozenset[str], told: list[tuple[str, str]], headers: bool, bodies: bool) -> None:
        self.count()
        now = next(self.clock)
        chunks = [
            chunk(name, text, header=header, start=at * 10 + 1, end=at * 10 + 5, readers=readers, indexed_at=now)
            for at, (header, text) in enumerate(told)
        ]
        kept = {item.id for item in chunks}
        before = self.documents.get(name)
        # Chunks that stay keep the vectors that they had.
        having = {each: set(kept & before.having[each]) if before else set[str]() for each in VECTOR_NAMES}
        for each, filled in (("header", headers), ("body", bodies)):
            having[each] |= kept if filled else set()  # type: ignore[index]
        self.documents[name] = Held(chunks, having)
        self.loop.run(self.index.put(self.documents[name]))

    @precondition(lambda self: self.documents)
    @rule(name=names, vector=st.sampled_from(VECTOR_NAMES))
    def fill(self, name: str, vector: Any) -> None:
        self.count()
        if document := self.documents.get(name):
            document.having[vector] = {item.id for item in document.chunks}
            self.loop.run(self.index.fill(document, vector))

    @precondition(lambda self: self.documents)
    @rule(chosen=st.frozensets(names, min_size=1, max_size=4), readers=granted)
    def regrant(self, chosen: frozenset[str], readers: frozenset[str]) -> None:
        self.count()
        documents = [self.documents[name] for name in sorted(chosen) if name in self.documents]
        for document in documents:
            document.chunks = [replace(item, readers=readers) for item in document.chunks]
        changes = {document.chunks[0].document_id: readers for document in documents}
        self.loop.run(self.index.store.set_readers(self.index.scope, changes))

    @precondition(lambda self: self.documents)
    @rule(chosen=st.frozensets(names, min_size=1, max_size=3))
    def delete(self, chosen: frozenset[str]) -> None:
        self.count()
        gone = [self.documents.pop(name) for name in sorted(chosen) if name in self.documents]
        ids = [document.chunks[0].document_id for document in gone]
        self.loop.run(self.index.store.delete_documents(self.index.scope, ids))

    @rule()
    def reopen(self) -> None:
        self.count()
        if isinstance(self.index.store, EdgeStore):
            self.loop.run(self.index.store.aclose())
            self.start()

    @rule(actor=actors, other=actors, asked=some_words, limit=st.integers(1, 6))
    def question(self, actor: Actor, other: Actor, asked: str, limit: int) -> None:
        self.count()
        type(self).questions += 1
        # Somebody else has just asked the same: what is remembered of that is not for this one.
        self.loop.run(self.index.reads(other, asked, limit, []))
        self.loop.run(self.compare(actor, asked, limit))

    async def compare(self, actor: Actor, asked: str, limit: int) -> None:
        twin = Index(type(self).open_twin(self.folder / f"twin-{next(self.twins)}"), gated_embedder())
        try:
            await twin.open()
            for document in readable(self.documents, actor):
                await twin.put(document)
            every = [item for document in self.documents.values() for item in document.chunks]
            found, expected = [await index.reads(actor, asked, limit, every) for index in (self.index, twin)]
            assert found == expected
            assert found["count"] == sum(len(document.chunks) for document in readable(self.documents, actor))
            for candidate in found["search"]:
                assert self.documents[candidate.chunk.path].readers & actor.principals
            fused, alone = [
                await each.search(actor, asked, corpus=self.index.corpus) for each in (self.retriever, twin.retriever())
            ]
            assert replace(fused, timings={}) == replace(alone, timings={})
        finally:
            await twin.store.aclose()

    def count(self) -> None:
        type(self).steps += 1

    def teardown(self) -> None:
        try:
            if hasattr(self, "index"):
                self.loop.run(self.index.store.aclose())
        finally:
            self.held.close()


class ScopedInMemory(Scoped):
    """The model that the adapters are compared with must not leak either."""

    open_store = open_twin = lambda _: MemoryStore()


class ScopedInProcess(Scoped):
    """The embedded store as it runs, its process killed now and then."""

    open_store = EdgeStore

    @rule()
    def kill(self) -> None:
        self.count()
        store = self.index.store
        if isinstance(store, EdgeStore) and store.owner_pid is not None:
            os.kill(store.owner_pid, signal.SIGKILL)


def run(machine: type[Scoped], **given: Any) -> None:
    quiet = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    chosen = settings(database=None, suppress_health_check=quiet, print_blob=False, **given)
    run_state_machine_as_test(machine, settings=chosen)


@pytest.mark.parametrize(("machine", "examples"), [(Scoped, 11), (ScopedInMemory, 40)], ids=["edge", "memory"])
def test_unreadable_documents_have_no_influence(machine: type[Scoped], examples: int) -> None:
    machine.steps = machine.questions = 0
    run(machine, max_examples=examples, stateful_step_count=30, derandomize=True)
    assert machine.steps > 200
    assert machine.questions > 15


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("machine", [Scoped, ScopedInMemory, ScopedInProcess], ids=["edge", "memory", "process"])
def test_unreadable_documents_have_no_influence_however_long_one_looks(machine: type[Scoped]) -> None:
    machine.steps = 0
    wanted = STEPS_AT_LEAST if machine is not ScopedInProcess else 1_000
    while machine.steps < wanted:
        run(machine, max_examples=50, stateful_step_count=40)


# --- that such a machine notices anything


class RankThenFilter(MemoryStore):
    """Searches everything, cuts, and throws away what may not be read."""

    async def search(self, actor: Actor, query: StoreQuery) -> list[Candidate]:
        everyone = Actor("all", frozenset(PRINCIPALS))
        return [item for item in await super().search(everyone, query) if item.chunk.readers & actor.principals]


class SharedStatistics(MemoryStore):
    """Counts how rare a term is over everything."""

    async def term_statistics(self, actor: Actor, corpus: str, terms: Any) -> TermStatistics:
        return await super().term_statistics(Actor("all", frozenset(PRINCIPALS)), corpus, terms)


class SharedTimes(MemoryStore):
    """Tells when anything was last written."""

    async def last_indexed(self, actor: Actor, corpus: str) -> Any:
        return await super().last_indexed(Actor("all", frozenset(PRINCIPALS)), corpus)


@pytest.mark.parametrize("leaky", [RankThenFilter, SharedStatistics, SharedTimes])
def test_a_store_that_leaks_is_noticed(leaky: type[MemoryStore]) -> None:
    class Machine(ScopedInMemory):
        open_store = open_twin = lambda _: leaky()

    with pytest.raises(AssertionError):
        run(Machine, max_examples=60, stateful_step_count=18, derandomize=True, phases=[Phase.generate])
