"""Secrets in text: found by shape, by name, and by place; replaced before anything is embedded, stored or shown."""

from __future__ import annotations

from collections.abc import Iterator

from ragpilot.ingest.access_files import token_hashes
from ragpilot.ingest.secrets.arguments import find_in_arguments
from ragpilot.ingest.secrets.code import find_in_code
from ragpilot.ingest.secrets.commands import find_in_commands
from ragpilot.ingest.secrets.connections import find_in_connections
from ragpilot.ingest.secrets.directives import find_in_directives
from ragpilot.ingest.secrets.fallbacks import find_in_fallbacks
from ragpilot.ingest.secrets.files import find_in_files
from ragpilot.ingest.secrets.manifests import find_in_manifests
from ragpilot.ingest.secrets.named import find_named
from ragpilot.ingest.secrets.settings import find_in_settings
from ragpilot.ingest.secrets.shapes import find_shapes
from ragpilot.ingest.secrets.sql import find_in_sql
from ragpilot.ingest.secrets.values import Found
from ragpilot.ingest.secrets.variables import find_in_variables


def redact(text: str) -> tuple[str, tuple[str, ...]]:
    """The text with every secret replaced by ``[redacted:<kind>]``, and the kinds found, sorted.

    Lines stay where they are. Takes time linear in the text's length.
    """
    found = _free_of_overlaps(_find(text))
    if not found:
        return text, ()
    pieces: list[str] = []
    at = 0
    for start, end, kind in found:
        pieces += (text[at:start], f"[redacted:{kind}]", "\n" * text.count("\n", start, end))
        at = end
    pieces.append(text[at:])
    return "".join(pieces), tuple(sorted({kind for _, _, kind in found}))


def _find(text: str) -> Iterator[Found]:
    lowered = _lowered(text)
    yield from find_shapes(text, lowered)
    yield from token_hashes(text)
    yield from find_in_connections(text, lowered)
    yield from find_named(text, lowered)
    yield from find_in_commands(text, lowered)
    yield from find_in_variables(text, lowered)
    yield from find_in_sql(text, lowered)
    yield from find_in_code(text, lowered)
    yield from find_in_files(text)
    yield from find_in_manifests(text)
    yield from find_in_settings(text, lowered)
    yield from find_in_fallbacks(text)
    yield from find_in_arguments(text, lowered)
    yield from find_in_directives(text, lowered)


def _lowered(text: str) -> str:
    """The text in lower case, letter for letter: one letter of Unicode would become two."""
    lowered = text.lower()
    return lowered if len(lowered) == len(text) else text.replace("\u0130", "i").lower()


def _free_of_overlaps(found: Iterator[Found]) -> list[Found]:
    """In order of place; what overlaps becomes one, of the kind of the one that begins first, of those the longest."""
    kept: list[Found] = []
    for start, end, kind in sorted(found, key=lambda item: (item[0], -item[1])):
        if not kept or start >= kept[-1][1]:
            kept.append((start, end, kind))
        elif end > kept[-1][1]:
            kept[-1] = (kept[-1][0], end, kept[-1][2])
    return kept
