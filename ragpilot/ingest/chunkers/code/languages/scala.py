"""Scala 2 and 3."""

from __future__ import annotations

from tree_sitter import Node

from ragpilot.ingest.chunkers.code.language import Declared, Kind, Language, Source, spoken

_GROUPS = frozenset({"should", "when", "can", "must", "which", "that"})
_TESTS = frozenset({"in", "ignore"})
_CALLED = frozenset({"test", "testAsync", "describe", "it", "they", "property", "feature", "scenario", "suite"})
_SUBJECT_AND_WORD = 2
_MOST_LOOKED_AT = 20
_LONGEST_TEXT = 400


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
    return _said(node, source)


def _said(node: Node, source: Source) -> Declared | None:
    """A test or a group of them: ``test("pops") {``, ``it should "pop" in {``, ``"pops" in:``."""
    if node.type == "infix_expression":
        operator, left = source.field(node, "operator"), node.child_by_field_name("left")
        body = node.child_by_field_name("right")
        if left is None or body is None or operator not in _GROUPS | _TESTS:
            return None
        if operator in _GROUPS and body.type != "block":
            return None
        return _group_or_test(left, body, source, group=operator in _GROUPS)
    function, body = node.child_by_field_name("function"), node.child_by_field_name("arguments")
    if node.type != "call_expression" or function is None or body is None:
        return None
    if body.type == "colon_argument" and body.named_child_count:
        body = body.named_children[-1]
    if body.type not in ("block", "indented_block"):
        return None
    if function.type == "call_expression" and source.field(function, "function") in _CALLED:
        arguments = function.child_by_field_name("arguments")
        if arguments is None or not arguments.named_children or arguments.named_children[0].type != "string":
            return None
        has_tests = any(_said(child, source) is not None for child in body.named_children[:_MOST_LOOKED_AT])
        return _group_or_test(arguments.named_children[0], body, source, group=has_tests)
    if function.type == "infix_expression":  # it should "pop" in supervised:
        left, operator = function.child_by_field_name("left"), source.field(function, "operator")
        return _group_or_test(left, body, source, group=False) if left is not None and operator in _TESTS else None
    if function.type == "postfix_expression" and function.named_child_count == _SUBJECT_AND_WORD:
        left, word = function.named_children
        if (operator := source.text(word)) in _GROUPS | _TESTS:
            return _group_or_test(left, body, source, group=operator in _GROUPS)
    return None


def _group_or_test(said: Node, body: Node, source: Source, *, group: bool) -> Declared | None:
    text = source.text(said)[:_LONGEST_TEXT]
    name = spoken(text.replace('"', ""))
    return Declared(Kind.SCOPE if group else Kind.CALLABLE, name, body, body) if '"' in text and name else None


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
    indented=True,
    transparent=frozenset({"template_body", "with_template_body", "enum_body", "enum_case_definitions"}),
    read=_read,
)
