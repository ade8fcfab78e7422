"""Bash and its relatives."""

from __future__ import annotations

import re

from tree_sitter import Node

from ragpilot.ingest.chunkers.code.language import Kind, Language, Source, spoken

_TEST = re.compile(
    rb"^@test[ \t]{1,8}(?P<says>\"(?:[^\"\\\n]|\\.){1,400}\"|'[^'\n]{1,400}')(?=[ \t]{0,8}\{)", re.MULTILINE
)
_PATTERN = re.compile(rb"(\[\[[ \t][^\n]{1,200}?) = (?=\*)")


def _prepared(data: bytes) -> bytes:
    """Bats' ``@test "adds one" {`` as a function with a name of as many letters; and what the grammar errs at.

    It takes an escaped backtick for the end of a string, and reads patterns behind ``==`` alone.
    """
    data = _PATTERN.sub(rb"\1 ==", data.replace(b"\\`", b"__"))
    return _TEST.sub(lambda match: b"_" * (len(match[0]) - 2) + b"()", data)


def _name(node: Node, source: Source) -> str:
    name = node.child_by_field_name("name")
    if name is None or not source.text(name).startswith("@test"):
        return source.field(node, "name")
    return spoken(source.between(name.start_byte, name.end_byte + len("()")).removeprefix("@test").strip())


BASH = Language(
    name="Bash",
    module="tree_sitter_bash",
    sample="# é\nset -e\nbuild() {\n  make\n}\nfunction deploy { true; }\n",
    expected=("build", "deploy"),
    definitions={"function_definition": Kind.CALLABLE},
    minor={"variable_assignment": ("name",), "declaration_command": ("variable_assignment", "name")},
    transparent=frozenset({"if_statement", "elif_clause", "else_clause", "list"}),
    name_of=_name,
    prepare=_prepared,
)
