"""What a run works with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ragpilot.config import IngestSettings
from ragpilot.ingest.prepare import ChunkFunction, Preparer
from ragpilot.ports import ChunkStore, Embedder
from ragpilot.types import IndexIdentity


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of an IngestService, the same for all of its runs."""

    store: ChunkStore
    embedder: Embedder
    settings: IngestSettings
    state: Path
    chunk_text: ChunkFunction
    identity: IndexIdentity
    embed_seconds: float
    """How long one call of the embedder may take."""

    def preparer(self, corpus: str) -> Preparer:
        """What prepares the files of a corpus."""
        return Preparer(corpus, self.settings, self.chunk_text, chunker=self.identity.chunker)
