"""PHP, with or without HTML around it."""

from __future__ import annotations

from tree_sitter import Node

from ragpilot.ingest.chunkers.code.language import HTTP_METHODS, Declared, Kind, Language, Source, spoken

_GROUPS = frozenset({"describe"})
_TESTS = frozenset({"it", "test", "todo"})
_FUNCTIONS = frozenset({"anonymous_function", "arrow_function"})
_CALLS = frozenset({"function_call_expression", "scoped_call_expression", "member_call_expression"})
_LONGEST_TEXT = 400


def _read(node: Node, source: Source) -> Declared | None:
    """Tests and routes by what their call says; the members of a class or a namespace without a name."""
    if node.type == "namespace_definition" and node.child_by_field_name("name") is None:
        return Declared(Kind.SCOPE, "", node, node.child_by_field_name("body"))
    inner = node.named_children[0] if node.named_child_count else None
    if inner is None or node.type not in ("expression_statement", "return_statement"):
        return None
    if inner.type == "object_creation_expression":
        anonymous = next((child for child in inner.named_children if child.type == "anonymous_class"), None)
        return Declared(Kind.SCOPE, "", anonymous, anonymous.child_by_field_name("body")) if anonymous else None
    while inner.type == "member_call_expression" and (chained := inner.child_by_field_name("object")) is not None:
        if chained.type not in _CALLS:
            break
        inner = chained  # it('adds', function () {…})->group('slow');
    return _called_back(inner, source) if inner.type in _CALLS else None


def _called_back(call: Node, source: Source) -> Declared | None:
    arguments = call.child_by_field_name("arguments")
    given = (
        [child.named_children[0] for child in arguments.named_children if child.named_child_count] if arguments else []
    )
    if not given or given[0].type not in ("string", "encapsed_string") or given[-1].type not in _FUNCTIONS:
        return None
    method = source.field(call, "function") or source.field(call, "name")
    text, body = source.text(given[0])[:_LONGEST_TEXT].strip("\"'"), given[-1].child_by_field_name("body")
    if method in _GROUPS and body is not None:
        return Declared(Kind.SCOPE, spoken(text), body, body)
    if method in _TESTS:
        return Declared(Kind.CALLABLE, spoken(text), given[-1], body)
    if method in HTTP_METHODS and text.startswith("/"):
        return Declared(Kind.CALLABLE, f"{method.upper()} {text}", given[-1], body)
    return None


def _name(node: Node, source: Source) -> str:
    return source.field(node, "name").replace("\\", ".")


PHP = Language(
    name="PHP",
    module="tree_sitter_php",
    entry="language_php",
    sample="<?php // é\nnamespace App;\nclass Cart {\n  public function add() { return 1; }\n}\n",
    expected=("App.Cart", "App.Cart.add"),
    definitions={
        "namespace_definition": Kind.SCOPE,
        "class_declaration": Kind.TYPE,
        "interface_declaration": Kind.TYPE,
        "trait_declaration": Kind.TYPE,
        "enum_declaration": Kind.TYPE,
        "function_definition": Kind.CALLABLE,
        "method_declaration": Kind.CALLABLE,
    },
    minor={
        "const_declaration": ("const_element", "name"),
        "property_declaration": ("property_element", "name", "name"),
        "enum_case": ("name",),
    },
    transparent=frozenset({"declaration_list", "enum_declaration_list", "compound_statement", "if_statement"}),
    file_scopes=frozenset({"namespace_definition"}),
    read=_read,
    name_of=_name,
    constructors=frozenset({"__construct"}),
)
