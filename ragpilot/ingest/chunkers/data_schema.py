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


def chunk_data_schema(path: str, lines: Lines, max_chars: int) -> list[Span]:
    """A schema as spans; a span's symbol is what it declares. What has no other language's ending is read as SQL."""
    name = path.lower()
    cost = indent_cost(lines)
    if name.endswith(".proto"):
        whole = split_at(lines, _PROTO, ("//", "/*", "*"), apart=True)
        parts = [part for one in whole for part in _calls(lines, one, max_chars)]
    elif name.endswith((".graphql", ".gql", ".graphqls")):
        parts = split_at(lines, _GRAPHQL, ("#", '"'), inside=rows_between(lines, '"""'), apart=True)
    elif name.endswith((".prisma", ".thrift", ".fbs", ".capnp", ".dbml")):
        parts = split_at(lines, _BLOCKS, ("//", "/*", "*", "#"), apart=True)
    elif name.endswith(".avsc"):
        return chunk_config(path, lines, max_chars)
    else:
        parts = [part for one in read_statements(lines) for part in split_package(lines, one)]
    return chunk_parts(path, lines, parts, cost, max_chars)
