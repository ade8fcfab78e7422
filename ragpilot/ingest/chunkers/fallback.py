"""Code and templates without a grammar: cut where a row looks like the beginning of a declaration, conservatively."""

from __future__ import annotations

import re

from ragpilot.ingest.chunkers.lines import Lines
from ragpilot.ingest.chunkers.parts import Part, chunk_parts
from ragpilot.ingest.chunkers.spans import Span
from ragpilot.ingest.chunkers.starts import indent_cost, split_at

_MODIFIERS = (
    "export|default|public|private|protected|internal|static|abstract|final|sealed|partial|async|override|open|data"
    "|pub(?:\\([a-z]+\\))?|inline|unsafe|extern|declare|const|local|shared|friend|global"
)
_KEYWORDS = (
    "def|defp|defmodule|defmacro|class|func|fun|fn|function|sub|proc|procedure|subroutine|interface|struct|enum|trait"
    "|module|namespace|object|protocol|extension|record|type|contract|library|mixin|package|let|predicate|macro"
)
_DECLARATION = re.compile(
    rf"^[ \t]{{0,4}}(?:(?:{_MODIFIERS})[ \t]+){{0,5}}(?:{_KEYWORDS})[ \t]+"
    r"(?:rec[ \t]+)?(?:\([^()]{0,60}\)[ \t]*)?([A-Za-z_$][\w.$:-]{0,100}\w|[A-Za-z_$])"
    r"|^\([ \t]*def\w*-?[ \t]+\(?([^\s()\[\]]{1,100})"  # Lisps
    r"|^([A-Za-z.][\w.]{0,100})[ \t]*(?:<-|=)[ \t]*function\b"  # R, Lua
    r"|^([a-z][\w']{0,100})[ \t]*::[ \t]"  # Haskell
    # Terraform, whose blocks have a kind and a name
    r"|^(?:resource|data|module|variable|output|provider)[ \t]+\"([^\"]{1,100})\"(?:[ \t]+\"([^\"]{1,100})\")?",
    re.IGNORECASE,
)
_COMMENTS = ("#", "//", "/*", "*", "--", ";", "%", "@", "[", "'")


def chunk_without_grammar(path: str, lines: Lines, max_chars: int) -> list[Span]:
    """Code as spans whose symbols are unqualified."""
    parts = split_at(lines, _DECLARATION, _COMMENTS, name=_name, apart=True)
    return chunk_parts(path, lines, parts, indent_cost(lines), max_chars)


def _name(match: re.Match[str]) -> str:
    return ".".join(group for group in match.groups() if group)


def chunk_indented(path: str, lines: Lines, max_chars: int) -> list[Span]:
    """Text whose indentation is all that is known of it."""
    return chunk_parts(path, lines, [Part(0, len(lines) - 1, "")], indent_cost(lines), max_chars)
