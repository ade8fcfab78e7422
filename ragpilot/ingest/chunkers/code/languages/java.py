"""Java."""

from __future__ import annotations

from ragpilot.ingest.chunkers.code.language import Kind, Language

JAVA = Language(
    name="Java",
    module="tree_sitter_java",
    sample="// é\n@Entity\nclass Order {\n  int total() { return 1; }\n}\n",
    expected=("Order", "Order.total"),
    definitions={
        "class_declaration": Kind.TYPE,
        "interface_declaration": Kind.TYPE,
        "enum_declaration": Kind.TYPE,
        "record_declaration": Kind.TYPE,
        "annotation_type_declaration": Kind.TYPE,
        "method_declaration": Kind.CALLABLE,
        "constructor_declaration": Kind.CALLABLE,
        "compact_constructor_declaration": Kind.CALLABLE,
    },
    minor={
        "field_declaration": ("declarator", "name"),
        "constant_declaration": ("declarator", "name"),
        "enum_constant": ("name",),
        "annotation_type_element_declaration": ("name",),
    },
    comments=frozenset({"line_comment", "block_comment"}),
    transparent=frozenset(
        {"class_body", "interface_body", "enum_body", "enum_body_declarations", "annotation_type_body"}
    ),
)
