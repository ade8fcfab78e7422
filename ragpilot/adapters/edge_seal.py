"""What a collection's files were when it was last whole, so that one that was cut short or lost is noticed.

The engine opens a shard with an emptied file as if nothing had ever been in it. So the collection's record keeps, as
long as nothing has been written since, how many chunks there are and how long every file of theirs is. Files are made
longer than what is in them and never shrink, whatever is only read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from qdrant_edge import CountRequest, EdgeShard

_SEGMENTS = "segments"
_JOURNAL = "journal"
"""Part of the name of files that the engine empties by itself, once it has done what stands in them."""


@dataclass(frozen=True, slots=True)
class Seal:
    """Chunks in a shard, and bytes by file, relative to its folder."""

    chunks: int
    files: Mapping[str, int]

    @classmethod
    def take(cls, shard: EdgeShard, folder: Path) -> Self:
        """What the open, flushed shard in ``folder`` is now."""
        files = (file for file in (folder / _SEGMENTS).rglob("*") if _JOURNAL not in file.name and file.is_file())
        sizes = {file.relative_to(folder).as_posix(): file.stat().st_size for file in files}
        return cls(shard.count(CountRequest(exact=True)), sizes)

    @classmethod
    def from_data(cls, data: Any) -> Self | None:
        """What ``to_data`` gave; None where the record had none."""
        return (
            None
            if data is None
            else cls(int(data["chunks"]), {name: int(size) for name, size in dict(data["files"]).items()})
        )

    def to_data(self) -> dict[str, Any]:
        """For the record's file."""
        return {"chunks": self.chunks, "files": dict(self.files)}

    def broken_file(self, folder: Path) -> str | None:
        """Which file is missing or too short, and how, before the shard is opened; None: all are whole."""
        for name, size in self.files.items():
            try:
                found = (folder / name).stat().st_size
            except FileNotFoundError:
                return f"{name} is missing"
            if found < size:
                return f"{name} has {found:,} bytes, and had {size:,}"
        return None

    def missing_chunks(self, shard: EdgeShard) -> int:
        """How many chunks the shard no longer has."""
        return max(0, self.chunks - shard.count(CountRequest(exact=True)))
