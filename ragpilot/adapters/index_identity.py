"""A collection belongs to the embedder and chunker that built it: refusing another one, in words that show why."""

from __future__ import annotations

from dataclasses import fields

from ragpilot.errors import IndexMismatchError
from ragpilot.types import IndexIdentity

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
