"""Code without its grammar: cut where a row looks like the beginning of a declaration, conservatively."""

from __future__ import annotations

import re

from ragpilot.ingest.chunkers.lines import Lines
from ragpilot.ingest.chunkers.parts import chunk_parts
from ragpilot.ingest.chunkers.spans import Span
from ragpilot.ingest.chunkers.starts import indent_cost, split_at

_MODIFIERS = (
    "export|default|public|private|protected|internal|static|abstract|final|sealed|partial|async|override|open|data"
    "|pub(?:\\([a-z]+\\))?|inline|unsafe|extern|declare|const"
)
_DECLARATION = re.compile(
    rf"^[ \t]{{0,4}}(?:(?:{_MODIFIERS})[ \t]+){{0,5}}"
    r"(?:def|class|func|fun|fn|function|interface|struct|enum|trait|module|namespace|object|protocol|extension|record|type)"
    r"[ \t]+(?:\([^()]{0,60}\)[ \t]*)?([A-Za-z_$][\w.$]{0,100})"
)


def chunk_without_grammar(path: str, lines: Lines, max_chars: int) -> list[Span]:
    """Code as spans whose symbols are unqualified."""
    parts = split_at(lines, _DECLARATION, ("#", "//", "/*", "*", "@", "["), apart=True)
    return chunk_parts(path, lines, parts, indent_cost(lines), max_chars)
