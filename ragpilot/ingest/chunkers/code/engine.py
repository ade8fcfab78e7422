"""The engine: text and a language's declaration in, spans out."""

from __future__ import annotations

import posixpath
from functools import cache

from ragpilot.ingest.chunkers.code.costs import statement_cost
from ragpilot.ingest.chunkers.code.grammar import parse
from ragpilot.ingest.chunkers.code.joining import join
from ragpilot.ingest.chunkers.code.language import Kind, Language, Source
from ragpilot.ingest.chunkers.code.layout import Segment, flatten, set_apart
from ragpilot.ingest.chunkers.code.outline import outline
from ragpilot.ingest.chunkers.labels import header, numbered, shared_symbol
from ragpilot.ingest.chunkers.lines import Cut, Lines, cut
from ragpilot.ingest.chunkers.spans import Span
from ragpilot.ingest.chunkers.words import first_sentence, phrase

_MOST_TITLES = 3


def chunk_code(path: str, text: str, lines: Lines, language: Language, max_chars: int) -> list[Span]:
    """A file of code as spans. Raises GrammarError when it cannot be parsed."""
    source = Source(text)
    root = parse(language, language.prepare(source.data)).root_node
    module = outline(root, lines, source, language, max_chars)
    cost = cache(lambda: statement_cost(root, lines))
    spans: list[Span] = []
    for segment in join(set_apart(flatten(module), lines), lines, max_chars, language.constructors):
        cuts = list(cut(lines, segment.start, segment.end, max_chars, cost()))
        if segment.declares:
            symbols = [segment.unit.symbol, *filter(None, segment.also)]
            head = _declaration_header(path, segment)
            spans += numbered(cuts, _title(symbols), shared_symbol(symbols), head)
        else:
            for piece in cuts:
                symbol, title, head = _between(path, segment, piece)
                spans += numbered([piece], title, symbol, head)
    return spans


def _declaration_header(path: str, segment: Segment) -> str:
    unit = segment.unit
    details = [unit.signature, *segment.also, *segment.names(segment.start, segment.end)]
    if not segment.whole and unit.kind is Kind.TYPE:
        details += [child.name for child in unit.children]
    return header(path, phrase(unit.symbol), details=details, doc=first_sentence(unit.doc))


def _between(path: str, segment: Segment, piece: Cut) -> tuple[str | None, str, str]:
    """Symbol, title and header of rows between declarations: of what is named there, else of what is around."""
    unit = segment.unit
    qualified = [
        ".".join(part for part in (unit.scope, name) if part) for name in segment.names(piece.start, piece.end)
    ]
    names = list(dict.fromkeys([*qualified, *filter(None, segment.also)]))
    symbol = shared_symbol(names) if names else unit.symbol or None
    title = _title(names) or unit.symbol or posixpath.basename(path)
    subject = phrase(names[0] if names else unit.symbol)
    doc = first_sentence(unit.doc) if not unit.symbol and piece.start == 0 else ""
    return symbol, title, header(path, subject, details=names[1:], doc=doc)


def _title(symbols: list[str]) -> str:
    """``Cart.add, remove, …``: the first symbol whole, of the others what differs."""
    first = symbols[0] if symbols else ""
    scope = first.rpartition(".")[0] + "."
    shown = symbols[:1] + [name.removeprefix(first + ".").removeprefix(scope) for name in symbols[1:_MOST_TITLES]]
    return ", ".join(shown) + (", …" if len(symbols) > _MOST_TITLES else "")
