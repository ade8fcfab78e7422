"""No chunk is read past the readers predicate: by the source of the adapter, and by what reaches the engine."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from qdrant_edge import EdgeShard, FieldCondition, Filter, MatchAny, QueryBatchRequest

import ragpilot.adapters
from ragpilot.adapters import edge_reads, edge_writes
from ragpilot.adapters.chunk_rows import to_row
from ragpilot.adapters.edge_collections import Collections
from ragpilot.adapters.edge_filters import readable_by
from ragpilot.types import Actor, EmbedderIdentity, IndexIdentity, StoreQuery
from tests.builders import chunk
from tests.contract.folders import quick_folder
from tests.fakes import ANN, BOB, NOBODY, VECTOR_NAMES, sparse

ENGINE_READS = {"query", "query_batch", "search", "scroll", "count", "facet", "retrieve"}

WRITERS_READS = {
    ("edge_writes", "_points"),
    ("edge_writes", "without_vector"),
    ("edge_writes", "document_rows"),
    ("edge_seal", "take"),
    ("edge_seal", "missing_chunks"),
}
"""What a writer must read although it may not own it: vectors to keep, chunks to embed, documents to compare, and
whether all chunks are still there."""

MODULES = sorted(Path(ragpilot.adapters.__path__[0]).glob("edge_*.py"))
TREES = {module.stem: ast.parse(module.read_text(encoding="utf-8")) for module in MODULES}


def functions_that_read() -> Iterator[tuple[str, ast.stmt]]:
    """Module and outermost function of every call that could be a read of the engine."""
    for module, tree in TREES.items():
        for statement in tree.body:
            parts = statement.body if isinstance(statement, ast.ClassDef) else [statement]
            for part in parts:
                if any(
                    isinstance(node, ast.Call)
                    and isinstance(node.func, ast.Attribute)
                    and node.func.attr in ENGINE_READS
                    for node in ast.walk(part)
                ):
                    yield module, part


def name_of(statement: ast.stmt) -> str:
    return statement.name if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef) else "outside a function"


def test_every_read_of_the_engine_applies_the_predicate_or_is_a_writers() -> None:
    unscoped = {
        (module, name_of(part))
        for module, part in functions_that_read()
        if not any(
            isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "readable_by"
            for node in ast.walk(part)
        )
    }
    assert unscoped == WRITERS_READS


def test_the_reads_are_found_at_all() -> None:
    names = {name_of(part) for module, part in functions_that_read() if module == "edge_reads"}
    assert names == {
        "_best",
        "_complete",
        "_lexical_scores",
        "_records",
        "_count",
        "facets",
        "_count_terms",
        "last_indexed",
    }


def test_the_predicate_stands_in_one_place() -> None:
    holders = {
        module
        for module, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and node.id in {"FieldCondition", "MatchAny"}
    }
    assert holders == {"edge_filters"}
    assert sum(name_of(part) == "readable_by" for tree in TREES.values() for part in tree.body) == 1


# --- what reaches the engine


class Spy:
    """A shard that notes the requests of every read."""

    def __init__(self, shard: EdgeShard) -> None:
        self.shard = shard
        self.requests: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self.shard, name)
        if name not in ENGINE_READS:
            return attribute

        def noted(request: Any) -> Any:
            self.requests += request.queries if isinstance(request, QueryBatchRequest) else [request]
            return attribute(request)

        return noted


@pytest.fixture
def collections(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collections]:
    with quick_folder(tmp_path_factory) as folder:
        opened = Collections(folder)
        edge_writes.ensure(opened, "default", IndexIdentity(EmbedderIdentity("fake", 4), "chunker"))
        for number, readers in enumerate([{"team:everyone"}, {"user:bob"}, set[str]()]):
            item = chunk(path=f"{number}.py", readers=frozenset(readers))
            terms = [([1, 2 + number], [1.0, 2.0])]
            edge_writes.upsert(opened, "default", item.document_id, [to_row(item)], terms)
            for name in VECTOR_NAMES:
                edge_writes.set_vectors(opened, "default", name, [item.id], np.ones((1, 4), dtype=np.float32))
        yield opened
        opened.close()


def principals_in(where: Filter | None) -> list[str]:
    """Those that the readers predicate of a filter asks for."""
    assert where is not None
    (readers,) = [part for part in where.must or [] if isinstance(part, FieldCondition) and part.key == "readers"]
    assert isinstance(readers.match, MatchAny)
    assert not where.should
    assert where.min_should is None
    return [str(principal) for principal in readers.match.value]


@pytest.mark.parametrize("actor", [ANN, BOB, NOBODY], ids=lambda actor: actor.name)
def test_every_request_carries_the_predicate_at_the_top_and_in_the_statistics(
    collections: Collections, actor: Actor
) -> None:
    collection = collections.find("default")
    assert collection is not None
    spy = Spy(collection.shard)
    collection.shard = spy  # type: ignore[assignment]
    vector = np.array([1, 0, 0, 0], dtype=np.float32)
    for limit in (1, 10):
        edge_reads.search(collections, actor, StoreQuery("default", vector, sparse({1: 1.0, 3: 1.0}), limit, limit))
    edge_reads.get(collections, actor, "default", chunk(path="1.py").id)
    edge_reads.count(collections, actor, "default", None)
    edge_reads.count(collections, actor, "default", "header")
    edge_reads.facets(collections, actor, "default", "path")
    edge_reads.term_statistics(collections, actor, "default", [1, 2, 3])
    edge_reads.last_indexed(collections, actor, "default")
    assert len(spy.requests) >= (10 if actor.principals else 8)
    for request in spy.requests:
        assert principals_in(request.filter) == sorted(actor.principals)
        assert not getattr(request, "prefetches", None)
        params = getattr(request, "params", None)
        if params is not None and params.idf is not None:
            assert principals_in(params.idf.corpus) == sorted(actor.principals)
        if "Sparse" in repr(getattr(request, "query", "")):
            assert params is not None
            assert params.idf is not None
    collection.shard = spy.shard


def test_an_actor_without_principals_matches_nothing_though_an_empty_filter_matches_all(
    collections: Collections,
) -> None:
    collection = collections.find("default")
    assert collection is not None
    nothing = readable_by(NOBODY)
    assert principals_in(nothing) == []
    assert edge_reads.count(collections, NOBODY, "default", None) == 0
    assert collection.shard.info().points_count == 3


def test_what_is_remembered_is_remembered_for_its_principals_and_content_alone(collections: Collections) -> None:
    def counts() -> list[int]:
        return [edge_reads.count(collections, actor, "default", None) for actor in (ANN, BOB, NOBODY)]

    def facets() -> list[dict[str, int]]:
        return [edge_reads.facets(collections, actor, "default", "path") for actor in (ANN, BOB, NOBODY)]

    assert (counts(), facets()) == ([1, 1, 0], [{"0.py": 1}, {"1.py": 1}, {}])
    # What a caller does to an answer must not reach the next one.
    edge_reads.facets(collections, ANN, "default", "path")["1.py"] = 7
    assert (counts(), facets()) == ([1, 1, 0], [{"0.py": 1}, {"1.py": 1}, {}])
    document = chunk(path="0.py").document_id
    edge_writes.set_readers(collections, "default", {frozenset({"user:bob"}): [document]})
    assert (counts(), facets()) == ([0, 2, 0], [{}, {"0.py": 1, "1.py": 1}, {}])
    edge_writes.delete_documents(collections, "default", [document])
    assert (counts(), facets()) == ([0, 1, 0], [{}, {"1.py": 1}, {}])
    assert edge_reads.count(collections, BOB, "default", "header") == 1
