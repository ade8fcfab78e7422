"""Bash and its relatives."""

from __future__ import annotations

from ragpilot.ingest.chunkers.code.language import Kind, Language

BASH = Language(
    name="Bash",
    module="tree_sitter_bash",
    sample="# é\nset -e\nbuild() {\n  make\n}\nfunction deploy { true; }\n",
    expected=("build", "deploy"),
    definitions={"function_definition": Kind.CALLABLE},
    minor={"variable_assignment": ("name",), "declaration_command": ("variable_assignment", "name")},
    transparent=frozenset({"if_statement", "elif_clause", "else_clause"}),
)
