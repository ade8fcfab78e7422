"""Question sets drafted from an index, to be edited by hand: what is documented, and what has a heading."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from typing import Any

from ragpilot.ingest.chunkers.labels import BREADCRUMB, unnumbered
from ragpilot.naming import PROSE
from ragpilot.ranking import is_test
from ragpilot.types import Chunk

FEWEST_WORDS = 4
"""Less than this is the name of a thing and no question."""
_NOT_CONTENT = re.compile(
    r"(?:licen[cs]es?|copying|notices?|patents|authors|contributors|third.?party.*|change(?:s|log)|history|news"
    r"|releases?|release.?notes)\b.*",
    re.IGNORECASE,
)
_TEST_SYMBOL = re.compile(r"(?:^|[.:])(?:tests?$|tests?[.:_]|Tests?(?=[A-Z_.:]|$))")
_LINK = re.compile(r"\{@\w+\s+([^{}]*)\}")
_MARKS = re.compile(r"^[ \t]*[#/*!;'\"%=~>-]+|</?[A-Za-z][^<>]*>", re.MULTILINE)


def draft(chunks: Iterable[Chunk], *, most: int = 60) -> list[dict[str, Any]]:
    """Questions in the words of doc comments and of headings, with what they belong to as the label.

    At most one question a document, taken evenly over the corpus, so that the draft covers it. Tests, configuration,
    licences and change logs are passed over: nobody asks in their words.
    """
    found: dict[str, dict[str, Any]] = {}
    for chunk in sorted(chunks, key=lambda chunk: (chunk.path, chunk.start_line)):
        if chunk.path in found or is_test(chunk.path) or _NOT_CONTENT.fullmatch(posixpath.basename(chunk.path)):
            continue
        category = "heading" if chunk.source_type in PROSE else "symbol"
        query = _heading(chunk) if category == "heading" else _documentation(chunk)
        if len(re.findall(r"[^\W\d_]{2,}", query)) < FEWEST_WORDS:
            continue
        label = {
            "path": chunk.path,
            # A file's own comment stands in the chunk of whatever is declared first.
            "symbol": chunk.symbol if chunk.start_line > 1 else None,
            "start": chunk.start_line,
            "end": chunk.end_line,
            "grade": 2,
        }
        found[chunk.path] = {"query": query, "relevant": [label], "category": category}
    rows = list(found.values())
    step = max(1, -(-len(rows) // most))
    return rows[::step]


def _documentation(chunk: Chunk) -> str:
    """The first sentence of a symbol's doc comment; empty without one.

    In a header it follows the symbol's words, as the names of a signature do where there is no comment: it is told
    from them by standing word for word in the text, but for the marks of comments and markup.
    """
    if not (chunk.symbol and chunk.source_type.startswith("code-")) or _TEST_SYMBOL.search(chunk.symbol):
        return ""
    sentence = chunk.header.partition(": ")[2].partition(". ")[2].partition(". ")[0]
    return sentence if sentence and _plain(sentence) in _plain(chunk.text) else ""


def _plain(text: str) -> str:
    text = _MARKS.sub(" ", _LINK.sub(r"\1", text))
    return " ".join(re.sub(r"[`*_\"']", "", text).split())


def _heading(chunk: Chunk) -> str:
    """The heading with as many of those above it as make a question of it; empty where there is none."""
    title = unnumbered(chunk.title)
    if title == posixpath.basename(chunk.path):
        return ""
    query = ""
    for name in reversed(title.split(BREADCRUMB)):
        query = f"{name} {query}".strip()
        if len(query.split()) >= FEWEST_WORDS:
            break
    return query
