"""C#."""

from __future__ import annotations

from tree_sitter import Node

from ragpilot.ingest.chunkers.code.language import Kind, Language, Source

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
    transparent=frozenset(
        {"declaration_list", "enum_member_declaration_list", "preproc_if", "preproc_elif", "preproc_else"}
    ),
    bodies=("body", "accessors", "value"),
    file_scopes=frozenset({"file_scoped_namespace_declaration"}),
    name_of=_name,
)
