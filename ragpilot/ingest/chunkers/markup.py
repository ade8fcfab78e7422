"""HTML and templates in it, cut at elements, the outermost first."""

from __future__ import annotations

import posixpath
import re

from ragpilot.ingest.chunkers.code.costs import statement_cost
from ragpilot.ingest.chunkers.code.grammar import parse
from ragpilot.ingest.chunkers.code.language import Language, Source
from ragpilot.ingest.chunkers.labels import BREADCRUMB, header, numbered
from ragpilot.ingest.chunkers.lines import Lines, cut
from ragpilot.ingest.chunkers.spans import Span
from ragpilot.ingest.chunkers.words import phrase

HTML = Language(
    name="HTML",
    module="tree_sitter_html",
    sample='<main>\n  <h1>é</h1>\n  <app-card (click)="open()"></app-card>\n</main>\n',
    expected=(),
    definitions={},
)
_TAG = re.compile(r"<([A-Za-z][\w.-]*(?::[\w.-]+)?)(?=[\s/>])((?:[^<>\"']|\"[^\"]*\"|'[^']*')*)")
_LABEL = re.compile(r"\b(?:id|name|class)=[\"']([\w-]+)")
_HEADING = re.compile(r"<(?:title|h[1-4])\b[^<>]*>([^<>]+)<", re.IGNORECASE)
_NOISE = re.compile(
    r"</?(?:div|span|p|a|ul|ol|li|br|hr|img|link|meta|table|tr|td|th|tbody|thead|svg|path|html|head|body|script|style)\b"
    r"|\b(?:class|style|href|src|rel|type|width|height|viewBox|xmlns|stroke|fill|d|px|rem|em|https?|www)\b",
    re.IGNORECASE,
)
_BINDING = re.compile(r"\{\{[^{}]*\}\}|\{[^{}]*\}")
_MOST_HEADINGS = 3
_MOST_DETAIL_CHARS = 1_000


def chunk_markup(path: str, text: str, lines: Lines, max_chars: int) -> list[Span]:
    """A template as spans, titled by the first element. ``text`` may be blank where it is not markup.

    Raises GrammarError when it cannot be parsed.
    """
    cost = statement_cost(parse(HTML, Source(text).data).root_node, lines)
    spans: list[Span] = []
    for piece in cut(lines, 0, len(lines) - 1, max_chars, cost):
        details = _NOISE.sub(" ", piece.text[:_MOST_DETAIL_CHARS])
        headings = " ".join(_HEADING.findall(piece.text)[:_MOST_HEADINGS])
        head = header(path, phrase(_BINDING.sub("", headings)), details=[details])
        spans += numbered([piece], _title(path, piece.text), None, head)
    return spans


def _title(path: str, text: str) -> str:
    """``card.component.html › section.prices``."""
    name = posixpath.basename(path)
    if (tag := _TAG.search(text)) is None:
        return name
    label = _LABEL.search(tag.group(2))
    return f"{name}{BREADCRUMB}{tag.group(1)}" + (f".{label.group(1)}" if label else "")
