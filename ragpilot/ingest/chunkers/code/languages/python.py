"""Python."""

from __future__ import annotations

import re
from dataclasses import replace

from tree_sitter import Node

from ragpilot.ingest.chunkers.code.cython import as_python
from ragpilot.ingest.chunkers.code.language import Declared, Kind, Language, Source, follow

_LONGEST_PARAMETER = 48
_CUT_WORD = re.compile(r"\w+$")


def _docstring(node: Node, source: Source) -> str:
    body = node.child_by_field_name("body") or node
    for child in body.named_children:
        if child.type == "comment":
            continue
        first = child.named_child(0) if child.type == "expression_statement" and child.named_child_count else child
        text = source.text(first) if first.type == "string" else ""
        return text.lstrip("rRuUbBfF").strip("\"'")
    return ""


def _read(node: Node, source: Source) -> Declared | None:
    """An ``@overload`` is a signature of what follows it, although it has a body."""
    wrapper = node.parent
    if node.type != "function_definition" or wrapper is None or wrapper.type != "decorated_definition":
        return None
    decorators = [child for child in wrapper.named_children if child.type == "decorator"]
    if any(source.text(decorator).endswith("overload") for decorator in decorators):
        return Declared(Kind.CALLABLE, source.field(node, "name"), node, None)
    return None


def _minor_names(node: Node, source: Source) -> list[str]:
    """What is assigned to; of ``type Pairs[T] = …`` the name without its parameters."""
    if node.type == "type_alias_statement":
        return [source.field(node, "left").partition("[")[0].strip()]
    return [source.text(name) for name in follow(node, ("assignment", "left"))]


def _signature(outer: Node, declared: Declared, source: Source) -> str:
    """Decorators, bases, and of each parameter the beginning: annotations may hold whole paragraphs."""
    parts = [child for child in outer.named_children if child.type == "decorator"] if outer != declared.node else []
    for name in ("superclasses", "parameters", "return_type"):
        if (child := declared.node.child_by_field_name(name)) is not None:
            parts += [part for part in child.named_children if part.type != "comment"]
    return ", ".join(_shortened(source.text(part)) for part in parts)


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_PARAMETER else _CUT_WORD.sub("", text[:_LONGEST_PARAMETER])


PYTHON = Language(
    name="python",
    module="tree_sitter_python",
    sample="# é\n@cache\ndef first():\n    return 1\n\n\nclass Stack:\n    def push(self): ...\n",
    expected=("first", "Stack", "Stack.push"),
    definitions={"function_definition": Kind.CALLABLE, "class_definition": Kind.TYPE},
    minor={"expression_statement": (), "type_alias_statement": ()},
    wrappers=frozenset({"decorated_definition"}),
    transparent=frozenset(
        {"block", "if_statement", "elif_clause", "else_clause", "try_statement", "except_clause", "finally_clause"}
        | {"with_statement", "match_statement", "case_clause", "for_statement", "while_statement"}
    ),
    read=_read,
    minor_names=_minor_names,
    docstring=_docstring,
    signature=_signature,
    constructors=frozenset({"__init__", "__new__"}),
)

CYTHON = replace(
    PYTHON,
    name="Cython",
    sample="# é\ncdef class Parser:\n    cdef int feed(self, const char *data) except -1:\n        return 1\n",
    expected=("Parser", "Parser.feed"),
    prepare=as_python,
    constructors=PYTHON.constructors | {"__cinit__"},
)
