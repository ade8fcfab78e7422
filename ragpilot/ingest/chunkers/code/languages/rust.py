"""Rust."""

from __future__ import annotations

import re

from tree_sitter import Node

from ragpilot.ingest.chunkers.code.conditionals import blank
from ragpilot.ingest.chunkers.code.language import Declared, Kind, Language, Source

_AROUND_A_TYPE = {"reference_type": "type", "pointer_type": "type", "generic_type": "type", "dynamic_type": "trait"}
_NAMED_TYPES = frozenset({"type_identifier", "primitive_type", "identifier"})


def _read(node: Node, source: Source) -> Declared | None:
    """Implementation blocks under their type's name; macros, which have no body node; no ``mod other;``."""
    body = node.child_by_field_name("body")
    if node.type == "impl_item":
        return Declared(Kind.SCOPE, _type_name(node.child_by_field_name("type"), source), node, body)
    if node.type == "macro_definition":
        return Declared(Kind.CALLABLE, source.field(node, "name") + "!", node, node)
    if node.type == "const_item" and source.field(node, "name") == "_":  # const _: () = { impl …
        value = node.child_by_field_name("value")
        return Declared(Kind.SCOPE, "", value, value) if value is not None and value.type == "block" else None
    if node.type == "mod_item" and body is not None:
        return Declared(Kind.SCOPE, source.field(node, "name"), node, body)
    return None


def _type_name(node: Node | None, source: Source) -> str:
    """``Stack`` of ``&mut ds::Stack<T>``, ``Any`` of ``dyn Any + Send``; tuples, slices and functions have no name."""
    while node is not None and node.type not in _NAMED_TYPES:
        if node.type in ("scoped_type_identifier", "bounded_type"):
            node = node.child_by_field_name("name") or node.named_child(0)
        else:
            field = _AROUND_A_TYPE.get(node.type)
            node = node.child_by_field_name(field) if field is not None else None
    return source.text(node) if node is not None else ""


_AROUND_ITEMS = re.compile(
    rb"^(?P<indent>[ \t]*)(?P<it>[\w:]{1,80}![ \t]*\{)[ \t]*\r?$(?=\n(?:\s|#!?\[[^\n]*\n|//[^\n]*\n){0,40}"
    rb"(?:pub(?:\([a-z ]+\))?[ \t]+)?(?:const[ \t]+|async[ \t]+|unsafe[ \t]+|extern[ \t]+\"C\"[ \t]+){0,3}"
    rb"(?:fn|impl(?!<>)|mod|use|trait|type|static|(?:struct|enum)(?![ \t]+\w+[ \t]*:))\b(?![ \t]+ref\b)[^$\n]*$)",
    re.MULTILINE,
)
"""``cfg_net! {`` and its like, which hold whole items and take nothing away."""
_DECLARED_IN_MACRO = re.compile(
    r"(?:^|\A[\w:]+![ \t]*\{[ \t]*)([ \t]*)(?:pub(?:\([a-z ]+\))?\s+)?"
    r"(?:static(?:\s+ref)?|struct|enum|const|fn)\s+(\w+)",
    re.MULTILINE,
)
_LONGEST_MACRO = 20_000


def _opened(data: bytes) -> bytes:
    """Without macros around items: what they hold is read as if it stood outside."""
    found = bytearray(data)
    for match in _AROUND_ITEMS.finditer(data):
        end = re.compile(rb"^%b\}[ \t]*\r?$" % match["indent"], re.MULTILINE).search(data, match.end())
        if end is not None:
            blank(found, *match.span("it"))
            blank(found, *end.span())
    return bytes(found)


def _minor_names(node: Node, source: Source) -> list[str]:
    """Names of constants and fields; of a macro's call what it says that it declares: ``lazy_static! {``."""
    if node.type != "macro_invocation":
        return [name] if (name := source.field(node, "name")) != "_" else []
    text = source.between(node.start_byte, min(node.end_byte, node.start_byte + _LONGEST_MACRO))
    declared = _DECLARED_IN_MACRO.findall(text)
    outermost = min((len(indent) for indent, _ in declared), default=0)
    return [name for indent, name in declared if len(indent) == outermost]


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
        "macro_invocation": (),
    },
    leading=frozenset({"attribute_item"}),
    comments=frozenset({"line_comment", "block_comment"}),
    transparent=frozenset({"declaration_list", "field_declaration_list", "enum_variant_list", "foreign_mod_item"}),
    read=_read,
    minor_names=_minor_names,
    prepare=_opened,
)
