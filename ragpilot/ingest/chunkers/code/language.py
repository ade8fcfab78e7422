"""What the engine must know of a language: which nodes declare something, its name, and what belongs to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from tree_sitter import Node

_LONGEST_SIGNATURE = 600


class Kind(Enum):
    """What a declaration is to the one who looks for it."""

    CALLABLE = "callable"
    """A function or method: one chunk, whatever it holds, as long as it fits."""
    TYPE = "type"
    """A class, interface, struct: its head and fields are one chunk, each of its callables another."""
    SCOPE = "scope"
    """A namespace, module or implementation block: qualifies its members and is nothing in itself."""


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

    def field(self, node: Node, name: str) -> str | None:
        """What the field of a node spans, on one line; None without that field."""
        child = node.child_by_field_name(name)
        return " ".join(self.text(child).split()) if child is not None else None


@dataclass(frozen=True, slots=True)
class Declared:
    """A node read as a declaration. ``name`` may have several parts, joined by dots; empty: it only qualifies."""

    kind: Kind
    name: str
    node: Node
    body: Node | None


Reader = Callable[[Node, Source], "Declared | None"]
"""Reads a node as a declaration; None when it is none."""


def plain_signature(outer: Node, declared: Declared, source: Source) -> str:
    """What stands before the body, decorators included."""
    stop = declared.body.start_byte if declared.body is not None else declared.node.end_byte
    return source.between(outer.start_byte, min(stop, outer.start_byte + _LONGEST_SIGNATURE))


def no_docstring(_node: Node, _source: Source) -> str:
    """Of languages whose documentation stands in comments alone."""
    return ""


@dataclass(frozen=True, slots=True)
class Language:
    """The declaration of a language. Node types are those of its grammar and are checked at start-up."""

    name: str
    module: str
    """The grammar's package."""
    sample: str
    """A few rows that the start-up check chunks, and ``expected`` the symbols that it must find in them."""
    expected: tuple[str, ...]
    definitions: Mapping[str, Kind]
    entry: str = "language"
    """The function of ``module`` that returns the grammar."""
    minor: Mapping[str, str] = field(default_factory=dict)
    """Node types that are named but too small for a chunk of their own (fields, constants) -> the field of the name."""
    leading: frozenset[str] = frozenset({"comment"})
    """Node types that belong to the declaration below them: comments, and attributes where they are siblings."""
    comments: frozenset[str] = frozenset({"comment"})
    """Those of ``leading`` that are documentation."""
    wrappers: frozenset[str] = frozenset()
    """Node types around a declaration that belong to it: decorators, exports, template parameters."""
    transparent: frozenset[str] = frozenset()
    """Node types that are looked into always: bodies of types, conditionals at module level."""
    read: Reader | None = None
    """For what the tables cannot say; asked first, and its None means: go by the tables."""
    name_of: Callable[[Node, Source], str | None] = lambda node, source: source.field(node, "name")
    minor_names: Callable[[Node, Source], list[str]] | None = None
    """Names that a minor node declares, where one field does not hold them."""
    docstring: Callable[[Node, Source], str] = no_docstring
    signature: Callable[[Node, Declared, Source], str] = plain_signature
    constructors: frozenset[str] = frozenset()
    """Names of callables that tell what their type is, and stay with its head when they fit."""

    def node_types(self) -> frozenset[str]:
        """Every node type that the tables name."""
        return frozenset().union(
            self.definitions, self.minor, self.leading, self.comments, self.wrappers, self.transparent
        )
