"""Ruby."""

from __future__ import annotations

from tree_sitter import Node

from ragpilot.ingest.chunkers.code.language import HTTP_METHODS, Declared, Kind, Language, Source, spoken

_GROUPS = frozenset({"describe", "context", "feature", "shared_examples", "shared_context", "namespace", "xdescribe"})
_TESTS = frozenset({"it", "specify", "test", "scenario", "should", "xit", "task"})
_REOPENED = frozenset(
    {"refine", "class_eval", "module_eval", "instance_eval", "class_methods", "included", "class_exec"}
)
_MAKERS = frozenset({"Struct", "Data", "Class", "Module"})
_CONSTANTS = frozenset({"constant", "scope_resolution"})
_ACCESSORS = frozenset(
    {"attr_reader", "attr_writer", "attr_accessor", "attr", "mattr_accessor", "cattr_accessor", "delegate"}
)
_ALIASES = frozenset({"alias_method", "scope", "def_delegator"})
_LONGEST_TEXT = 400


def _read(node: Node, source: Source) -> Declared | None:
    """Methods and types that calls make: tests and tasks, ``private def``, ``define_method``, ``Struct.new do``."""
    if node.type == "assignment":
        return _made(node, source)
    if node.type != "call":
        return None
    method, arguments = source.field(node, "method"), node.child_by_field_name("arguments")
    given = arguments.named_children if arguments is not None else []
    block = node.child_by_field_name("block")
    if block is None:
        one = given[0] if len(given) == 1 else None
        if one is None or one.type not in ("method", "singleton_method"):
            return None
        return Declared(Kind.CALLABLE, _name(one, source), one, one.child_by_field_name("body"))
    if method in _REOPENED:
        receiver = node.child_by_field_name("receiver")
        of = receiver if receiver is not None else next(iter(given), None)
        name = _constant(of, source) if of is not None and of.type in _CONSTANTS else ""
        return Declared(Kind.SCOPE, name, block, block)
    return _called(method, given[0], block, source) if given else None


def _made(node: Node, source: Source) -> Declared | None:
    """``Point = Struct.new(:x) do``: a type, whose members stand in the block."""
    made = node.child_by_field_name("right")
    block = made.child_by_field_name("block") if made is not None and made.type == "call" else None
    if made is None or block is None or source.field(made, "method") not in ("new", "define"):
        return None
    if source.field(made, "receiver").removeprefix("::") not in _MAKERS:
        return None
    return Declared(Kind.TYPE, source.field(node, "left").replace("::", "."), block, block)


def _called(method: str, first: Node, block: Node, source: Source) -> Declared | None:
    """What a call with a name and a block declares: a test, a group of tests, a task, a method, a route."""
    if first.type == "pair":  # task build: [:compile] do
        first = first.named_children[0]
    name = source.text(first)[:_LONGEST_TEXT].strip("\"'`:")
    if method in ("define_method", "define_singleton_method"):
        return Declared(Kind.CALLABLE, name, block, block) if first.type == "simple_symbol" else None
    if method in _GROUPS or method in _TESTS:
        name = name.replace("::", ".") if first.type in _CONSTANTS else spoken(name)
        return Declared(Kind.SCOPE if method in _GROUPS else Kind.CALLABLE, name, block, block)
    if method in HTTP_METHODS and first.type == "string" and name.startswith("/"):
        return Declared(Kind.CALLABLE, f"{method.upper()} {name}", block, block)
    return None


def _constant(node: Node, source: Source) -> str:
    return source.text(node).removeprefix("::").replace("::", ".")


def _name(node: Node, source: Source) -> str:
    """Of ``def self.find`` and, within ``Cart``, of ``def Cart.find`` the method's name alone."""
    name = source.field(node, "name").replace("::", ".")
    receiver = node.child_by_field_name("object")
    if receiver is None or receiver.type not in ("identifier", *_CONSTANTS):
        return name
    outer, of = node.parent, _constant(receiver, source)
    while outer is not None and outer.type not in ("class", "module"):
        outer = outer.parent
    inside = outer is not None and source.field(outer, "name").replace("::", ".").rpartition(".")[2] == of
    return name if inside else f"{of}.{name}"


def _minor_names(node: Node, source: Source) -> list[str]:
    """Constants and the like by what they are assigned to; accessors and aliases by their symbols."""
    if node.type == "assignment":
        return [source.field(node, "left").removeprefix("self.")]
    if node.type == "alias":
        return [source.field(node, "name")]
    arguments = node.child_by_field_name("arguments")
    symbols = [child for child in arguments.named_children if child.type == "simple_symbol"] if arguments else []
    names = [source.text(symbol).removeprefix(":") for symbol in symbols]
    method = source.field(node, "method") if symbols else ""
    return names if method in _ACCESSORS else names[:1] if method in _ALIASES else []


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
    minor={"assignment": (), "alias": (), "call": ()},
    transparent=frozenset(
        {"body_statement", "block_body", "singleton_class", "if", "unless", "elsif", "else", "then", "begin", "rescue"}
        | {"if_modifier", "unless_modifier"}
    ),
    bodiless=False,
    read=_read,
    name_of=_name,
    minor_names=_minor_names,
    constructors=frozenset({"initialize"}),
)
