"""C and C++."""

from __future__ import annotations

import re

from tree_sitter import Node

from ragpilot.ingest.chunkers.code.language import Declared, Kind, Language, Path, Source, spoken
from ragpilot.ingest.chunkers.code.macros import without_macros

_LONGEST_NAME = 400
_NAMES = frozenset({"identifier", "field_identifier", "type_identifier", "namespace_identifier"})
_COMPOSED = frozenset(
    {"qualified_identifier", "destructor_name", "operator_name", "template_function", "template_type", "operator_cast"}
)
_GENERIC = frozenset({"template_type", "template_function", "template_method"})
_MOST_PARTS = 32
_MACRO = re.compile(r"[A-Z][A-Z0-9_]+")
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_SUITE_AND_TEST = 2
_TYPES = frozenset({"struct_specifier", "union_specifier", "enum_specifier", "class_specifier"})
_WITH_TYPE = frozenset({"type_definition", "declaration", "field_declaration"})
_PREPROCESSOR = frozenset({"preproc_if", "preproc_ifdef", "preproc_elif", "preproc_elifdef", "preproc_else"})


def _declarator_name(node: Node | None, source: Source) -> str:
    """The name inside a declarator, however deep: ``(*Stack<T>::find(int))[2]`` gives ``Stack.find``."""
    while node is not None and node.type not in _NAMES:
        if node.type in _COMPOSED:
            return _qualified(node, source)
        inner = node.child_by_field_name("declarator")
        node = inner or next((c for c in node.named_children if "declarator" in c.type or c.type in _NAMES), None)
    return source.text(node) if node is not None else ""


def _qualified(node: Node, source: Source) -> str:
    """``a::Stack<T>::operator<<`` gives ``a.Stack.operator<<``."""
    parts: list[str] = []
    part: Node | None = node
    while part is not None and len(parts) < _MOST_PARTS:
        scope = part.child_by_field_name("scope") if part.type == "qualified_identifier" else part
        if scope is not None:
            parts.append(_plain(scope, source))
        part = part.child_by_field_name("name") if scope is not part else None
    return ".".join(filter(None, parts))


def _plain(node: Node, source: Source) -> str:
    """One part of a name, without arguments and parameters."""
    while node.type in _GENERIC and (name := node.child_by_field_name("name")) is not None:
        node = name
    text = source.between(node.start_byte, min(node.end_byte, node.start_byte + _LONGEST_NAME))
    if node.type == "operator_cast":
        return text.partition("(")[0].strip()
    return "".join(text.split()) if node.type != "operator_name" else "operator" + _operator(text)


def _operator(text: str) -> str:
    symbol = text.partition("operator")[2]
    return symbol if symbol[:1].isspace() and symbol.strip()[:1].isalpha() else "".join(symbol.split())


def _read(node: Node, source: Source) -> Declared | None:
    """Functions by their declarator; types where they have a body, also behind a typedef or before a variable."""
    body = node.child_by_field_name("body")
    if node.type == "function_definition":
        declarator = node.child_by_field_name("declarator")
        name = _declarator_name(declarator, source)
        if declarator is not None and _MACRO.fullmatch(name) and node.child_by_field_name("type") is None:
            name = _what_a_macro_declares(declarator, source) or name
        return Declared(Kind.CALLABLE, name, node, body or _try_body(node)) if name else None
    if node.type == "namespace_definition":
        parts = source.field(node, "name").split("::")  # a::inline b::c
        return Declared(Kind.SCOPE, ".".join(part.strip().removeprefix("inline ") for part in parts), node, body)
    shape = node.child_by_field_name("type") if node.type in _WITH_TYPE else node
    if shape is None or shape.type not in _TYPES or (body := shape.child_by_field_name("body")) is None:
        return None
    named = shape.child_by_field_name("name")
    name = _qualified(named, source) if named is not None else ""
    if node.type == "type_definition":
        name = _declarator_name(node.child_by_field_name("declarator"), source) or name
    return Declared(Kind.TYPE, name, shape, body) if name else None


def _what_a_macro_declares(declarator: Node, source: Source) -> str:
    """What a macro before a body declares.

    ``TEST(StackTest, Pops) {`` declares ``StackTest.Pops``, ``DEFINE_HOOK(on_exit) {`` ``on_exit``, and
    ``TEST_CASE("pops, last first") {`` what it says.
    """
    parameters = declarator.child_by_field_name("parameters")
    texts = [source.text(child) for child in parameters.named_children] if parameters is not None else []
    said = next((at for at, text in enumerate(texts) if text.startswith('"')), None)
    if said is not None:
        return ".".join([*texts[:said], spoken(texts[said])])
    names = [text for text in texts[: 2 if len(texts) == _SUITE_AND_TEST else 1] if _IDENTIFIER.fullmatch(text)]
    return ".".join(names)


def _try_body(node: Node) -> Node | None:
    return next((child for child in node.named_children if child.type == "try_statement"), None)


def _minor_names(node: Node, source: Source) -> list[str]:
    """Variables, fields and prototypes by their declarators; macros, aliases and enumerators by their name."""
    declarators = node.children_by_field_name("declarator")
    if declarators:
        return [_declarator_name(declarator, source) for declarator in declarators]
    return [] if _is_guard(node, source) else [source.field(node, "name")]


def _is_guard(node: Node, source: Source) -> bool:
    """Whether a macro says only that its header has been read."""
    if node.type != "preproc_def" or node.child_by_field_name("value") is not None:
        return False
    outer = node.parent
    return (
        outer is not None
        and outer.type == "preproc_ifdef"
        and source.field(outer, "name") == source.field(node, "name")
    )


_DEFINITIONS = {"function_definition": Kind.CALLABLE}
_MINOR: dict[str, Path] = dict.fromkeys(
    ("declaration", "type_definition", "field_declaration", "enumerator", "preproc_def", "preproc_function_def"), ()
)
_TRANSPARENT = _PREPROCESSOR | {"field_declaration_list", "enumerator_list", "declaration_list"}

C = Language(
    name="C",
    module="tree_sitter_c",
    sample="/* é */\nstruct order { int id; };\n\nstatic int *total(struct order *o)\n{\n  return 0;\n}\n",
    expected=("order", "total"),
    definitions=_DEFINITIONS,
    minor=_MINOR,
    transparent=_TRANSPARENT | {"struct_specifier", "union_specifier", "enum_specifier"},
    read=_read,
    minor_names=_minor_names,
    prepare=without_macros,
)

CPP = Language(
    name="C++",
    module="tree_sitter_cpp",
    sample="// é\nnamespace a {\ntemplate <class T>\nvoid Stack<T>::push(T v) {}\nclass Queue { int n; };\n}\n",
    expected=("a.Stack.push", "a.Queue"),
    definitions=_DEFINITIONS,
    minor=_MINOR | {"alias_declaration": (), "concept_definition": ()},
    wrappers=frozenset({"template_declaration"}),
    transparent=_TRANSPARENT | _TYPES | {"linkage_specification"},
    read=_read,
    minor_names=_minor_names,
    prepare=without_macros,
)
