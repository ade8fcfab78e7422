"""What holds for the spans of every text, whatever cut them."""

from __future__ import annotations

from collections.abc import Sequence

from ragpilot.ingest.chunkers import Span, chunk_text

MOST_HEADER_WORDS = 60
RENDERED = ("api-spec", "notebook")

Declared = list[tuple[str | None, int, int]]
"""Symbol, first and last line of each span."""


def assert_sound(text: str, spans: Sequence[Span], max_chars: int, source_type: str) -> None:
    """Every row that is not blank is in a span; spans are ordered, bounded, exact and do not overlap."""
    rows = [row.removesuffix("\r") for row in text.split("\n")]
    covered: set[int] = set()
    before = 0
    for span in spans:
        assert 1 <= span.start_line <= span.end_line <= len(rows)
        assert span.text.strip(), f"an empty span at {span.start_line}"
        assert len(span.text) <= max_chars
        assert span.title.strip()
        assert span.header.strip()
        assert len(span.header.split()) <= MOST_HEADER_WORDS
        if source_type not in RENDERED:
            whole = "\n".join(rows[span.start_line - 1 : span.end_line])
            part_of_row = span.start_line == span.end_line and span.text in rows[span.start_line - 1]
            assert span.text == whole or part_of_row or _has_a_head_above(span, whole, rows)
            assert span.start_line > before or (span.start_line == before == span.end_line and part_of_row)
        before = span.end_line
        covered.update(range(span.start_line, span.end_line + 1))
    missing = [number for number, row in enumerate(rows, 1) if row.strip() and number not in covered]
    assert source_type == "notebook" or not missing, f"rows {missing[:5]} are in no span"


def _has_a_head_above(span: Span, whole: str, rows: Sequence[str]) -> bool:
    """Whether two rows from above stand before a span's own: the head of a table, and its rule."""
    head, _, below = span.text.partition("\n")
    rule, _, text = below.partition("\n")
    place = next((at for at in range(span.start_line - 1) if list(rows[at : at + 2]) == [head, rule]), None)
    return text == whole and place is not None and "|" in head and set(rule) <= set("|-: \t")


def sound_spans(path: str, text: str, source_type: str, *, max_chars: int = 1000) -> list[Span]:
    """The spans of a text, checked."""
    spans = chunk_text(path, text, source_type, max_chars=max_chars)
    assert_sound(text, spans, max_chars, source_type)
    return spans


def declared(path: str, text: str, source_type: str) -> Declared:
    """What the spans of a text are under, and where; checked."""
    return [(span.symbol, span.start_line, span.end_line) for span in sound_spans(path, text, source_type)]


def symbols(spans: Sequence[Span]) -> list[str]:
    """The symbols of spans in order, a split one once."""
    return list(dict.fromkeys(span.symbol for span in spans if span.symbol))


def places(spans: Sequence[Span]) -> dict[str, tuple[int, int]]:
    """From the first to the last line of each symbol."""
    found: dict[str, tuple[int, int]] = {}
    for span in spans:
        if span.symbol:
            start, end = found.get(span.symbol, (span.start_line, span.end_line))
            found[span.symbol] = (min(start, span.start_line), max(end, span.end_line))
    return found
