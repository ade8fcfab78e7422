"""Kotlin."""

from __future__ import annotations

from tree_sitter import Node

from ragpilot.ingest.chunkers.code.language import Declared, Kind, Language, Source


def _read(node: Node, source: Source) -> Declared | None:
    """A companion object without a name adds none: its members are called through the class."""
    if node.type == "companion_object":
        return Declared(Kind.SCOPE, source.field(node, "name"), node, None)
    if node.type == "secondary_constructor":
        return Declared(Kind.CALLABLE, "constructor", node, node)
    return None


KOTLIN = Language(
    name="Kotlin",
    module="tree_sitter_kotlin",
    sample="// é\nobject Registry {\n  fun add(x: Int) = 1\n}\n\nfun <T> List<T>.top(): T { return this[0] }\n",
    expected=("Registry", "Registry.add", "top"),
    definitions={
        "class_declaration": Kind.TYPE,
        "object_declaration": Kind.TYPE,
        "function_declaration": Kind.CALLABLE,
    },
    minor={
        "property_declaration": ("variable_declaration", "identifier"),
        "enum_entry": ("identifier",),
        "type_alias": ("type",),
    },
    # An annotation with a remark behind it is parsed as an expression above the declaration.
    leading=frozenset({"annotated_expression"}),
    comments=frozenset({"line_comment", "block_comment"}),
    transparent=frozenset({"class_body", "enum_class_body"}),
    bodies=("class_body", "enum_class_body", "function_body"),
    read=_read,
    constructors=frozenset({"constructor"}),
)
