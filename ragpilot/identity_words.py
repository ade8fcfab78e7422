"""Why an index does not fit what is configured, in words."""

from __future__ import annotations

from dataclasses import fields

from ragpilot.types import EmbedderIdentity, IndexIdentity

REBUILD = "`ragpilot index --rebuild` builds it anew."
CUT_ANEW = "`ragpilot index` cuts it anew; vectors of texts that did not change are kept."


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


def only_cut_otherwise(built: IndexIdentity, configured: IndexIdentity) -> bool:
    """Whether an index differs in nothing but how files were cut: then a run brings it up to date by itself."""
    return built.embedder == configured.embedder and built.chunker != configured.chunker


def remedy(built: IndexIdentity, configured: IndexIdentity) -> str:
    """What makes an index fit that does not, as a sentence with the command."""
    return CUT_ANEW if only_cut_otherwise(built, configured) else REBUILD


def cut_anew(built: str, configured: str, *, doing: str = "it is cut anew") -> str:
    """What is told where an index was cut by the chunker ``built``, and ``doing`` is done about it."""
    before, now = built.partition(";")[0], configured.partition(";")[0]
    if before == now:
        why = "[ingest] was changed since this index was cut"
    else:
        earlier = before.isdecimal() and now.isdecimal() and int(before) < int(now)
        why = f"This index was cut by {'an earlier' if earlier else 'another'} version of RagPilot"
    return f"{why}: {doing}; vectors of texts that did not change are kept."


def _described(one: EmbedderIdentity, other: EmbedderIdentity) -> str:
    """Name and dimensions, and whatever else is not the same."""
    further = [
        f"{item.name.replace('_', ' ')} {getattr(one, item.name)!r}"
        for item in fields(one)
        if item.name not in ("name", "dimensions") and getattr(one, item.name) != getattr(other, item.name)
    ]
    return f"{one.name} ({', '.join([f'{one.dimensions} dimensions', *further])})"
