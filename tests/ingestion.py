"""A project on disk, its index in memory, and runs over it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ragpilot.config import CorpusSettings, IngestSettings
from ragpilot.ingest.chunkers import Span
from ragpilot.ingest.pipeline import IngestService
from ragpilot.ports import Embedder
from ragpilot.types import Actor, Chunk, IngestProgress, IngestReport, Vector, VectorName
from tests.fakes import OPERATOR, FakeEmbedder, MemoryStore

FILES = {
    "src/orders.py": '"""Orders."""\n\n\ndef total(order):\n    """The sum of an order."""\n    return sum(order)\n',
    "src/retry.py": "def retry_calls(attempts):\n    for _ in range(attempts):\n        yield\n",
    "docs/guide.md": "# Guide\n\nHow to order.\n\n## Returns\n\nSend it back.\n",
    "settings.toml": 'name = "shop"\n',
}
SECONDS = 30


class Project:
    """Files under ``root``, an index in ``store``, and a state folder beside them."""

    def __init__(
        self,
        folder: Path,
        *,
        files: dict[str, str] | None = None,
        store: MemoryStore | None = None,
        embedder: Embedder | None = None,
        settings: IngestSettings | None = None,
        corpus: CorpusSettings | None = None,
        **parts: Any,
    ) -> None:
        self.folder = folder
        self.root = folder / "project"
        self.root.mkdir(parents=True, exist_ok=True)
        self.state = folder / "state"
        self.store = store or MemoryStore()
        self.embedder = embedder or FakeEmbedder()
        self.settings = settings or IngestSettings()
        self.corpus = corpus or CorpusSettings(roots=[str(self.root)])
        self.parts = parts
        self.write(FILES if files is None else files)
        self.service = self.restart()

    def restart(self, **parts: Any) -> IngestService:
        """A service as a new process would have it."""
        self.parts |= parts
        self.service = IngestService(
            self.store, self.embedder, self.settings, self.state, corpora=[self.corpus], **self.parts
        )
        return self.service

    def write(self, files: dict[str, str]) -> None:
        for name, content in files.items():
            file = self.root / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content, encoding="utf-8")

    async def run(
        self, *, actor: Actor = OPERATOR, corpus: CorpusSettings | None = None, **options: Any
    ) -> IngestReport:
        """A whole run; its report."""
        events = await self.events(actor=actor, corpus=corpus, **options)
        report = events[-1]
        assert isinstance(report, IngestReport)
        assert all(isinstance(event, IngestProgress) for event in events[:-1])
        return report

    async def events(
        self, *, actor: Actor = OPERATOR, corpus: CorpusSettings | None = None, **options: Any
    ) -> list[IngestProgress | IngestReport]:
        async with asyncio.timeout(SECONDS), aclosing(self.service.run(actor, corpus or self.corpus, **options)) as run:
            return [event async for event in run]

    async def fill(self) -> IngestReport:
        async with asyncio.timeout(SECONDS), aclosing(self.service.fill(OPERATOR, self.corpus.name)) as run:
            events = [event async for event in run]
        assert isinstance(events[-1], IngestReport)
        return events[-1]

    @property
    def chunks(self) -> list[Chunk]:
        """What the store holds of the corpus, by path and line."""
        held = (entry.chunk for entry in self.store.chunks.get(self.corpus.name, {}).values())
        return sorted(held, key=lambda chunk: (chunk.path, chunk.start_line, chunk.text, chunk.id))

    @property
    def paths(self) -> list[str]:
        return sorted({chunk.path for chunk in self.chunks})

    def having(self, name: VectorName) -> set[str]:
        """Ids of the chunks that have a vector."""
        return {chunk_id for corpus, kind, chunk_id in self.store.vectors if (corpus, kind) == (self.corpus.name, name)}

    @property
    def complete(self) -> bool:
        """Whether every chunk has both vectors."""
        ids = {chunk.id for chunk in self.chunks}
        return self.having("header") == ids == self.having("body")


class PoisonedEmbedder(FakeEmbedder):
    """Does what ``spoil`` says with the vectors of a call that holds a text with the word ``poison``."""

    def __init__(self, spoil: str) -> None:
        super().__init__()
        self.spoil = spoil
        self.calls = 0

    async def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        self.calls += 1
        vectors = await super().embed_documents(texts)
        bad = [at for at, text in enumerate(texts) if "poison" in text.lower()]
        if not bad:
            return vectors
        match self.spoil:
            case "nan":
                vectors[bad[0]] = vectors[bad[0]] * np.float32("nan")
            case "zero":
                vectors[bad[0]] = vectors[bad[0]] * np.float32(0)
            case "dimension":
                vectors[bad[0]] = vectors[bad[0]][:-1]
            case "few":
                vectors.pop()
            case "none":
                return []
            case "crash":
                raise RuntimeError("the embedder has a bug")
        return vectors


def steady(chunks: list[Chunk]) -> list[Chunk]:
    """Chunks without the time at which they were indexed."""
    return [replace(chunk, indexed_at=0) for chunk in chunks]


def no_chunking(*_: Any, **__: Any) -> tuple[list[Span], list[str]]:
    """In the place of the chunkers of a run that has nothing to chunk."""
    raise AssertionError("nothing had to be chunked")
