"""JavaScript, TypeScript and TSX: three grammars, one family of nodes."""

from __future__ import annotations

import re
from dataclasses import replace

from tree_sitter import Node

from ragpilot.ingest.chunkers.code.language import HTTP_METHODS, Declared, Kind, Language, Source, as_it_is, spoken

_FUNCTIONS = frozenset({"arrow_function", "function_expression", "generator_function"})
_TEXTS = frozenset({"string", "template_string"})
_GROUPS = frozenset({"describe", "fdescribe", "xdescribe", "context", "suite"})
_TESTS = frozenset({"it", "fit", "xit", "test", "specify", "bench"})
_WORDS = re.compile(r"\w+")
_MODULES = (["define"], ["require"], ["requirejs"])
_ALL_EXPORTS = ("module.exports", "exports")
_TEXT_AND_FUNCTION = 2
_LONGEST_CALLEE = 200
_LONGEST_TEXT = 400
_OBJECT_PREFIXES = ("module.exports.", "exports.", "this.", "window.", "globalThis.")


def _read(node: Node, source: Source) -> Declared | None:
    """Functions and classes under the name that they are assigned to; members of an exported object."""
    match node.type:
        case "lexical_declaration" | "variable_declaration":
            declarators = [child for child in node.named_children if child.type == "variable_declarator"]
            if len(declarators) == 1:
                return _named_value(declarators[0], "name", "value", source)
        case "field_definition" | "public_field_definition":
            name = "name" if node.type == "public_field_definition" else "property"
            return _named_value(node, name, "value", source)
        case "pair":
            return _named_value(node, "key", "value", source) or _members(node.child_by_field_name("value"))
        case "expression_statement" if node.named_child_count:
            inner = node.named_children[0]
            if inner.type == "assignment_expression":
                return _named_value(inner, "left", "right", source) or _exports(inner, source)
            if inner.type == "call_expression":
                return _called_back(inner, source)
            if inner.type == "internal_module":
                return Declared(Kind.SCOPE, source.field(inner, "name"), inner, inner.child_by_field_name("body"))
        case "internal_module" | "module":
            name = source.field(node, "name").strip("\"'")
            return Declared(Kind.SCOPE, name, node, node.child_by_field_name("body"))
        case "object" | "class" | "arrow_function" | "function_expression" | "generator_function":
            # The parent is looked up last: it costs as many steps as the tree is deep.
            if node.parent is not None and node.parent.type == "export_statement":
                return _value("default", node) or _members(node)
    return None


def _exports(assignment: Node, source: Source) -> Declared | None:
    """An object of functions that is all that a module exports: the functions are the module's."""
    value = assignment.child_by_field_name("right")
    if value is None or value.type != "object" or source.field(assignment, "left") not in _ALL_EXPORTS:
        return None
    values = [child.child_by_field_name("value") for child in value.named_children if child.type == "pair"]
    functions = any(child.type == "method_definition" for child in value.named_children)
    return _members(value) if functions or any(one is not None and one.type in _FUNCTIONS for one in values) else None


def _called_back(call: Node, source: Source) -> Declared | None:
    """What a call with a text and a function declares: a group of tests, a test, the handler of a route."""
    arguments = call.child_by_field_name("arguments")
    function = call.child_by_field_name("function")
    if arguments is None or function is None:
        return None
    if function.type == "parenthesized_expression" and function.named_children[0].type in _FUNCTIONS:
        function = function.named_children[0]  # (function () {…})(): a module by hand
        return Declared(Kind.SCOPE, "", function, function.child_by_field_name("body"))
    if arguments.named_child_count < _TEXT_AND_FUNCTION:
        return None
    text, body = arguments.named_children[0], _callback(arguments)
    if body is None:
        return None
    words = _WORDS.findall(source.text(function)[:_LONGEST_CALLEE])
    if words in _MODULES:
        return Declared(Kind.SCOPE, "", body, body.child_by_field_name("body"))
    if text.type not in _TEXTS:
        return _named_argument(body, source)
    name = source.text(text)[:_LONGEST_TEXT].strip("\"'`")
    if words and words[0] in _GROUPS:
        return Declared(Kind.SCOPE, spoken(name), body, body.child_by_field_name("body"))
    if words and words[0] in _TESTS:
        return Declared(Kind.CALLABLE, spoken(name), body, body.child_by_field_name("body"))
    if words and words[-1] in HTTP_METHODS and name.startswith("/"):
        return Declared(Kind.CALLABLE, f"{words[-1].upper()} {name}", body, body.child_by_field_name("body"))
    return _named_argument(body, source)


def _named_argument(function: Node, source: Source) -> Declared | None:
    """A function with a name of its own: ``defineGetter(req, 'ip', function ip() {…})``."""
    name = source.field(function, "name")
    return Declared(Kind.CALLABLE, name, function, function.child_by_field_name("body")) if name else None


def _callback(arguments: Node) -> Node | None:
    """The last function among arguments; options and a time limit may follow it."""
    return next((child for child in reversed(arguments.named_children) if child.type in _FUNCTIONS), None)


def _named_value(node: Node, name_field: str, value_field: str, source: Source) -> Declared | None:
    value = node.child_by_field_name(value_field)
    if value is None:
        return None
    name = source.field(node, name_field).strip("\"'`")
    for prefix in _OBJECT_PREFIXES:
        name = name.removeprefix(prefix)
    name = name.replace(".prototype.", ".").removeprefix("module.")
    return _value(name, value)


def _value(name: str, value: Node) -> Declared | None:
    if value.type in _FUNCTIONS:
        return Declared(Kind.CALLABLE, name, value, value.child_by_field_name("body"))
    if value.type == "class":
        return Declared(Kind.TYPE, name, value, value.child_by_field_name("body"))
    return None


def _members(value: Node | None) -> Declared | None:
    """An object with functions in it, such as a component's options: nothing in itself, its functions are."""
    if value is None or value.type != "object":
        return None
    return Declared(Kind.SCOPE, "", value, value)


JAVASCRIPT = Language(
    name="JavaScript",
    module="tree_sitter_javascript",
    sample="// é\nexport const total = () => {\n  return 1;\n};\n\nclass Cart {\n  add() {}\n}\n",
    expected=("total", "Cart", "Cart.add"),
    definitions={
        "function_declaration": Kind.CALLABLE,
        "generator_function_declaration": Kind.CALLABLE,
        "method_definition": Kind.CALLABLE,
        "class_declaration": Kind.TYPE,
    },
    minor={
        "lexical_declaration": ("variable_declarator", "name"),
        "variable_declaration": ("variable_declarator", "name"),
        "field_definition": ("property",),
    },
    leading=frozenset({"decorator"}),
    wrappers=frozenset({"export_statement"}),
    transparent=frozenset({"class_body", "statement_block"}),
    read=_read,
    constructors=frozenset({"constructor"}),
)

_SIGNATURE_ON_A_NEW_ROW = re.compile(
    rb"(?:\)[ \t]*:[ \t]*[^\n;{}=,]{0,200}[\w>\])]|^[ \t]*>)[ \t]*\r?\n(?P<it>[ \t])[ \t]*(?=\(|<\w)", re.MULTILINE
)
"""Of an interface that can be called; without a semicolon the grammar reads on from the row above."""


def _with_semicolons(data: bytes) -> bytes:
    found = bytearray(data)
    for match in _SIGNATURE_ON_A_NEW_ROW.finditer(data):
        found[match.start("it")] = ord(";")
    return bytes(found)


TYPESCRIPT = replace(
    JAVASCRIPT,
    name="TypeScript",
    module="tree_sitter_typescript",
    entry="language_typescript",
    sample="// é\nfunction f(a: string): void;\nfunction f(a: any) {}\nabstract class Repo {\n find = () => <T>1;\n}\n",
    expected=("f", "Repo", "Repo.find"),
    definitions={
        **JAVASCRIPT.definitions,
        "abstract_class_declaration": Kind.TYPE,
        "interface_declaration": Kind.TYPE,
        "enum_declaration": Kind.TYPE,
        "function_signature": Kind.CALLABLE,
        "method_signature": Kind.CALLABLE,
        "abstract_method_signature": Kind.CALLABLE,
    },
    minor={
        "lexical_declaration": ("variable_declarator", "name"),
        "variable_declaration": ("variable_declarator", "name"),
        "public_field_definition": ("name",),
        "property_signature": ("name",),
        "enum_assignment": ("name",),
        "type_alias_declaration": ("name",),
    },
    wrappers=frozenset({"export_statement", "ambient_declaration"}),
    transparent=frozenset({"class_body", "interface_body", "enum_body", "statement_block"}),
    prepare=_with_semicolons,
)

TSX = replace(
    TYPESCRIPT,
    name="TSX",
    entry="language_tsx",
    prepare=as_it_is,
    sample="// é\nexport const View = <T,>({ a }: P<T>) => <ul>{a}</ul>;\nfunction App() {\n  return <b />;\n}\n",
    expected=("View", "App"),
)
