"""Jupyter notebooks by cell, without outputs. Lines are those of the file, where each row of a cell has its own."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from ragpilot.ingest.chunkers.blank_lines import chunk_lines
from ragpilot.ingest.chunkers.code.engine import chunk_code
from ragpilot.ingest.chunkers.code.grammar import GrammarError
from ragpilot.ingest.chunkers.code.languages import language_for
from ragpilot.ingest.chunkers.labels import BREADCRUMB, header, unnumbered
from ragpilot.ingest.chunkers.lines import Lines
from ragpilot.ingest.chunkers.markdown import chunk_markdown
from ragpilot.ingest.chunkers.markdown_blocks import read_blocks
from ragpilot.ingest.chunkers.sections import Heading
from ragpilot.ingest.chunkers.spans import Span
from ragpilot.ingest.chunkers.trees import TreeError, Value, read_json
from ragpilot.ingest.chunkers.words import first_sentence, phrase

_DEFAULT_LANGUAGE = "python"
_KERNEL_LANGUAGES = frozenset("javascript typescript scala kotlin csharp rust go java bash ruby php".split())
_MAGIC = ("%", "!", "?")
_MOST_DETAIL_CHARS = 400


@dataclass(frozen=True, slots=True)
class _Cell:
    kind: str
    text: str
    rows: tuple[int, ...]
    """For each row of the text, the row of the file where it stands."""


def chunk_notebook(path: str, text: str, lines: Lines, max_chars: int) -> tuple[list[Span], list[str]]:
    """A notebook as spans: cells under the headings above them. Broken JSON is cut as plain text."""
    try:
        root = read_json(text)
    except TreeError as error:
        return chunk_lines(path, lines, max_chars), [f"{error}; cut at blank lines"]
    source_type = f"code-{_language(root)}"
    spans: list[Span] = []
    notes: list[str] = []
    trail: list[Heading] = []
    for number, cell in enumerate(_cells(root), 1):
        content = Lines(cell.text)
        if cell.kind == "markdown":
            headings = read_blocks(content).headings
            for span in chunk_markdown(path, content, max_chars):
                above = _under(trail, headings[: _last_heading(span, headings)])
                spans.append(_placed(path, span, cell, above, ""))
            trail = _under(trail, headings)
        else:
            found, note = _code_spans(path, cell, content, source_type, max_chars)
            notes += note
            spans += [_placed(path, span, cell, trail, span.symbol or f"cell {number}") for span in found]
    if not spans:
        return chunk_lines(path, lines, max_chars), ["no notebook: it has no cells; cut at blank lines"]
    return spans, sorted(set(notes))


_DEFINES = [[word] for word in "def class function func fun fn object trait struct interface enum record".split()]


def _language(root: Value) -> str:
    metadata = root.get("metadata")
    info = metadata.get("language_info") if metadata is not None else None
    name = (info.string("name") if info is not None else "").lower().replace("#", "sharp").removeprefix(".net-")
    return name if name in _KERNEL_LANGUAGES else _DEFAULT_LANGUAGE


def _cells(root: Value) -> Iterator[_Cell]:
    """Cells with text, of notebook formats 3 (worksheets) and 4."""
    for holder in (root, *(sheets.elements if (sheets := root.get("worksheets")) is not None else ())):
        cells = holder.get("cells")
        for cell in cells.elements if cells is not None else ():
            source = cell.get("source") or cell.get("input")
            if source is None:
                continue
            pieces = source.elements if source.kind == "list" else [source]
            rows: list[int] = []
            for piece in pieces:
                rows += [piece.start] * (piece.text.count("\n") + (not piece.text.endswith("\n")))
            content = "".join(piece.text for piece in pieces)
            if content.strip():
                kind = cell.string("cell_type")
                yield _Cell("code" if kind == "code" else "markdown", content, (*rows, rows[-1] if rows else 0))


def _code_spans(
    path: str, cell: _Cell, content: Lines, source_type: str, max_chars: int
) -> tuple[list[Span], list[str]]:
    """A code cell: whole when it fits, otherwise at its symbols. Magics are hidden from the grammar, not from spans."""
    hidden = "\n".join("" if row.lstrip().startswith(_MAGIC) else row for row in content.rows)
    language = language_for(source_type, path, hidden)
    if language is None:
        return chunk_lines(path, content, max_chars), []
    try:
        spans = chunk_code(path, hidden, content, language, max_chars)
    except GrammarError as error:
        return chunk_lines(path, content, max_chars), [f"{error}; cut at blank lines instead"]
    if len(cell.text) > max_chars or not spans:
        return spans, []
    first, last = spans[0].start_line, spans[-1].end_line
    symbols = [span for span in spans if span.symbol]
    named = next(filter(_is_definition, symbols), symbols[0] if symbols else spans[0])
    return [replace(named, start_line=first, end_line=last, text=content.text(first - 1, last - 1))], []


def _is_definition(span: Span) -> bool:
    """Whether a span's symbol is that of a function or type: constants above it are of less interest."""
    name = (span.symbol or "").rpartition(".")[2]
    return any(row[: row.find(name)].split()[-1:] in _DEFINES for row in span.text.split("\n") if name in row)


def _last_heading(span: Span, headings: list[Heading]) -> int:
    """How many headings of its cell a span of prose stands behind; tiny sections share the span of the next."""
    before = sum(heading.start < span.start_line for heading in headings)
    title = unnumbered(span.title)
    for count in range(before, len(headings) + 1):
        if BREADCRUMB.join(heading.text for heading in _under([], headings[:count]) if heading.text) == title:
            return count
    return before


def _under(trail: list[Heading], headings: Iterable[Heading]) -> list[Heading]:
    """The headings that are open after these."""
    current = list(trail)
    for heading in headings:
        while current and current[-1].level >= heading.level:
            current.pop()
        current.append(heading)
    return current


def _placed(path: str, span: Span, cell: _Cell, trail: list[Heading], name: str) -> Span:
    """The span at the file's lines, titled and named under the headings above it."""
    start = cell.rows[span.start_line - 1] + 1
    end = cell.rows[min(span.end_line, len(cell.rows)) - 1] + 1
    names = [heading.text for heading in trail if heading.text]
    title = BREADCRUMB.join([*names, name] if name else names) or posixpath.basename(path)
    if cell.kind == "markdown":
        prose = "\n".join(row for row in span.text.split("\n") if not row.lstrip().startswith("#"))
        head = header(path, phrase(" ".join(names)), doc=first_sentence(prose))
    else:
        subject = phrase(" ".join([*names, span.symbol or ""]))
        head = header(path, subject, details=[span.text[:_MOST_DETAIL_CHARS]])
    return replace(span, start_line=start, end_line=end, title=title, header=head)
