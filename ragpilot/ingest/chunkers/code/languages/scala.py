"""Scala 2 and 3."""

from __future__ import annotations

from tree_sitter import Node

from ragpilot.ingest.chunkers.code.language import Declared, Kind, Language, Source


def _read(node: Node, source: Source) -> Declared | None:
    """Extensions qualify nothing; givens may be anonymous."""
    body = node.child_by_field_name("body")
    if node.type == "extension_definition":
        return Declared(Kind.SCOPE, "", node, body)
    if node.type == "given_definition":
        name = source.field(node, "name") or source.field(node, "return_type").partition("[")[0]
        return Declared(Kind.TYPE, name, node, body)
    if node.type == "package_clause" and body is not None:
        return Declared(Kind.SCOPE, source.field(node, "name"), node, body)
    return None


SCALA = Language(
    name="Scala",
    module="tree_sitter_scala",
    sample="// é\n@Ann\ncase class Cart(id: Int) {\n  def add(x: Int): Int = x\n}\nobject Cart\n",
    expected=("Cart", "Cart.add"),
    definitions={
        "class_definition": Kind.TYPE,
        "object_definition": Kind.TYPE,
        "trait_definition": Kind.TYPE,
        "enum_definition": Kind.TYPE,
        "package_object": Kind.TYPE,
        "function_definition": Kind.CALLABLE,
        "function_declaration": Kind.CALLABLE,
    },
    minor={
        "val_definition": ("pattern",),
        "var_definition": ("pattern",),
        "type_definition": ("name",),
        "simple_enum_case": ("name",),
        "full_enum_case": ("name",),
    },
    comments=frozenset({"comment", "block_comment"}),
    transparent=frozenset({"template_body", "with_template_body", "enum_body", "enum_case_definitions"}),
    read=_read,
)
