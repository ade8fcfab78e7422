"""Grammars, loaded at first use, and parsing with a bound."""

from __future__ import annotations

import importlib
import threading

import tree_sitter

from ragpilot.ingest.chunkers.code.language import Language

_READ_SIZE = 1 << 16
_STEPS_TO_START = 4_000
_BYTES_A_STEP = 6
"""The parser reports after every hundred or so operations: in real code every 150 bytes, in the worst we met every 40.

The bound counts these reports, not seconds, so that the same text gives the same chunks on a busy machine.
"""
_LARGEST = 8_000_000

_grammars: dict[tuple[str, str], tree_sitter.Language] = {}
_lock = threading.Lock()


class GrammarError(Exception):
    """A grammar cannot be loaded, or gave up on a text. The message is for a run's report."""


def load(language: Language) -> tree_sitter.Language:
    """The grammar, from its installed package. Raises GrammarError."""
    key = (language.module, language.entry)
    with _lock:
        if key not in _grammars:
            try:
                module = importlib.import_module(language.module)
                _grammars[key] = tree_sitter.Language(getattr(module, language.entry)())
            except (ImportError, AttributeError, ValueError, TypeError, OSError) as error:
                raise GrammarError(f"the grammar for {language.name} cannot be loaded: {error}") from error
        return _grammars[key]


def parse(language: Language, data: bytes) -> tree_sitter.Tree:
    """The tree of a text. Raises GrammarError when it cannot be had within the bound."""
    if len(data) > _LARGEST:
        raise GrammarError(f"{len(data):,} bytes are too many for the {language.name} grammar")
    parser = tree_sitter.Parser(load(language))
    steps = _STEPS_TO_START + len(data) // _BYTES_A_STEP

    def read(offset: int, _point: tree_sitter.Point) -> bytes:
        return data[offset : offset + _READ_SIZE]

    def give_up(_offset: int, _has_error: bool) -> bool:
        nonlocal steps
        steps -= 1
        return steps < 0

    try:
        return parser.parse(read, progress_callback=give_up)
    except ValueError as error:  # the binding's word for a parse that was given up
        raise GrammarError(f"the {language.name} grammar found no end") from error
