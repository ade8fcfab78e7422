"""One run of ingestion over a folder, in a process that can be killed: ``python -m tests.soak.child ROOT STATE CHARS``.

Standard output tells, a line of JSON each, what is asked of the store and what it has acknowledged.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

from ragpilot.adapters.edge_store import EdgeStore
from ragpilot.config import CorpusSettings, IngestSettings
from ragpilot.ingest.pipeline import IngestService
from ragpilot.types import IndexedChunk, IngestReport, IngestScope, Vector, VectorName
from tests.fakes import OPERATOR, FakeEmbedder

CORPUS = "soak"


CHARS = 300
"""The most characters of a chunk; with another number everything is cut anew."""


def service(root: Path, state: Path, store: EdgeStore, chars: int = CHARS) -> tuple[IngestService, CorpusSettings]:
    """Ingestion over the real embedded store, with an embedder that costs nothing."""
    corpus = CorpusSettings(name=CORPUS, roots=[str(root)])
    settings = IngestSettings(max_chunk_chars=chars)
    return IngestService(store, FakeEmbedder(), settings, state, corpora=[corpus]), corpus


class TellingStore(EdgeStore):
    """Tells of every write before it is asked for and when it is acknowledged."""

    def _tell(self, **fact: Any) -> None:
        # One system call a line: what was told before a kill is read whole.
        os.write(1, json.dumps({"owner": self.owner_pid, **fact}).encode() + b"\n")

    async def upsert(self, scope: IngestScope, document_id: str, chunks: Sequence[IndexedChunk]) -> None:
        ids = [entry.chunk.id for entry in chunks]
        self._tell(write="upsert", documents=[document_id], ids=ids)
        await super().upsert(scope, document_id, chunks)
        self._tell(done="upsert", documents=[document_id], ids=ids)

    async def delete_documents(self, scope: IngestScope, document_ids: Sequence[str]) -> None:
        self._tell(write="delete", documents=list(document_ids), ids=[])
        await super().delete_documents(scope, document_ids)
        self._tell(done="delete", documents=list(document_ids), ids=[])

    async def set_vectors(self, scope: IngestScope, name: VectorName, vectors: Mapping[str, Vector]) -> None:
        self._tell(write=name, documents=[], ids=list(vectors))
        await super().set_vectors(scope, name, vectors)
        self._tell(done=name, documents=[], ids=list(vectors))


async def main(root: Path, state: Path, chars: int) -> None:
    store = TellingStore(state / "store")
    ingestion, corpus = service(root, state, store, chars)
    async with aclosing(ingestion.run(OPERATOR, corpus)) as run:
        async for event in run:
            if isinstance(event, IngestReport) and event.outcome != "complete":
                raise SystemExit(f"the run ended {event.outcome}: {event.failed} {event.warnings}")
    await store.aclose()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])))
