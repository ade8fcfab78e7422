"""An API description as spans."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ragpilot.ingest.chunkers.config import chunk_config
from ragpilot.ingest.chunkers.labels import header, numbered
from ragpilot.ingest.chunkers.lines import Cut, Lines, cut, cut_row, paragraph_cost
from ragpilot.ingest.chunkers.openapi.operations import Operation, operations, parameter_names, render, writers
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


def chunk_api_spec(path: str, text: str, lines: Lines, max_chars: int) -> tuple[list[Span], list[str]]:
    """Operations as renderings, with the rows where they stand; schemas and all other rows as they are.

    Notes say why a text was cut as plain configuration: it is no well-formed JSON or YAML, or describes no API.
    """
    try:
        root = read_json(text) if text.lstrip()[:1] in ("{", "[") else read_yaml(text)
    except TreeError as error:
        return chunk_config(path, lines, max_chars), [f"{error}; cut as configuration"]
    if root.kind != "map" or not (root.get("openapi") or root.get("swagger")):
        return chunk_config(path, lines, max_chars), ["no OpenAPI or Swagger document; cut as configuration"]
    found = _with_remnants(lines, root, list(operations(root)))
    schemas = writers(root)
    spans = [span for operation in found for span in _operation_spans(path, root, operation, schemas, max_chars)]
    spans += _rest(path, lines, root, found, max_chars)
    spans.sort(key=lambda span: (span.start_line, span.end_line))
    return spans, []


def _with_remnants(lines: Lines, root: Value, found: list[Operation]) -> list[Operation]:
    """Operations with the few rows behind them that say nothing alone: closing brackets, the next path's key."""
    begun = {part.start for part, _ in _parts(root)} | {operation.start for operation in found}
    widened: list[Operation] = []
    for operation in found:
        end = operation.end
        while end + 1 < len(lines) and end + 1 not in begun and _SAYS_NOTHING.fullmatch(lines.rows[end + 1]):
            end += 1
        widened.append(replace(operation, end=end))
    return widened


def _operation_spans(
    path: str, root: Value, operation: Operation, schemas: Sequence[SchemaWriter], max_chars: int
) -> list[Span]:
    rendering = _wrapped(render(root, operation, schemas, max_chars))
    pieces = list(cut(rendering, 0, len(rendering) - 1, max_chars, indent_cost(rendering)))
    cuts = [Cut(operation.start, operation.end, piece.text) for piece in pieces]
    value = operation.value
    subject = f"{phrase(operation.symbol)} {phrase(value.string('operationId'))}".strip()
    about = first_sentence(value.string("summary") or value.string("description"))
    head = header(path, subject, details=parameter_names(root, operation), doc=about)
    return numbered(cuts, operation.symbol, operation.symbol, head)


def _wrapped(text: str) -> Lines:
    """A rendering with its long lines broken, so that pieces of it can be filled."""
    return Lines("\n".join(part.rstrip(" ") for row in text.split("\n") for part in cut_row(row, _LONGEST_ROW)))


def _rest(path: str, lines: Lines, root: Value, found: list[Operation], max_chars: int) -> list[Span]:
    """Rows that no operation holds, by the part of the document they belong to."""
    held = {row for operation in found for row in range(operation.start, operation.end + 1)}
    parts = sorted((part for part, _ in _parts(root)), key=lambda part: part.start)
    if any(part.start in held for part in parts):
        return _rendered_rest(path, root, max_chars)  # all on the same few rows: a file without line breaks
    spans: list[Span] = []
    for region in _regions(fill(lines, parts), held):
        spans += chunk_parts(path, lines, region, indent_cost(lines), max_chars)
    return spans


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


def _rendered_rest(path: str, root: Value, max_chars: int) -> list[Span]:
    """Title and schemas in words, where rows cannot tell them from the operations."""
    writer = SchemaWriter(root, _RENDERED_DEPTH)
    spans: list[Span] = []
    for part, value in _parts(root):
        text = Lines(f"{part.name}\n{writer.write(value)}")
        pieces = cut(text, 0, len(text) - 1, max_chars, paragraph_cost(text))
        cuts = [Cut(part.start, part.end, piece.text) for piece in pieces]
        head = header(path, phrase(part.name), details=[text.text(0, len(text) - 1)])
        spans += numbered(cuts, part.name, part.name, head)
    return spans
