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
_BLANKS = 80
_BRACE = re.compile(rb"[{}]")
_MODIFIERS = (
    rb"abstract|crossinline|external|final|infix|inline|internal|lateinit|noinline|open|override|private|public|sealed"
    rb"|suspend|tailrec|vararg"
)
_SOFT = re.compile(
    rb"\b(?:dynamic\b|by(?=\.)"
    rb"|(?<=\.)(?:%b)\b(?!\s*\.\*)|(?<=fun )(?:%b)(?=\()|(?<=va[lr] )(?:%b)\b"
    rb"|(?:%b)(?=\(|[ \t]*(?:=|\.\w|[),\]]|!!|\?[.:])))" % ((_MODIFIERS,) * 4)
)
"""Words that are keywords at some places, where they are names; the grammar takes them for keywords there too."""
_PLATFORM = re.compile(
    rb"\b(?:actual|expect)(?=[ \t]{1,8}(?:[a-z]{1,16}[ \t]{1,8}){0,5}"
    rb"(?:class|fun|va[lr]|object|interface|typealias|constructor)\b)"
)
_BEFORE_CONSTRUCTOR = re.compile(
    rb"^[ \t]{0,200}(?:(?:public|private|protected|internal)[ \t]{1,8}){1,4}(?=constructor\b)", re.MULTILINE
)
"""Modifiers of a constructor, which the grammar wants on the row of its class."""
_CONTEXT = re.compile(
    rb"^[ \t]{0,200}context\((?:[^()\n]|\([^()\n]{0,200}\)){1,400}\)(?:[ \t]*(?P<row>\r?\n[ \t]*)|[ \t]+)"
    rb"(?=@\w|(?:%b|inner|operator|data|enum|value|fun|va[lr]|class|object|interface)\b)" % _MODIFIERS,
    re.MULTILINE,
)
"""What a declaration has to be called in, which the grammar does not know."""
_REMARK = re.compile(rb"^[ \t]{0,200}/\*[^\n*]{0,400}\*/(?=[ \t]*\w)", re.MULTILINE)
"""Before a declaration on its row; behind an expression the grammar would read on from that."""
_CLOSING = re.compile(rb"^[ \t]*\}(?:[ \t]+\})+[ \t]*\r?$", re.MULTILINE)
_BETWEEN = re.compile(rb"(?<=[} \t])[ \t]\}")
"""A row of closing braces, where the grammar wants what each of them closes ended."""
_ARGUMENTS = rb"\((?:[^()]|\((?:[^()]|\([^()]{0,200}\)){0,200}\)){0,400}\)"
_ANNOTATED = re.compile(
    rb"(?:^[ \t]*@[\w.:]{1,200}(?:%b)?[ \t]*\r?\n){1,8}"
    rb"(?=[ \t]*(?:annotation|data|value|enum|inner|fun[ \t]{1,8}interface|get|set)\b)" % _ARGUMENTS,
    re.MULTILINE,
)
_ANNOTATION = re.compile(rb"@(?P<row>[\w.:]+(?=[ \t]*\r?\n))|@[\w.:]+(?:%b)" % _ARGUMENTS)
"""Above some modifiers annotations are taken for the beginning of an expression; as comments they are read right."""


def _prepared(data: bytes) -> bytes:
    """What the grammar reads: names that look like keywords made unlike them, rows ended."""
    data = _SOFT.sub(lambda match: b"_" + match[0][1:-1] + b"_", data)
    for modifiers in (_PLATFORM, _BEFORE_CONSTRUCTOR):
        data = modifiers.sub(lambda match: b" " * len(match[0]), data)
    data = _CONTEXT.sub(_without_context, data)
    data = _REMARK.sub(lambda match: b" " * len(match[0]), data)
    data = _ANNOTATED.sub(lambda match: _ANNOTATION.sub(_as_comment, match[0]), data)
    data = _CLOSING.sub(lambda match: _BETWEEN.sub(rb";}", match[0]), data)
    return _ended(data)


def _without_context(match: re.Match[bytes]) -> bytes:
    """A comment where it has a row of its own, which then belongs to the declaration; else blanks."""
    row = match["row"] or b""
    before = match[0][: len(match[0]) - len(row)]
    return b"//" + before[2:] + row if row else b" " * len(before)


def _as_comment(match: re.Match[bytes]) -> bytes:
    return b"//" + match[0][2:] if match["row"] is not None else b"/*" + match[0][2:-2] + b"*/"


def _ended(data: bytes) -> bytes:
    """A member on the row of its type's closing brace, ``{ fun a() = 1 }``, ended as the grammar wants it: by ``;``."""
    found = bytearray(data)
    at = 0
    for row in data.split(b"\n"):
        if b"}" in row:
            opened = [0]
            for brace in _BRACE.finditer(row):
                if brace.group() == b"{":
                    opened.append(brace.end())
                elif opened and _ends_a_member(row, opened.pop(), brace.start()):
                    found[at + brace.start() - 1] = ord(";")
        at += len(row) + 1
    return bytes(found)


def _ends_a_member(row: bytes, start: int, end: int) -> bool:
    """Whether a brace at ``end`` follows white space and a member; what it closes begins at ``start``."""
    if row[end - 1 : end] not in (b" ", b"\t") or row[max(start, end - _BLANKS) : end].rstrip().endswith(b";"):
        return False
    behind_entries = row.rfind(b";", start, end - 1) + 1  # of an enum: A, B; fun f() = 1
    return _MEMBER.match(row, start) is not None or (
        behind_entries > 0 and _MEMBER.match(row, behind_entries) is not None
    )


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
    prepare=_prepared,
)
