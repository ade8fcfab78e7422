"""Headers and titles, made the same way for every kind of text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import takewhile

from ragpilot.ingest.chunkers.lines import Cut
from ragpilot.ingest.chunkers.spans import Span
from ragpilot.ingest.chunkers.words import new_words, path_phrase

MOST_WORDS = 60
_MOST_DETAILS = 8
BREADCRUMB = " › "
_NUMBER = re.compile(r" \(\d+/\d+\)$")


def header(path: str, subject: str, *, details: Iterable[str] = (), doc: str = "") -> str:
    """``path words: subject. First sentence. further words``, at most ``MOST_WORDS`` words.

    What tells most comes first, for an embedder reads only so far. ``subject`` and ``doc`` are words already;
    ``details`` are pieces of source, of which only names that say something new are kept.
    """
    place = path_phrase(path)
    head = f"{place}: {subject}" if subject and subject != place else place
    extra = " ".join(new_words(" ".join(details), (place + " " + subject).split(), _MOST_DETAILS))
    return " ".join(". ".join(filter(None, (head, doc, extra))).split()[:MOST_WORDS])


def shared_symbol(symbols: Sequence[str]) -> str | None:
    """What several symbols on the same rows lie in: ``Cart`` for ``Cart.add`` and ``Cart.remove``.

    One alone is its own; None where nothing is common, for the first would be a wrong name for the others.
    """
    if not symbols:
        return None
    common = symbols[0].split(".")
    for symbol in symbols[1:]:
        parts = symbol.split(".")
        common = [own for own, other in takewhile(lambda pair: pair[0] == pair[1], zip(common, parts, strict=False))]
    return ".".join(common) or None


def numbered(cuts: Sequence[Cut], title: str, symbol: str | None, head: str) -> list[Span]:
    """The pieces of one thing as spans: all with its symbol and header, and a part number in their titles."""
    of = f" ({{}}/{len(cuts)})" if len(cuts) > 1 else ""
    return [
        Span(piece.start + 1, piece.end + 1, piece.text, symbol, title + of.format(number), head)
        for number, piece in enumerate(cuts, 1)
    ]


def unnumbered(title: str) -> str:
    """A title without the part number that ``numbered`` gave it."""
    return _NUMBER.sub("", title)
