"""SQL by statement, protobuf by message and service, GraphQL by type, and their relatives."""

from __future__ import annotations

import re
from dataclasses import replace

from ragpilot.ingest.chunkers.config import chunk_config
from ragpilot.ingest.chunkers.lines import Lines
from ragpilot.ingest.chunkers.parts import Part, chunk_parts
from ragpilot.ingest.chunkers.spans import Span
from ragpilot.ingest.chunkers.sql import read_statements, split_package
from ragpilot.ingest.chunkers.starts import indent_cost, rows_between, split_at

_PROTO = re.compile(
    r"^[ \t]?(?:message|enum|service|extend|oneof)[ \t]+([\w.]+)|^[ \t]?(?P<together>syntax|package|import|option)\b"
)
_BLOCKS = re.compile(
    r"^(?:model|enum|type|datasource|generator|struct|service|exception|union|table|interface|view)[ \t]+\"?([\w.]+)",
    re.IGNORECASE,
)
_GRAPHQL = re.compile(
    r"^(?:extend[ \t]+)?(?:type|interface|input|enum|union|scalar|directive|query|mutation|subscription|fragment)"
    r"[ \t]+(@?\w+)|^(?:extend[ \t]+)?(schema|query|mutation)\b"
)


_SERVICE = re.compile(r"^[ \t]?service\b")
_MESSAGE = re.compile(r"[ \t]+(?:message|enum)[ \t]+(\w+)")
_NO_BRACES = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|//.*|/\*.*?\*/")
_REMARKS = ("//", "/*", "*")
_DEEPEST = 6
_CALL = re.compile(r"^[ \t]+rpc[ \t]+(\w+)")


def _calls(lines: Lines, part: Part, max_chars: int) -> list[Part]:
    """The calls of a service that does not fit as parts of their own, each with what stands above it."""
    rows = range(part.start, part.end + 1)
    if lines.size(part.start, part.end) <= max_chars or not any(_SERVICE.match(lines.rows[row]) for row in rows):
        return [part]
    service = lines.only(part.start, part.end)
    found = [one for one in split_at(service, _CALL, ("//", "/*", "*"), apart=True) if one.start <= part.end]
    inside = [replace(one, start=max(one.start, part.start), end=min(one.end, part.end)) for one in found]
    return [replace(one, name=f"{part.name}.{one.name}" if one.name else part.name, apart=True) for one in inside]


def _messages(lines: Lines, part: Part, max_chars: int, depth: int = 0) -> list[Part]:
    """The messages and enumerations in a message that does not fit as parts of their own, under its name and theirs."""
    if lines.size(part.start, part.end) <= max_chars or depth == _DEEPEST or not part.name:
        return [part]
    found = [part]
    open_braces = 0
    begun = False  # whether the brace of the inner one has been seen
    for row in range(part.start, part.end + 1):
        text = _NO_BRACES.sub("", lines.rows[row])
        inner = _MESSAGE.match(text) if open_braces == 1 else None
        if inner is not None and row > part.start:
            start = row
            while start - 1 > found[-1].start and lines.rows[start - 1].lstrip().startswith(_REMARKS):
                start -= 1
            found[-1] = replace(found[-1], end=start - 1)
            found.append(Part(start, part.end, f"{part.name}.{inner[1]}", apart=True))
            begun = False
        open_braces += text.count("{") - text.count("}")
        begun = begun or "{" in text
        if open_braces == 1 and begun and found[-1].name != part.name and row < part.end:
            found[-1] = replace(found[-1], end=row)
            found.append(Part(row + 1, part.end, part.name, apart=True))
    found = [one for one in found if lines.trim(one.start, one.end) is not None]
    return [
        deep
        for one in found
        for deep in ([one] if one.name == part.name else _messages(lines, one, max_chars, depth + 1))
    ]


def chunk_data_schema(path: str, lines: Lines, max_chars: int) -> list[Span]:
    """A schema as spans; a span's symbol is what it declares. What has no other language's ending is read as SQL."""
    name = path.lower()
    cost = indent_cost(lines)
    if name.endswith(".proto"):
        whole = split_at(lines, _PROTO, ("//", "/*", "*"), apart=True)
        calls = (part for one in whole for part in _calls(lines, one, max_chars))
        parts = [part for one in calls for part in _messages(lines, one, max_chars)]
    elif name.endswith((".graphql", ".gql", ".graphqls")):
        parts = split_at(lines, _GRAPHQL, ("#", '"'), inside=rows_between(lines, '"""'), apart=True)
    elif name.endswith((".prisma", ".thrift", ".fbs", ".capnp", ".dbml")):
        parts = split_at(lines, _BLOCKS, ("//", "/*", "*", "#"), apart=True)
    elif name.endswith(".avsc"):
        return chunk_config(path, lines, max_chars)
    else:
        parts = [part for one in read_statements(lines) for part in split_package(lines, one)]
    return chunk_parts(path, lines, parts, cost, max_chars)
