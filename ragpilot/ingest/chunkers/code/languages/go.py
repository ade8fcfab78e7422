"""Go."""

from __future__ import annotations

from tree_sitter import Node

from ragpilot.ingest.chunkers.code.language import Declared, Kind, Language, Source, follow

_SHAPES = ("struct_type", "interface_type")


def _read(node: Node, source: Source) -> Declared | None:
    """Methods under their receiver's type; a type that is declared alone with its declaration's comments."""
    if node.type == "method_declaration":
        receiver = _receiver(node, source)
        name = source.field(node, "name")
        return Declared(Kind.CALLABLE, f"{receiver}.{name}" if receiver else name, node, _body(node))
    if node.type == "type_declaration" and node.named_child_count == 1:
        node = node.named_children[0]
    if node.type == "type_spec":
        shape = node.child_by_field_name("type")
        if shape is not None and shape.type in _SHAPES:
            return Declared(Kind.TYPE, source.field(node, "name"), shape, shape)
    return None


def _receiver(node: Node, source: Source) -> str:
    """The receiver's type without pointer, package and type parameters: ``*Stack[T]`` gives ``Stack``."""
    types = follow(node, ("receiver", "parameter_declaration", "type"))
    text = source.text(types[0]) if types else ""
    return text.partition("[")[0].strip("*() \t").rpartition(".")[2]


def _body(node: Node) -> Node | None:
    return node.child_by_field_name("body")


GO = Language(
    name="Go",
    module="tree_sitter_go",
    sample="package ds // é\n\n// Push adds.\nfunc (s *Stack[T]) Push(v T) {}\n\nfunc New() {}\n",
    expected=("Stack.Push", "New"),
    definitions={"function_declaration": Kind.CALLABLE},
    minor={
        "type_spec": ("name",),
        "type_alias": ("name",),
        "const_spec": ("name",),
        "var_spec": ("name",),
        "field_declaration": ("name",),
        "method_elem": ("name",),
    },
    transparent=frozenset(
        {"type_declaration", "const_declaration", "var_declaration", "var_spec_list", "field_declaration_list"}
    ),
    read=_read,
)
