"""The engine: text and a language's declaration in, spans out."""

from __future__ import annotations

import posixpath
from collections.abc import Callable

from ragpilot.ingest.chunkers.code.costs import statement_cost
from ragpilot.ingest.chunkers.code.grammar import parse
from ragpilot.ingest.chunkers.code.language import Kind, Language, Source
from ragpilot.ingest.chunkers.code.layout import Segment, segments
from ragpilot.ingest.chunkers.code.outline import outline
from ragpilot.ingest.chunkers.labels import header, numbered
from ragpilot.ingest.chunkers.lines import Cost, Lines, cut
from ragpilot.ingest.chunkers.spans import Span
from ragpilot.ingest.chunkers.words import first_sentence, phrase

_MOST_TITLES = 3


def chunk_code(path: str, text: str, lines: Lines, language: Language, max_chars: int) -> list[Span]:
    """A file of code as spans. Raises GrammarError when it cannot be parsed."""
    source = Source(text)
    root = parse(language, source.data).root_node
    module = outline(root, lines, source, language, max_chars)
    cost = _once(lambda: statement_cost(root, lines))
    spans: list[Span] = []
    for segment in segments(module, lines, max_chars, language.constructors):
        cuts = list(cut(lines, segment.start, segment.end, max_chars, cost()))
        symbol, title = _naming(path, segment)
        spans += numbered(cuts, title, symbol, _header(path, segment, symbol))
    return spans


def _once(make: Callable[[], Cost]) -> Callable[[], Cost]:
    made: list[Cost] = []

    def get() -> Cost:
        if not made:
            made.append(make())
        return made[0]

    return get


def _naming(path: str, segment: Segment) -> tuple[str | None, str]:
    """Symbol and title: of the declaration, or of what is named on rows between declarations."""
    unit = segment.unit
    if unit.symbol and (segment.whole or segment.head):
        return unit.symbol, ", ".join([unit.symbol, *segment.also][:_MOST_TITLES])
    qualified = [".".join(part for part in (unit.symbol, name) if part) for name in segment.names()]
    names = list(dict.fromkeys([*qualified, *segment.also]))
    if not names:
        return unit.symbol or None, unit.symbol or posixpath.basename(path)
    more = ", …" if len(names) > _MOST_TITLES else ""
    return names[0], ", ".join(names[:_MOST_TITLES]) + more


def _header(path: str, segment: Segment, symbol: str | None) -> str:
    unit = segment.unit
    declared = segment.head and bool(unit.symbol)
    details = [*segment.also, *segment.names()]
    if declared:
        details.insert(0, unit.signature)
    if not segment.whole and (declared and unit.kind is Kind.TYPE):
        details += [child.name for child in unit.children]
    top = not unit.symbol and segment.start == 0
    doc = first_sentence(unit.doc) if declared or top else ""
    return header(path, phrase(symbol or ""), details=details, doc=doc)
