"""Texts to spans: code at symbols, documents at headings, the rest at its own seams. No input, no output."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ragpilot.ingest.chunkers.blank_lines import chunk_lines
from ragpilot.ingest.chunkers.code.engine import chunk_code
from ragpilot.ingest.chunkers.code.grammar import GrammarError
from ragpilot.ingest.chunkers.code.languages import LANGUAGES, language_for
from ragpilot.ingest.chunkers.code.selfcheck import problem
from ragpilot.ingest.chunkers.config import chunk_config
from ragpilot.ingest.chunkers.data_schema import chunk_data_schema
from ragpilot.ingest.chunkers.docs_text import chunk_docs_text
from ragpilot.ingest.chunkers.fallback import chunk_indented, chunk_without_grammar
from ragpilot.ingest.chunkers.lines import Lines
from ragpilot.ingest.chunkers.markdown import chunk_markdown
from ragpilot.ingest.chunkers.markup import HTML, chunk_markup
from ragpilot.ingest.chunkers.notebook import chunk_notebook
from ragpilot.ingest.chunkers.openapi.chunk import chunk_api_spec
from ragpilot.ingest.chunkers.purposes import name_purposes
from ragpilot.ingest.chunkers.single_file import chunk_single_file
from ragpilot.ingest.chunkers.spans import Span
from ragpilot.ingest.chunkers.style import chunk_style

__all__ = ["CHUNKER_VERSION", "Span", "chunk_text", "chunk_text_with_notes", "self_test"]

CHUNKER_VERSION = "6"
"""Part of an index's identity: it changes when the same text gives other spans or headers."""


_INDENTED_TEMPLATES = (".haml", ".pug", ".jade", ".slim")
_CHUNKERS: Mapping[str, Callable[[str, Lines, int], list[Span]]] = {
    "config": chunk_config,
    "data-schema": chunk_data_schema,
    "docs-markdown": chunk_markdown,
    "docs-text": chunk_docs_text,
    "style": chunk_style,
}


def chunk_text(path: str, text: str, source_type: str, *, max_chars: int = 1000) -> list[Span]:
    """A text as spans of at most ``max_chars`` characters, in order; every row that is not blank is in one.

    Args:
        path: POSIX, relative to its root; its name chooses among dialects, and its words open every header.
        text: decoded, without a byte order mark.
        source_type: one of DESIGN's source types; an unknown one is cut at blank lines.
        max_chars: the most characters of a span.
    """
    return chunk_text_with_notes(path, text, source_type, max_chars=max_chars)[0]


def chunk_text_with_notes(
    path: str, text: str, source_type: str, *, max_chars: int = 1000
) -> tuple[list[Span], list[str]]:
    """The spans, and what a run should report: why a text could not be read as what it is, and how it was cut."""
    lines = Lines(text)
    if source_type == "api-spec":
        return chunk_api_spec(path, text, lines, max_chars)
    if source_type == "notebook":
        return chunk_notebook(path, text, lines, max_chars)
    try:
        return _chunk(path, text, lines, source_type, max_chars), []
    except GrammarError as error:
        return chunk_without_grammar(path, lines, max_chars), [f"{error}; cut by the look of its lines"]


def _chunk(path: str, text: str, lines: Lines, source_type: str, max_chars: int) -> list[Span]:
    language = language_for(source_type, path, text)
    if language is not None:
        return chunk_code(path, text, lines, language, max_chars)
    if source_type.startswith("code-"):
        return chunk_without_grammar(path, lines, max_chars)
    if source_type == "template":
        if path.endswith((".vue", ".svelte")):
            return chunk_single_file(path, lines, max_chars)
        if path.endswith(_INDENTED_TEMPLATES):
            return chunk_indented(path, lines, max_chars)
        return chunk_markup(path, text, lines, max_chars)
    return name_purposes(path, _CHUNKERS.get(source_type, chunk_lines)(path, lines, max_chars))


def self_test() -> dict[str, str]:
    """Languages whose grammar does not work here, and why. Their files are cut by the look of their lines."""
    found = {language.name: problem(language) for language in (*LANGUAGES, HTML)}
    return {name: text for name, text in found.items() if text is not None}
