"""Swift."""

from __future__ import annotations

from tree_sitter import Node

from ragpilot.ingest.chunkers.code.language import Declared, Kind, Language, Source, follow

_NAMELESS = {"init_declaration": "init", "deinit_declaration": "deinit", "subscript_declaration": "subscript"}


def _read(node: Node, source: Source) -> Declared | None:
    """Extensions under the type that they extend; initialisers and subscripts, which have no name."""
    if node.type in _NAMELESS:
        return Declared(Kind.CALLABLE, _NAMELESS[node.type], node, node.child_by_field_name("body") or node)
    if node.type == "class_declaration":
        keyword = node.child_by_field_name("declaration_kind")
        kind = Kind.SCOPE if keyword is not None and keyword.type == "extension" else Kind.TYPE
        name = source.field(node, "name").partition("<")[0]
        return Declared(kind, name, node, node.child_by_field_name("body")) if name else None
    if node.type == "function_declaration" and not source.field(node, "name"):
        return Declared(Kind.CALLABLE, "operator", node, node.child_by_field_name("body"))
    return None


_MINOR = {
    "property_declaration": ("name", "bound_identifier"),
    "protocol_property_declaration": ("name", "bound_identifier"),
    "protocol_function_declaration": ("name",),
    "typealias_declaration": ("type_identifier",),
    "enum_entry": ("name",),
}


def _minor_names(node: Node, source: Source) -> list[str]:
    """By the paths of the table; the grammar calls what a protocol's function returns a name too."""
    names = [source.text(found) for found in follow(node, _MINOR[node.type])]
    return names[:1] if node.type == "protocol_function_declaration" else names


SWIFT = Language(
    name="Swift",
    module="tree_sitter_swift",
    sample="// é\nstruct Cart { let id: Int }\n\nextension Cart: Equatable {\n  func add(_ x: Int) -> Int { x }\n}\n",
    expected=("Cart", "Cart.add"),
    definitions={"protocol_declaration": Kind.TYPE, "function_declaration": Kind.CALLABLE},
    minor=_MINOR,
    comments=frozenset({"comment", "multiline_comment"}),
    transparent=frozenset({"class_body", "enum_class_body", "protocol_body"}),
    read=_read,
    minor_names=_minor_names,
    constructors=frozenset({"init"}),
)
