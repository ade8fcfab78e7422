"""The start-up check of a language: its grammar loads, knows every node type of the declaration, and finds symbols."""

from __future__ import annotations

from ragpilot.ingest.chunkers.code.engine import chunk_code
from ragpilot.ingest.chunkers.code.grammar import GrammarError, load
from ragpilot.ingest.chunkers.code.language import Language
from ragpilot.ingest.chunkers.lines import Lines

_MAX_CHARS = 1_000


def problem(language: Language) -> str | None:
    """What is wrong with a language here; None when nothing is."""
    try:
        grammar = load(language)
        unknown = sorted(name for name in language.node_types() if grammar.id_for_node_kind(name, True) is None)
        if unknown:
            return f"the installed grammar does not know {', '.join(unknown)}"
        spans = chunk_code("sample", language.sample, Lines(language.sample), language, _MAX_CHARS)
    except GrammarError as error:
        return str(error)
    missing = sorted(set(language.expected) - {span.symbol for span in spans})
    return f"it does not find {', '.join(missing)} in its sample" if missing else None
