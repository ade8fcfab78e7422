"""Ruby."""

from __future__ import annotations

from tree_sitter import Node

from ragpilot.ingest.chunkers.code.language import HTTP_METHODS, Declared, Kind, Language, Source, spoken

_GROUPS = frozenset({"describe", "context", "feature", "shared_examples", "shared_context", "namespace", "xdescribe"})
_TESTS = frozenset({"it", "specify", "test", "scenario", "should", "xit", "task"})
_LONGEST_TEXT = 400


def _read(node: Node, source: Source) -> Declared | None:
    """What a call with a text and a block declares: a group of tests, a test, a task, the handler of a route."""
    if node.type != "call" or (block := node.child_by_field_name("block")) is None:
        return None
    method, arguments = source.field(node, "method"), node.child_by_field_name("arguments")
    if arguments is None or not arguments.named_children:
        return None
    first = arguments.named_children[0]
    if first.type == "pair":  # task build: [:compile] do
        first = first.named_children[0]
    name = source.text(first)[:_LONGEST_TEXT].strip("\"'`:")
    if method in _GROUPS or method in _TESTS:
        name = name.replace("::", ".") if first.type in ("constant", "scope_resolution") else spoken(name)
        return Declared(Kind.SCOPE if method in _GROUPS else Kind.CALLABLE, name, block, block)
    if method in HTTP_METHODS and first.type == "string" and name.startswith("/"):
        return Declared(Kind.CALLABLE, f"{method.upper()} {name}", block, block)
    return None


def _name(node: Node, source: Source) -> str:
    return source.field(node, "name").replace("::", ".")


RUBY = Language(
    name="Ruby",
    module="tree_sitter_ruby",
    sample="# é\nmodule Shop\n  class Cart < Base\n    def add(item)\n    end\n  end\nend\n",
    expected=("Shop.Cart", "Shop.Cart.add"),
    definitions={
        "module": Kind.SCOPE,
        "class": Kind.TYPE,
        "method": Kind.CALLABLE,
        "singleton_method": Kind.CALLABLE,
    },
    minor={"assignment": ("left",)},
    transparent=frozenset({"body_statement", "block_body", "singleton_class"}),
    bodiless=False,
    read=_read,
    name_of=_name,
    constructors=frozenset({"initialize"}),
)
