"""What the engine must know of a language: which nodes declare something, its name, and what belongs to it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from tree_sitter import Node

_LONGEST_SIGNATURE = 600
_LONGEST_FIELD = 400
_REMARKS = re.compile(r"^\s*(?:#(?!\[)|//|/\*|\*).*$|//.*$", re.MULTILINE)
_NAME = re.compile(r"[\w$@#?!~.:\-]+")


class Kind(Enum):
    """What a declaration is to the one who looks for it."""

    CALLABLE = "callable"
    """A function or method: one chunk, whatever it holds, as long as it fits."""
    TYPE = "type"
    """A class, interface, struct: its head and fields are one chunk, each of its callables another."""
    SCOPE = "scope"
    """A namespace, module or implementation block: qualifies its members and is nothing in itself."""
    VALUE = "value"
    """A constant or field long enough for a chunk of its own."""


class Source:
    """The bytes that were parsed. Grammars count bytes, never characters."""

    def __init__(self, text: str) -> None:
        self.data = text.encode("utf-8", errors="replace")

    def text(self, node: Node) -> str:
        """What a node spans."""
        return self.between(node.start_byte, node.end_byte)

    def between(self, start: int, end: int) -> str:
        """What stands between two offsets."""
        return self.data[start:end].decode("utf-8", errors="replace")

    def field(self, node: Node, name: str) -> str:
        """What the field of a node spans, on one line; empty without that field."""
        child = node.child_by_field_name(name)
        if child is None:
            return ""
        end = min(child.end_byte, child.start_byte + _LONGEST_FIELD)
        return " ".join(self.between(child.start_byte, end).split())


@dataclass(frozen=True, slots=True)
class Declared:
    """A node read as a declaration. ``name`` may have several parts, joined by dots; empty: it adds none.

    ``node`` is the one whose children are its members, ``body`` where its signature ends.
    """

    kind: Kind
    name: str
    node: Node
    body: Node | None


Path = tuple[str, ...]
"""Steps from a node down to names: at each, all children in the field of that name, else of that type."""


def follow(node: Node, path: Path) -> list[Node]:
    """The nodes at the end of a path, in order."""
    nodes = [node]
    for step in path:
        nodes = [
            child
            for above in nodes
            for child in above.children_by_field_name(step) or [c for c in above.named_children if c.type == step]
        ]
    return nodes


HTTP_METHODS = frozenset({"get", "put", "post", "delete", "options", "head", "patch", "trace", "all"})


def spoken(text: str) -> str:
    """What a test or a group of tests says that it shows, as a name: on one line, without quotes and dots."""
    return " ".join(text.strip("\"'`:").replace(".", " ").split())


def name_field(node: Node, source: Source) -> str:
    """The name of most declarations."""
    return source.field(node, "name")


def no_declaration(_node: Node, _source: Source) -> Declared | None:
    """Of languages whose tables say all."""
    return None


def no_docstring(_node: Node, _source: Source) -> str:
    """Of languages whose documentation stands in comments alone."""
    return ""


def as_it_is(data: bytes) -> bytes:
    """Of languages whose grammars understand what people write."""
    return data


def plain_signature(outer: Node, declared: Declared, source: Source) -> str:
    """What stands before the body, decorators included."""
    stop = declared.body.start_byte if declared.body is not None else declared.node.end_byte
    signature = source.between(outer.start_byte, min(stop, outer.start_byte + _LONGEST_SIGNATURE))
    return _REMARKS.sub("", signature)


@dataclass(frozen=True, slots=True)
class Language:
    """The declaration of a language. Its node types are checked against the grammar at start-up."""

    name: str
    module: str
    """The grammar's package."""
    sample: str
    """A few rows that the start-up check chunks, and ``expected`` the symbols that it must find in them."""
    expected: tuple[str, ...]
    definitions: Mapping[str, Kind]
    entry: str = "language"
    """The function of ``module`` that returns the grammar."""
    minor: Mapping[str, Path] = field(default_factory=dict)
    """Node types that are named but mostly too small for a chunk of their own -> the path to their names."""
    leading: frozenset[str] = frozenset()
    """Attributes where they are siblings of what they belong to; comments always lead."""
    comments: frozenset[str] = frozenset({"comment"})
    wrappers: frozenset[str] = frozenset()
    """Node types around a declaration that belong to it: decorators, exports, template parameters."""
    transparent: frozenset[str] = frozenset()
    """Node types that are looked into always: bodies of types, conditionals at module level."""
    bodies: tuple[str, ...] = ("body",)
    """Fields or types of a declaration's child where its body stands."""
    bodiless: bool = True
    """Whether a callable without a body is a mere signature of one that is written elsewhere."""
    indented: bool = False
    """Whether blocks end by indentation: comments above a declaration are then parsed as the end of the one before."""
    file_scopes: frozenset[str] = frozenset()
    """Node types that, without a body, put all that follows into a namespace."""
    read: Callable[[Node, Source], Declared | None] = no_declaration
    """For what the tables cannot say; asked first, and its None means: go by the tables."""
    name_of: Callable[[Node, Source], str] = name_field
    minor_names: Callable[[Node, Source], list[str]] | None = None
    """Names that a minor node declares, where no path leads to them."""
    docstring: Callable[[Node, Source], str] = no_docstring
    signature: Callable[[Node, Declared, Source], str] = plain_signature
    prepare: Callable[[bytes], bytes] = as_it_is
    """What the parser is given in place of the text's bytes: as many, and every row where it was."""
    constructors: frozenset[str] = frozenset()
    """Names of callables that tell what their type is, and stay with its head when they fit."""

    def names_in(self, node: Node, source: Source) -> list[str]:
        """The names that a minor node declares; patterns that are no names are left out."""
        if self.minor_names is not None:
            names = self.minor_names(node, source)
        else:
            names = [source.text(found) for found in follow(node, self.minor[node.type])]
        return [name for name in names if _NAME.fullmatch(name)]

    def body_of(self, node: Node) -> Node | None:
        """The body of a declaration."""
        for step in self.bodies:
            if found := follow(node, (step,)):
                return found[0]
        return None

    def node_types(self) -> frozenset[str]:
        """Every node type that the tables name."""
        return frozenset().union(
            self.definitions, self.minor, self.leading, self.comments, self.wrappers, self.transparent, self.file_scopes
        )
