"""The identity of an embedder behind a service, kept across starts: while the service is away, what it was is known."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Protocol

from ragpilot.errors import EmbedderUnavailableError
from ragpilot.types import EmbedderIdentity


class Preparable(Protocol):
    """An embedder whose identity is known only after contact."""

    @property
    def identity(self) -> EmbedderIdentity:
        """Raises EmbedderUnavailableError before the first contact, unless it was remembered."""
        ...

    async def prepare(self) -> None:
        """Learn or prove the identity."""
        ...


def recall(file: Path, source: str) -> EmbedderIdentity | None:
    """What ``source`` was when ``file`` was written; None for another source, and for a file that says nothing.

    Args:
        file: In the state folder.
        source: All that is configured of the embedder: kind, address, model.
    """
    try:
        data = json.loads(file.read_bytes())
        return EmbedderIdentity(**data["identity"]) if data["source"] == source else None
    except (OSError, ValueError, TypeError, KeyError):
        return None


async def prepare_remembered(embedder: Preparable, file: Path, source: str) -> str | None:
    """Prepare ``embedder`` and keep its identity in ``file``.

    Returns:
        None, or why the service is away, where a remembered identity lets everything else start without it.

    Raises:
        EmbedderUnavailableError: The service is away, and nothing is known of it yet.
        EmbedderError: The service gives other vectors than it did, or none.
    """
    try:
        await embedder.prepare()
    except EmbedderUnavailableError as error:
        if recall(file, source) is None:
            raise
        return str(error)
    identity = embedder.identity
    if recall(file, source) != identity:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        temporary = file.with_suffix(".tmp")
        temporary.write_text(json.dumps({"source": source, "identity": asdict(identity)}, indent=1), encoding="utf-8")
        temporary.replace(file)
    return None
