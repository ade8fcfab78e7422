"""Single-file components: Vue and Svelte. Each part is read by its own language, at the rows of the whole file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ragpilot.ingest.chunkers.code.engine import chunk_code
from ragpilot.ingest.chunkers.code.languages.ecma import JAVASCRIPT, TSX, TYPESCRIPT
from ragpilot.ingest.chunkers.lines import Lines
from ragpilot.ingest.chunkers.markup import chunk_markup
from ragpilot.ingest.chunkers.spans import Span
from ragpilot.ingest.chunkers.style import chunk_style

_OPEN = re.compile(r"^<(script|style)\b([^>]*)>\s*$", re.IGNORECASE)
_LANGUAGE = re.compile(r"""\blang=["']?(\w+)""")
_PLAIN = re.compile(r"\s*(?:import|type|interface|//|/\*|(?:export\s+)?(?:const|let|var)\b(?!.*(?:=>|\bfunction\b)))")
_MOST_BLOCKS = 16
"""Each costs a pass over the file; a component has three or four."""
_LANGUAGES = {"ts": TYPESCRIPT, "typescript": TYPESCRIPT, "tsx": TSX}


@dataclass(frozen=True, slots=True)
class _Block:
    """Rows ``start`` to ``end`` (from 0, both included) between the row of a tag and that of its end."""

    tag: str
    attributes: str
    start: int
    end: int


def chunk_single_file(path: str, lines: Lines, max_chars: int) -> list[Span]:
    """A component as spans: symbols of its script, rules of its style, elements of its template.

    Raises GrammarError when a part cannot be parsed.
    """
    blocks = _blocks(lines)
    spans = [span for block in blocks for span in _block_spans(path, lines, block, max_chars)]
    tags = [row for block in blocks for row in (block.start - 1, block.end + 1)]
    for start, end in _between(lines, blocks):
        markup = lines.only(start, end)
        spans += chunk_markup(path, markup.joined(), markup, max_chars)
    spans.sort(key=lambda span: (span.start_line, span.end_line))
    for row in tags:
        if row >= len(lines):
            continue
        _place_tag(lines, row, spans, path, max_chars)
    return spans


def _blocks(lines: Lines) -> list[_Block]:
    blocks: list[_Block] = []
    row = 0
    while row < len(lines) and len(blocks) < _MOST_BLOCKS:
        opened = _OPEN.match(lines.rows[row][:300])
        if opened is None:
            row += 1
            continue
        close = f"</{opened.group(1).lower()}>"
        end = next((at for at in range(row + 1, len(lines)) if close in lines.rows[at].lower()), len(lines))
        blocks.append(_Block(opened.group(1).lower(), opened.group(2), row + 1, end - 1))
        row = end + 1
    return blocks


def _between(lines: Lines, blocks: list[_Block]) -> Iterator[tuple[int, int]]:
    """Rows before, between and after the blocks and their tags."""
    position = 0
    for block in blocks:
        if block.start - 1 > position:
            yield position, block.start - 2
        position = block.end + 2
    if position < len(lines):
        yield position, len(lines) - 1


def _block_spans(path: str, lines: Lines, block: _Block, max_chars: int) -> list[Span]:
    part = lines.only(block.start, block.end)
    if block.tag == "style":
        return chunk_style(path, part, max_chars)
    match = _LANGUAGE.search(block.attributes)
    language = _LANGUAGES.get(match.group(1).lower() if match else "", JAVASCRIPT)
    return chunk_code(path, part.joined(), part, language, max_chars)


def _place_tag(lines: Lines, row: int, spans: list[Span], path: str, max_chars: int) -> None:
    """Put the row of a tag into a neighbour that is no declaration, or with the one before; else by itself."""
    line = row + 1
    at = next((index for index, span in enumerate(spans) if span.start_line > line), len(spans))
    opens = not lines.rows[row].lstrip().startswith("</")
    after = spans[at] if at < len(spans) else None
    # A function begins at its own line; a rule, imports and plain variables may begin at the tag.
    joins = after is not None and (
        after.symbol is None
        or "<style" in lines.rows[row].lower()
        or _PLAIN.match(lines.rows[after.start_line - 1]) is not None
    )
    follows = joins and after is not None and after.start_line == line + 1
    if opens and after is not None and follows and lines.size(row, after.end_line - 1) <= max_chars:
        spans[at] = replace(after, start_line=line, text=lines.text(row, after.end_line - 1))
        return
    before = spans[at - 1] if at else None
    if before is not None and lines.size(before.start_line - 1, row) <= max_chars:
        spans[at - 1] = replace(before, end_line=line, text=lines.text(before.start_line - 1, row))
        return
    alone = lines.only(row, row)
    spans[at:at] = chunk_markup(path, alone.joined(), alone, max_chars)
