"""An API description as spans."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter

from ragpilot.ingest.chunkers.config import chunk_config
from ragpilot.ingest.chunkers.labels import header, numbered
from ragpilot.ingest.chunkers.lines import Cut, Lines, cut, cut_row
from ragpilot.ingest.chunkers.openapi.operations import (
    Operation,
    operations,
    own_entries,
    parameter_names,
    render,
    writers,
)
from ragpilot.ingest.chunkers.openapi.remainder import Remainder, complete
from ragpilot.ingest.chunkers.openapi.schemas import SchemaWriter
from ragpilot.ingest.chunkers.parts import Part, chunk_parts, fill
from ragpilot.ingest.chunkers.spans import Span
from ragpilot.ingest.chunkers.starts import indent_cost
from ragpilot.ingest.chunkers.trees import TreeError, Value, read_json, read_yaml
from ragpilot.ingest.chunkers.words import first_sentence, phrase

_NAMED_GROUPS = ("components", "definitions", "parameters", "responses", "securityDefinitions")
_RENDERED_DEPTH = 1
_SAYS_NOTHING = re.compile(
    r"[\s{}\[\],]*|\s*[\"']?(?:/[^:#]{0,200}|(?:paths|webhooks|components|definitions)[\"']?\s*):\s*\{?\s*"
)
_LONGEST_ROW = 300


@dataclass(frozen=True, slots=True)
class _Rendering:
    """A part of a description in words, for rows ``start`` to ``end`` (from 0, both included)."""

    start: int
    end: int
    name: str
    head: str
    text: str


def chunk_api_spec(path: str, text: str, lines: Lines, max_chars: int) -> tuple[list[Span], list[str]]:
    """Operations as renderings, with the rows where they stand; schemas and all other rows as they are.

    A rendering holds every word of its rows. Notes say why a text was cut as plain configuration: it is no
    well-formed JSON or YAML, or describes no API.
    """
    try:
        roots = [read_json(text)] if text.lstrip()[:1] in ("{", "[") else read_yaml(text)
    except TreeError as error:
        return chunk_config(path, lines, max_chars), [f"{error}; cut as configuration"]
    roots = [root for root in roots if root.kind == "map" and (root.get("openapi") or root.get("swagger"))]
    if not roots:
        return chunk_config(path, lines, max_chars), ["no OpenAPI or Swagger document; cut as configuration"]
    found = _with_remnants(lines, roots, [(root, operation) for root in roots for operation in operations(root)])
    held = {row for _, operation in found for row in range(operation.start, operation.end + 1)}
    parts = sorted((part for root in roots for part, _ in _parts(root)), key=lambda part: part.start)
    renderings = list(_rendered_operations(path, found, max_chars))
    if any(part.start in held for part in parts):  # all on the same few rows: a file without line breaks
        renderings += _rendered_parts(path, roots)
        held.update(row for part in parts for row in range(part.start, part.end + 1))
        parts = []
    spans: list[Span] = []
    for region in _regions(fill(lines, parts), held):
        spans += chunk_parts(path, lines, region, indent_cost(lines), max_chars)
    kept = {row for span in spans for row in range(span.start_line - 1, span.end_line)}
    texts = complete(lines, [(rendering.start, rendering.end, rendering.text) for rendering in renderings], kept)
    for rendering, whole in zip(renderings, texts, strict=True):
        spans += _pieces(replace(rendering, text=whole), max_chars)
    spans.sort(key=lambda span: (span.start_line, span.end_line))
    return spans, []


def _with_remnants(
    lines: Lines, roots: list[Value], found: list[tuple[Value, Operation]]
) -> list[tuple[Value, Operation]]:
    """Operations with the few rows behind them that say nothing alone: closing brackets, the next path's key."""
    begun = {part.start for root in roots for part, _ in _parts(root)} | {operation.start for _, operation in found}
    widened: list[tuple[Value, Operation]] = []
    for root, operation in found:
        end = operation.end
        while end + 1 < len(lines) and end + 1 not in begun and _SAYS_NOTHING.fullmatch(lines.rows[end + 1]):
            end += 1
        widened.append((root, replace(operation, end=end)))
    return widened


def _rendered_operations(path: str, found: list[tuple[Value, Operation]], max_chars: int) -> Iterator[_Rendering]:
    remainder = Remainder()
    for root, group in groupby(found, key=itemgetter(0)):
        schemas = writers(root)
        for _, operation in group:
            value = operation.value
            subject = f"{phrase(operation.symbol)} {phrase(value.string('operationId'))}".strip()
            about = first_sentence(value.string("summary") or value.string("description"))
            head = header(path, subject, details=parameter_names(root, operation), doc=about)
            text = render(root, operation, schemas, max_chars)
            further = remainder.write(own_entries(operation), text, operation.start, operation.end)
            text = f"{text}\n{further}" if further else text
            yield _Rendering(operation.start, operation.end, operation.symbol, head, text)


def _rendered_parts(path: str, roots: list[Value]) -> Iterator[_Rendering]:
    """Title and schemas in words, where rows cannot tell them from the operations."""
    remainder = Remainder()
    for root in roots:
        writer = SchemaWriter(root, _RENDERED_DEPTH)
        for part, value in _parts(root):
            written = writer.write(value) if value.kind != "list" else ""
            text = f"{part.name}\n{written}".rstrip()
            if further := remainder.write([(part.name, value)], text, part.start, part.end):
                text += f"\n{further}"
            head = header(path, phrase(part.name), details=[text])
            yield _Rendering(part.start, part.end, part.name, head, text)


def _pieces(rendering: _Rendering, max_chars: int) -> list[Span]:
    lines = _wrapped(rendering.text)
    pieces = cut(lines, 0, len(lines) - 1, max_chars, indent_cost(lines))
    cuts = [Cut(rendering.start, rendering.end, piece.text) for piece in pieces]
    return numbered(cuts, rendering.name, rendering.name, rendering.head)


def _wrapped(text: str) -> Lines:
    """A rendering with its long lines broken, so that pieces of it can be filled."""
    return Lines("\n".join(part.rstrip(" ") for row in text.split("\n") for part in cut_row(row, _LONGEST_ROW)))


def _parts(root: Value) -> Iterator[tuple[Part, Value]]:
    """Top-level parts, and each schema, parameter, response … by its name."""
    for key, value in root.entries.items():
        row = root.key_rows[key]
        if key in ("paths", "webhooks"):
            continue
        if key not in _NAMED_GROUPS or value.kind != "map":
            yield Part(row, max(value.end, row), key), value
            continue
        for name, inner in value.entries.items():
            yield from _named(f"{key}.{name}", value.key_rows[name], inner, deeper=key == "components")


def _named(name: str, row: int, value: Value, *, deeper: bool) -> Iterator[tuple[Part, Value]]:
    if deeper and value.kind == "map" and value.entries:
        for inner, member in value.entries.items():
            yield from _named(f"{name}.{inner}", value.key_rows[inner], member, deeper=False)
    else:
        yield Part(row, max(value.end, row), name, apart=True), value


def _regions(parts: list[Part], held: set[int]) -> Iterator[list[Part]]:
    """What is left of the parts, in groups with no operation between."""
    region: list[Part] = []
    for part in parts:
        start = part.start
        for row in range(part.start, part.end + 2):
            if row <= part.end and row not in held:
                continue
            if row > start:
                region.append(replace(part, start=start, end=row - 1))
            if row in held and region:
                yield region
                region = []
            start = row + 1
    if region:
        yield region
