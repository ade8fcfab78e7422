"""A collection has a name that every store can hold, and belongs to the embedder and chunker that built it."""

from __future__ import annotations

import re
from dataclasses import fields

from ragpilot.errors import IndexMismatchError, StoreError
from ragpilot.types import IndexIdentity

_CORPUS = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
REBUILD = "`ragpilot index --rebuild` builds it anew."


def require_identity(corpus: str, built: IndexIdentity, configured: IndexIdentity) -> None:
    """Raise IndexMismatchError unless the collection was built with exactly the configured identity.

    A dimension that happens to be equal, or a collection that is empty, changes nothing.
    """
    if built != configured:
        raise IndexMismatchError(
            f"The collection {corpus!r} was built with {in_words(built)}; "
            f"the configuration has {in_words(configured)}.",
            hint=REBUILD,
        )


def in_words(identity: IndexIdentity) -> str:
    """Every field that is set, so that two identities that differ also read differently."""
    embedder = identity.embedder
    details = [
        f"{item.name.replace('_', ' ')} {getattr(embedder, item.name)!r}"
        for item in fields(embedder)
        if item.name != "name" and getattr(embedder, item.name) not in ("", 0)
    ]
    return f"the embedder {embedder.name!r} ({', '.join(details)}) and the chunker {identity.chunker!r}"


def is_corpus_name(text: str) -> bool:
    """Whether a collection can have this name, in any store."""
    return _CORPUS.fullmatch(text) is not None


def require_corpus_name(text: str) -> None:
    """Raise StoreError for a name that no collection can have."""
    if not is_corpus_name(text):
        raise StoreError(f"{text!r} is no name for a corpus: letters, digits, '.', '_' and '-', at most 64.")
