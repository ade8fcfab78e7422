"""Kotlin."""

from __future__ import annotations

import re

from tree_sitter import Node

from ragpilot.ingest.chunkers.code.language import Declared, Kind, Language, Source


def _read(node: Node, source: Source) -> Declared | None:
    """A companion object without a name adds none: its members are called through the class."""
    if node.type == "companion_object":
        return Declared(Kind.SCOPE, source.field(node, "name"), node, None)
    if node.type == "secondary_constructor":
        return Declared(Kind.CALLABLE, "constructor", node, node)
    return None


_MEMBER = re.compile(
    rb"[ \t]{0,200}(?:@\w+(?:\([^()\n]{0,80}\))?[ \t]{1,4}"
    rb"|(?:public|private|internal|protected|override|abstract|open|const|lateinit|inline|operator|suspend|infix|companion"
    rb"|data|inner|enum|sealed)[ \t]{1,4}){0,6}(?:fun|val|var|class|object|interface|typealias|constructor|init)\b"
)
_BRACE = re.compile(rb"[{}]")


def _ended(data: bytes) -> bytes:
    """A member on the row of its type's closing brace, ``{ fun a() = 1 }``, ended as the grammar wants it: by ``;``."""
    found = bytearray(data)
    at = 0
    for row in data.split(b"\n"):
        if b"}" in row:
            opened = [_MEMBER.match(row) is not None]
            for brace in _BRACE.finditer(row):
                if brace.group() == b"{":
                    opened.append(_MEMBER.match(row, brace.end()) is not None)
                elif opened and opened.pop() and row[brace.start() - 1 : brace.start()] in (b" ", b"\t"):
                    found[at + brace.start() - 1] = ord(";")
        at += len(row) + 1
    return bytes(found)


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
    prepare=_ended,
)
