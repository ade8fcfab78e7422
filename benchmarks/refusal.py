"""Whether the bound holds as a corpus grows: questions that no code answers, at 1,000, 10,000 and 100,000 chunks."""

from __future__ import annotations

import asyncio
import json
import os
import random
import sysconfig
import tempfile
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

from benchmarks.tables import Table
from ragpilot.adapters.edge_store import EdgeStore
from ragpilot.adapters.minilm import MiniLmEmbedder
from ragpilot.config import RetrievalSettings
from ragpilot.ingest.chunkers import chunk_text
from ragpilot.ingest.documents import chunks_of
from ragpilot.lexical import document_vector
from ragpilot.retrieval import Retriever
from ragpilot.types import Actor, Chunk, Document, IndexedChunk, IndexIdentity, IngestScope

SIZES = (1_000, 10_000, 100_000)
"""RAGPILOT_BENCH_CHUNKS lowers the largest: headers of 100,000 chunks take some minutes."""
ACTOR = Actor("benchmark", frozenset({"team:all"}), frozenset({"ask", "ingest"}))


def run() -> list[Table]:
    """Chunks of the installed Python packages with their header vectors, searched as the product searches."""
    most = int(os.environ.get("RAGPILOT_BENCH_CHUNKS", SIZES[-1]))
    with tempfile.TemporaryDirectory(prefix="ragpilot-bench-") as folder:
        return [asyncio.run(_measure(Path(folder), [size for size in SIZES if size <= most]))]


async def _measure(folder: Path, sizes: list[int]) -> Table:
    lines = files("ragpilot").joinpath("data/calibration/background.jsonl").read_text(encoding="utf-8").splitlines()
    questions = [json.loads(line) for line in lines if line.strip()]
    chunks = await asyncio.to_thread(_chunks, sizes[-1])
    embedder = MiniLmEmbedder()
    identity = IndexIdentity(embedder.identity, "benchmark")
    store = EdgeStore(folder / "store")
    scope = IngestScope(ACTOR, "bench")
    await store.ensure(scope, identity)
    retriever = Retriever(store, embedder, RetrievalSettings(), identity=identity)
    table = Table(f"Refusal of {len(questions)} background questions as a corpus grows", ("chunks", "gate", "refused"))
    done = 0
    for size in sizes:
        for first in range(done, size, 2048):
            await _store(store, scope, embedder, chunks[first : min(first + 2048, size)])
        done = size
        found = [await retriever.search(ACTOR, row["question"], corpus="bench") for row in questions]
        refused = sum(not item.hits for item in found) / len(found)
        gate = next((item.bounds.gate for item in found if item.readable), None)
        table.add(f"{size:,}", f"{gate:.3f}" if gate is not None else "off", f"{refused:.1%}")
    await store.aclose()
    await embedder.aclose()
    return table


async def _store(store: EdgeStore, scope: IngestScope, embedder: MiniLmEmbedder, chunks: list[Chunk]) -> None:
    items = [IndexedChunk(c, document_vector(c.text, path=c.path, symbol=c.symbol, header=c.header)) for c in chunks]
    await asyncio.gather(*(store.upsert(scope, item.chunk.document_id, [item]) for item in items))
    vectors = await embedder.embed_documents([chunk.header for chunk in chunks])
    await store.set_vectors(scope, "header", dict(zip((c.id for c in chunks), vectors, strict=True)))


def _chunks(count: int) -> list[Chunk]:
    """Chunks of installed packages, each a document of its own, in a fixed random order."""
    packages = Path(sysconfig.get_paths()["purelib"])
    paths = sorted(path for path in packages.rglob("*.py") if path.stat().st_size < 200_000)
    random.Random(7).shuffle(paths)  # noqa: S311 - an order, not a secret
    found: list[Chunk] = []
    for path in paths:
        name = path.relative_to(packages).as_posix()
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        document = Document(name, "bench", name, text, "code-python", name, len(text), 0, ACTOR.principals)
        spans = chunk_text(name, text, document.source_type)
        found += [replace(chunk, document_id=chunk.id) for chunk in chunks_of(document, spans, indexed_at=0)]
        if len(found) >= count:
            break
    return found[:count]
