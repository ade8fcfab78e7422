"""Why an index does not fit what is configured, in words."""

from __future__ import annotations

from dataclasses import fields

from ragpilot.types import EmbedderIdentity, IndexIdentity


def misfit(built: IndexIdentity, configured: IndexIdentity) -> str:
    """What an index was built with, and what is configured: of both, what tells them apart. Goes on from "the index".

    The embedder alone is named where it is another one. Where only the rules differ by which files are cut into
    passages, that is no embedder's fault: RagPilot was updated since, or ``[ingest]`` was changed.
    """
    if built.embedder == configured.embedder:
        return (
            f"was cut into passages by other rules ({built.chunker}) than are in force ({configured.chunker}), "
            "as after an update of RagPilot or a change of [ingest]"
        )
    before, now = _described(built.embedder, configured.embedder), _described(configured.embedder, built.embedder)
    return f"was built with {before}; configured is {now}"


def _described(one: EmbedderIdentity, other: EmbedderIdentity) -> str:
    """Name and dimensions, and whatever else is not the same."""
    further = [
        f"{item.name.replace('_', ' ')} {getattr(one, item.name)!r}"
        for item in fields(one)
        if item.name not in ("name", "dimensions") and getattr(one, item.name) != getattr(other, item.name)
    ]
    return f"{one.name} ({', '.join([f'{one.dimensions} dimensions', *further])})"
