"""Plain text: cut at blank rows, paragraphs packed together up to the limit."""

from __future__ import annotations

import posixpath

from ragpilot.ingest.chunkers.labels import header, numbered
from ragpilot.ingest.chunkers.lines import Lines, cut, paragraph_cost
from ragpilot.ingest.chunkers.spans import Span
from ragpilot.ingest.chunkers.words import new_words

_FIRST_WORDS = 14


def chunk_lines(path: str, lines: Lines, max_chars: int) -> list[Span]:
    """Any text as spans; the header tells where it stands and how it begins."""
    spans: list[Span] = []
    for piece in cut(lines, 0, len(lines) - 1, max_chars, paragraph_cost(lines)):
        opening = " ".join(new_words(piece.text[:400], (), _FIRST_WORDS))
        spans += numbered([piece], posixpath.basename(path), None, header(path, opening))
    return spans
