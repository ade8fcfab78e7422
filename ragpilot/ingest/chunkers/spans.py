"""What a chunker returns: spans of a text with the words that name them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """A citable part of one text.

    ``text`` is exactly the source rows ``start_line`` to ``end_line`` joined by a newline, except for a part of a
    single row that is longer than a chunk may be (several spans then share a line number), and for operations of
    an API description, whose text is a rendering of what the lines declare.
    """

    start_line: int
    """Counts from 1; of the file as it lies on disk."""
    end_line: int
    """Included."""
    text: str
    symbol: str | None
    """Qualified with dots: ``Order.total``; ``GET /orders`` for an operation; None where nothing is declared."""
    title: str
    """What a person sees: the symbol, the headings above, or where in the file this is."""
    header: str
    """What names the span, in plain words for an embedder; most telling words first."""
