"""PHP, with or without HTML around it."""

from __future__ import annotations

from tree_sitter import Node

from ragpilot.ingest.chunkers.code.language import Kind, Language, Source


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
    name_of=_name,
    constructors=frozenset({"__construct"}),
)
