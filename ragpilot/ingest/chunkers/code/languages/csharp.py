"""C#."""

from __future__ import annotations

import re

from tree_sitter import Node

from ragpilot.ingest.chunkers.code.conditionals import blank, without_fragments
from ragpilot.ingest.chunkers.code.language import Declared, Kind, Language, Source

_REF_PARTIAL = re.compile(rb"\bref[ \t]{1,8}(?P<it>partial)(?=[ \t]{1,8}struct\b)")
_THROUGH_POINTER = re.compile(
    rb"(?:^|[=(,;{}?:+\-<>&|]|\breturn)[ \t]*(?P<it>\*[ \t]*\([\w.]{1,80}[ \t]*\*{1,3}\))|^[ \t]*(?P<row>\*)(?=\w)",
    re.MULTILINE,
)
"""``*(int*)p = 1;``, of which the grammar makes errors that reach as far as the file."""
_ROUTE = re.compile(r"Map(Get|Post|Put|Delete|Patch)")
_LONGEST_TEXT = 400
_FIELDS = ("variable_declaration", "variable_declarator", "name")


def _name(node: Node, source: Source) -> str:
    """Operators and indexers have no name of their own; explicit implementations are called by their member."""
    match node.type:
        case "operator_declaration":
            operator = node.child_by_field_name("operator")
            return f"operator{source.text(operator)}" if operator is not None else "operator"
        case "conversion_operator_declaration":
            return "operator " + source.field(node, "type")
        case "indexer_declaration":
            return "this"
        case "destructor_declaration":
            return "~" + source.field(node, "name")
        case _:
            return source.field(node, "name")


def _read(node: Node, source: Source) -> Declared | None:
    """Routes of a minimal API: ``app.MapGet("/orders/{id}", …)``."""
    call = node.named_children[0] if node.type == "expression_statement" and node.named_child_count else None
    while call is not None and call.type == "invocation_expression":
        function, arguments = call.child_by_field_name("function"), call.child_by_field_name("arguments")
        if function is None or arguments is None or function.type != "member_access_expression":
            return None
        route = _ROUTE.fullmatch(source.field(function, "name"))
        if route is not None and arguments.named_child_count:
            text = source.text(arguments.named_children[0])[:_LONGEST_TEXT].strip('@$"')
            return Declared(Kind.CALLABLE, f"{route[1].upper()} {text}", node, call) if text.startswith("/") else None
        call = function.child_by_field_name("expression")  # app.MapGet(…).WithName("order");
    return None


def _prepared(data: bytes) -> bytes:
    """Without what the grammar cannot read: conditions inside statements, ``ref partial``, writing through pointers."""
    found = bytearray(without_fragments(data))
    for expression in (_REF_PARTIAL, _THROUGH_POINTER):
        for match in expression.finditer(data):
            blank(found, *match.span(match.lastgroup or 0))
    return bytes(found)


CSHARP = Language(
    name="C#",
    module="tree_sitter_c_sharp",
    sample="// é\nnamespace Demo;\npublic record Money(int A);\nclass Order {\n  int Total() => 1;\n}\n",
    expected=("Demo.Money", "Demo.Order", "Demo.Order.Total"),
    definitions={
        "namespace_declaration": Kind.SCOPE,
        "file_scoped_namespace_declaration": Kind.SCOPE,
        "class_declaration": Kind.TYPE,
        "struct_declaration": Kind.TYPE,
        "interface_declaration": Kind.TYPE,
        "record_declaration": Kind.TYPE,
        "enum_declaration": Kind.TYPE,
        "method_declaration": Kind.CALLABLE,
        "constructor_declaration": Kind.CALLABLE,
        "destructor_declaration": Kind.CALLABLE,
        "operator_declaration": Kind.CALLABLE,
        "conversion_operator_declaration": Kind.CALLABLE,
        "indexer_declaration": Kind.CALLABLE,
        "local_function_statement": Kind.CALLABLE,
    },
    minor={
        "property_declaration": ("name",),
        "event_declaration": ("name",),
        "delegate_declaration": ("name",),
        "enum_member_declaration": ("name",),
        "field_declaration": _FIELDS,
        "event_field_declaration": _FIELDS,
    },
    wrappers=frozenset({"global_statement"}),
    transparent=frozenset(
        {"declaration_list", "enum_member_declaration_list", "preproc_if", "preproc_elif", "preproc_else"}
    ),
    bodies=("body", "accessors", "value"),
    file_scopes=frozenset({"file_scoped_namespace_declaration"}),
    read=_read,
    name_of=_name,
    prepare=_prepared,
)
