"""Rust."""

from __future__ import annotations

import re

from tree_sitter import Node

from ragpilot.ingest.chunkers.code.language import Declared, Kind, Language, Source

_TYPE_NAME = re.compile(r"([\w]+)\s*(?:<.*)?$", re.DOTALL)


def _read(node: Node, source: Source) -> Declared | None:
    """Implementation blocks under their type's name; macros, which have no body node; no ``mod other;``."""
    body = node.child_by_field_name("body")
    if node.type == "impl_item":
        implemented = source.field(node, "type").removeprefix("&")
        name = _TYPE_NAME.search(implemented)
        return Declared(Kind.SCOPE, name.group(1) if name else "", node, body)
    if node.type == "macro_definition":
        return Declared(Kind.CALLABLE, source.field(node, "name") + "!", node, node)
    if node.type == "mod_item" and body is not None:
        return Declared(Kind.SCOPE, source.field(node, "name"), node, body)
    return None


RUST = Language(
    name="Rust",
    module="tree_sitter_rust",
    sample="// é\n#[derive(Debug)]\nstruct Stack<T> { a: T }\n\nimpl<T> Stack<T> {\n    fn push(&self) {}\n}\n",
    expected=("Stack", "Stack.push"),
    definitions={
        "function_item": Kind.CALLABLE,
        "function_signature_item": Kind.CALLABLE,
        "struct_item": Kind.TYPE,
        "enum_item": Kind.TYPE,
        "union_item": Kind.TYPE,
        "trait_item": Kind.TYPE,
    },
    minor={
        "type_item": ("name",),
        "const_item": ("name",),
        "static_item": ("name",),
        "associated_type": ("name",),
        "field_declaration": ("name",),
        "enum_variant": ("name",),
    },
    leading=frozenset({"attribute_item"}),
    comments=frozenset({"line_comment", "block_comment"}),
    transparent=frozenset({"declaration_list", "field_declaration_list", "enum_variant_list", "foreign_mod_item"}),
    read=_read,
)
