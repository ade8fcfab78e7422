"""A collection has a name that every store can hold, and belongs to the embedder and chunker that built it."""

from __future__ import annotations

import re

from ragpilot.errors import IndexMismatchError, StoreError
from ragpilot.identity_words import REBUILD, misfit, remedy
from ragpilot.types import IndexIdentity

__all__ = ["REBUILD", "is_corpus_name", "require_corpus_name", "require_identity"]

_CORPUS = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def require_identity(corpus: str, built: IndexIdentity, configured: IndexIdentity) -> None:
    """Raise IndexMismatchError unless the collection was built with exactly the configured identity.

    A dimension that happens to be equal, or a collection that is empty, changes nothing.
    """
    if built != configured:
        hint = remedy(built, configured)
        raise IndexMismatchError(f"The index of corpus {corpus!r} {misfit(built, configured)}.", hint=hint)


def is_corpus_name(text: str) -> bool:
    """Whether a collection can have this name, in any store."""
    return _CORPUS.fullmatch(text) is not None


def require_corpus_name(text: str) -> None:
    """Raise StoreError for a name that no collection can have."""
    if not is_corpus_name(text):
        raise StoreError(f"{text!r} is no name for a corpus: letters, digits, '.', '_' and '-', at most 64.")
