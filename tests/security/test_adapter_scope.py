"""By the source of every store adapter: no request to an engine is made without the readers predicate.

What is followed is the expression behind each filter: through local names, lists and loops, and through parameters to
every caller in whichever module, until it ends at ``readable_by(actor)``. Writers' reads are named here one by one.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import ragpilot.adapters
from ragpilot.adapters import edge_filters, qdrant_filters
from ragpilot.types import Actor

VENDORS = {"qdrant_edge", "qdrant_client"}
READS = {
    *("query", "query_batch", "query_points", "query_batch_points", "query_points_groups", "search", "search_batch"),
    *("search_groups", "recommend", "recommend_batch", "discover", "discover_batch", "search_matrix_pairs"),
    *("search_matrix_offsets", "scroll", "count", "facet", "retrieve", "snapshot", "create_snapshot"),
}
REQUESTS = {
    *("QueryRequest", "SearchRequest", "ScrollRequest", "CountRequest", "FacetRequest", "Prefetch"),
    *("IdfParams", "IdfCorpusParams", "RecommendRequest", "DiscoverRequest"),
}
FILTERS = {"filter", "query_filter", "scroll_filter", "count_filter", "facet_filter", "corpus"}
"""Keywords that carry a filter."""
SECOND = {"scroll", "count"}
"""Methods of a client whose second argument is the filter."""

WRITERS = {
    ("edge_seal", "take"),
    ("edge_seal", "missing_chunks"),
    ("edge_writes", "_points"),
    ("edge_writes", "without_vector"),
    ("edge_writes", "document_rows"),
    ("edge_seal", "take"),
    ("edge_seal", "missing_chunks"),
    ("qdrant_writes", "_present"),
    ("qdrant_writes", "without_vector"),
    ("qdrant_writes", "_page"),
    ("qdrant_collections", "_record"),
}
"""What a writer must read although it may not own it: vectors to keep, chunks to embed, documents to compare,
whether all chunks are still there, and the collection's own record, which is no chunk. None of it reaches an answer."""

ADAPTERS = sorted(Path(ragpilot.adapters.__path__[0]).glob("*.py"))


Function = ast.FunctionDef | ast.AsyncFunctionDef


class Module:
    """One module of the adapters, and what stands around what in it."""

    def __init__(self, name: str, tree: ast.Module) -> None:
        self.name = name
        self.tree = tree
        self._parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}

    def functions(self) -> Iterator[Function]:
        for node in ast.walk(self.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield node

    def holders(self, wanted: ast.AST) -> list[Function]:
        """The functions around a node, itself included, the innermost first."""
        around: list[Function] = []
        node: ast.AST | None = wanted
        while node is not None:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                around.append(node)
            node = self._parents.get(node)
        assert around, f"{self.name} asks its engine outside of any function"
        return around

    def name_of(self, wanted: ast.AST) -> str:
        return self.holders(wanted)[-1].name

    def loops(self, wanted: ast.AST) -> list[ast.comprehension]:
        """The ``for`` of every comprehension around a node, the innermost first."""
        around: list[ast.comprehension] = []
        node: ast.AST | None = wanted
        while node is not None:
            if isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
                around += node.generators
            node = self._parents.get(node)
        return around

    def calls(self) -> Iterator[ast.Call]:
        yield from (node for node in ast.walk(self.tree) if isinstance(node, ast.Call))

    def calls_of(self, name: str) -> list[ast.Call]:
        """Calls of a function, also where its own name is imported or stands behind its module's."""
        return [call for call in self.calls() if called(call) == name]


def imports_vendor(tree: ast.Module) -> bool:
    names = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    names += [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    return any(name.partition(".")[0] in VENDORS for name in names)


MODULES = [
    module
    for module in (Module(path.stem, ast.parse(path.read_text(encoding="utf-8"))) for path in ADAPTERS)
    if imports_vendor(module.tree)
]


def called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def filters_of(call: ast.Call) -> list[ast.expr]:
    found = [keyword.value for keyword in call.keywords if keyword.arg in FILTERS]
    if isinstance(call.func, ast.Attribute) and called(call) in SECOND and len(call.args) > 1:
        found.append(call.args[1])
    return found


def is_scoped(module: Module, expression: ast.expr, at: ast.AST, others: Sequence[Module] = ()) -> bool:
    """Whether the value of ``expression``, which stands at ``at``, can be nothing but ``readable_by(actor …)``.

    A list, or a part of one, is when all that is in it is. ``others``: modules that may call functions of this one.
    """
    match expression:
        case ast.Call() if called(expression) == "readable_by":
            first = expression.args[0]
            return isinstance(first, ast.Name) and first.id == "actor"
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return bool(items) and all(is_scoped(module, item, at, others) for item in items)
        case ast.Starred(value=value) | ast.Subscript(value=value):
            return is_scoped(module, value, at, others)
        case ast.ListComp(elt=element) | ast.GeneratorExp(elt=element):
            return is_scoped(module, element, at, others)
        case ast.Name(id=name):
            return _is_scoped_name(module, name, at, others)
    return False


def _is_scoped_name(module: Module, name: str, at: ast.AST, others: Sequence[Module]) -> bool:
    for loop in module.loops(at):
        if isinstance(loop.target, ast.Name) and loop.target.id == name:
            return is_scoped(module, loop.iter, at, others)
    for function in module.holders(at):
        assigned = [
            value
            for node in ast.walk(function)
            if isinstance(node, ast.Assign)
            for target in node.targets
            for value in _assigned(target, node.value, name)
        ]
        if assigned:
            return all(value is not None and is_scoped(module, value, function, others) for value in assigned)
        parameters = [argument.arg for argument in function.args.args]
        if name in parameters:
            place = parameters.index(name) - (parameters[0] == "self")
            callers = [(each, call) for each in (module, *others) for call in each.calls_of(function.name)]
            return bool(callers) and all(
                len(call.args) > place and is_scoped(each, call.args[place], call, others) for each, call in callers
            )
    return False


def _assigned(target: ast.expr, value: ast.expr, name: str) -> list[ast.expr | None]:
    """What ``name`` gets by one assignment; None where that cannot be followed."""
    if isinstance(target, ast.Name):
        return [value] if target.id == name else []
    names = [node.id for node in ast.walk(target) if isinstance(node, ast.Name)]
    if name not in names:
        return []
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        return [item for part, item in zip(target.elts, value.elts, strict=True) if getattr(part, "id", "") == name]
    return [None]


def engine_reads(module: Module) -> Iterator[tuple[str, ast.Call]]:
    """Every call that could be a read of the engine, and the outermost function that it stands in."""
    for call in module.calls():
        if isinstance(call.func, ast.Attribute) and call.func.attr in READS:
            receiver = call.func.value
            if not (isinstance(receiver, ast.Name) and receiver.id.endswith(("_reads", "_writes"))):
                yield module.name_of(call), call


def takes_requests(call: ast.Call) -> bool:
    """Whether a read gets nothing but request objects, each of which is looked at where it is made."""
    receiver = call.func.value if isinstance(call.func, ast.Attribute) else None
    on_shard = getattr(receiver, "attr", getattr(receiver, "id", "")) == "shard"
    return called(call) != "retrieve" and (on_shard or called(call) == "query_batch_points")


def unscoped(module: Module, others: Sequence[Module] = ()) -> set[str]:
    """Functions that ask the engine, or make a request to it, without the predicate."""
    found = set()
    for function, call in engine_reads(module):
        if not takes_requests(call) and not _carries_predicate(module, call, others):
            found.add(function)
    for call in module.calls():
        if called(call) in REQUESTS and not _carries_predicate(module, call, others):
            found.add(module.name_of(call))
        # A branch's ``request(where, …)``.
        is_branch = called(call) == "request" and isinstance(call.func, ast.Attribute)
        if is_branch and not (call.args and is_scoped(module, call.args[0], call, others)):
            found.add(module.name_of(call))
    return found


def _carries_predicate(module: Module, call: ast.Call, others: Sequence[Module]) -> bool:
    carried = filters_of(call)
    return bool(carried) and all(is_scoped(module, each, call, others) for each in carried)


def others_than(module: Module) -> list[Module]:
    """The adapters of the same engine: a function is called from there, if from anywhere."""
    engine = module.name.partition("_")[0]
    return [each for each in MODULES if each is not module and each.name.partition("_")[0] == engine]


def test_both_engines_are_looked_at() -> None:
    names = {module.name for module in MODULES}
    assert {"edge_reads", "edge_writes", "qdrant_reads", "qdrant_writes", "qdrant_collections"} <= names
    readers = {module.name: {name for name, _ in engine_reads(module)} for module in MODULES}
    assert readers["edge_reads"] >= {"_best", "_complete", "_records", "_count", "facets", "_count_terms"}
    assert readers["qdrant_reads"] >= {"_records", "facets", "last_indexed"}
    assert readers["qdrant_terms"] >= {"batch", "count_of"}


def test_every_request_carries_the_predicate_or_is_a_writers() -> None:
    found = {(module.name, function) for module in MODULES for function in unscoped(module, others_than(module))}
    assert found == WRITERS


def test_readers_call_no_writers_read() -> None:
    writers = {name for _, name in WRITERS}
    for module in MODULES:
        if module.name.endswith("_reads"):
            assert not {called(call) for call in module.calls()} & writers
            imported = [node.module for node in ast.walk(module.tree) if isinstance(node, ast.ImportFrom)]
            assert not [name for name in imported if name and name.endswith("_writes")]


def test_no_adapter_makes_up_an_actor_or_takes_one_for_another() -> None:
    for path in ADAPTERS:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            assert not (isinstance(node, ast.Call) and called(node) in {"Actor", "replace"} and _about_actor(node))
            if isinstance(node, ast.Name) and node.id == "actor":
                assert isinstance(node.ctx, ast.Load), f"{path.name} assigns to an actor"


def _about_actor(call: ast.Call) -> bool:
    return called(call) == "Actor" or any(getattr(argument, "id", "") == "actor" for argument in call.args)


def test_the_predicate_is_one_function_an_engine_and_nothing_else_names_its_field() -> None:
    for module in MODULES:
        defines = [each.name for each in module.functions() if each.name == "readable_by"]
        conditions = [
            node for node in ast.walk(module.tree) if getattr(node, "attr", getattr(node, "id", "")) == "MatchAny"
        ]
        assert bool(defines) == bool(conditions) == (module.name in {"edge_filters", "qdrant_filters"})


@pytest.mark.parametrize(
    "source",
    [
        "def f(shard, actor):\n    return shard.count(CountRequest(exact=True))",
        "def f(shard, actor):\n    return shard.scroll(ScrollRequest(filter=Filter(must=[])))",
        "def f(shard, actor, where):\n    return shard.scroll(ScrollRequest(filter=where))",
        "def f(shard, actor):\n    where = readable_by(actor)\n    where = Filter()\n"
        "    return shard.scroll(ScrollRequest(filter=where))",
        "def f(shard, actor):\n    return g(shard, readable_by(EVERYONE))\n"
        "def g(shard, where):\n    return shard.scroll(ScrollRequest(filter=where))",
        "def f(shard, actor):\n    return shard.retrieve([1])",
        "def f(shard, actor):\n    return SearchParams(idf=IdfParams(corpus=Filter()))",
        "async def f(client, actor):\n    return await client.scroll('c', Filter(), limit=1)",
        "async def f(client, actor):\n    return await client.facet('c', 'path', limit=1)",
        "def f(shard, branch, actor):\n    return shard.query_batch([branch.request(Filter(), 1)])",
        "def f(shard, actor):\n    wanted = [readable_by(actor), Filter()]\n"
        "    return [shard.count(CountRequest(filter=where)) for where in wanted]",
        "def f(shard, actor):\n    return [shard.count(CountRequest(filter=where)) for where in []]",
    ],
)
def test_a_request_without_it_is_noticed(source: str) -> None:
    assert unscoped(Module("sample", ast.parse(source)))


def test_a_request_with_it_passes() -> None:
    source = """
def f(shard, actor):
    where = readable_by(actor, having_ids([1]))
    return g(shard, where) + shard.count(CountRequest(filter=readable_by(actor)))

def g(shard, where):
    return shard.scroll(ScrollRequest(limit=1, filter=where))
"""
    assert not unscoped(Module("sample", ast.parse(source)))
    listed = """
async def f(client, actor):
    wanted = [readable_by(actor), *(readable_by(actor, term) for term in TERMS)]
    some = wanted[2:4]
    return [await client.count('c', where, exact=True) for where in some]
"""
    assert not unscoped(Module("sample", ast.parse(listed)))


def test_a_caller_in_another_module_is_followed() -> None:
    asks = Module("edge_one", ast.parse("def g(shard, where):\n    return shard.count(CountRequest(filter=where))"))
    good = Module("edge_two", ast.parse("def f(shard, actor):\n    return g(shard, readable_by(actor))"))
    bad = Module("edge_three", ast.parse("def f(shard, actor):\n    return edge_one.g(shard, Filter())"))
    assert unscoped(asks, [good]) == set()
    assert unscoped(asks, []) == unscoped(asks, [good, bad]) == {"g"}


@pytest.mark.parametrize("principals", [set(), {"user:ann"}, {"team:b", "team:a"}], ids=["none", "one", "two"])
def test_both_predicates_ask_for_exactly_the_principals(principals: set[str]) -> None:
    actor = Actor("ann", frozenset(principals))
    for where in (edge_filters.readable_by(actor), qdrant_filters.readable_by(actor)):
        conditions: Any = where.must
        (readers,) = conditions
        asked = getattr(readers.match, "any", None) or getattr(readers.match, "value", [])
        assert (readers.key, list(asked)) == ("readers", sorted(principals))
        assert [where.should, where.min_should, where.must_not] in ([None, None, None], [[], None, []])
