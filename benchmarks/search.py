"""Search over 100,000 chunks: what a question waits for, by how much the asker may read, and where the time goes."""

from __future__ import annotations

import asyncio
import itertools
import random
import tempfile
import time
import uuid
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks.tables import Table
from ragpilot.adapters.edge_store import EdgeStore
from ragpilot.adapters.minilm import MiniLmEmbedder
from ragpilot.config import RetrievalSettings
from ragpilot.lexical import document_vector
from ragpilot.retrieval import Retriever
from ragpilot.types import Actor, Chunk, IndexedChunk, IndexIdentity, IngestScope, Vector

CHUNKS = 100_000
PER_DOCUMENT = 20
ROUNDS = 60
READERS = {"all": 1.0, "10 %": 0.1, "1 %": 0.01}
QUESTIONS = (
    "where is the retry policy applied to failed requests",
    "how are sessions expired after a timeout",
    "which function parses the configuration file",
    "token counter for the prompt budget",
    "validate the request body against the schema",
)
WORDS = """
    retry policy request session timeout config parse token budget schema validate render widget index chunk vector
    store query filter reader actor grant prompt stream event header body cache lock queue worker signal socket path
    walk ignore encode decode file folder symbol parser grammar node tree span line text source answer cite model chat
    embed score rank fuse floor gate search route server client error limit retryable backoff jitter deadline window
""".split()
VOCABULARY = 3_000
"""Further words, so that chunks hold words as often as sources do: each half as often as one of half its rank (Zipf).
Of the questions' words some stand in half of all chunks, others in one of a hundred."""


def run() -> list[Table]:
    """Build the store once (about two minutes), then search it as actors who may read all, a tenth and a hundredth."""
    with tempfile.TemporaryDirectory(prefix="ragpilot-bench-") as folder:
        return [asyncio.run(_measure(Path(folder)))]


async def _measure(folder: Path) -> Table:
    embedder = MiniLmEmbedder()
    store = EdgeStore(folder / "store")
    identity = IndexIdentity(embedder.identity, "benchmark")
    await _fill(store, identity)
    retriever = Retriever(store, embedder, RetrievalSettings(gate="off", min_score=-1.0), identity=identity)
    table = Table(
        f"Search, {CHUNKS:,} chunks, the question's embedding included (ms)",
        ("readable", "p50", "p95", "embed p50", "search p50", "search p95", "rank p50"),
    )
    for name in READERS:
        actor = Actor(name, frozenset({_reader(name)}))
        await retriever.search(actor, QUESTIONS[0], corpus="bench")
        totals: list[float] = []
        stages: dict[str, list[float]] = {}
        for at in range(ROUNDS):
            started = time.perf_counter()
            found = await retriever.search(actor, QUESTIONS[at % len(QUESTIONS)], corpus="bench")
            totals.append((time.perf_counter() - started) * 1000)
            for stage, milliseconds in found.timings.items():
                stages.setdefault(stage, []).append(milliseconds)
        embed, search, rank = (stages.get(stage, [0.0]) for stage in ("embed", "search", "rank"))
        figures = (median(totals), _p95(totals), median(embed), median(search), _p95(search), median(rank))
        table.add(name, *(f"{figure:.1f}" for figure in figures))
    await store.aclose()
    await embedder.aclose()
    return table


def _p95(times: list[float]) -> float:
    return sorted(times)[int(len(times) * 0.95)]


async def _fill(store: EdgeStore, identity: IndexIdentity) -> None:
    scope = IngestScope(Actor("benchmark", frozenset(), frozenset({"ingest"})), "bench")
    await store.ensure(scope, identity)
    draw, noise = random.Random(1), np.random.default_rng(1)  # noqa: S311 - synthetic text
    words, weights = _vocabulary(draw)
    documents = CHUNKS // PER_DOCUMENT
    for first in range(0, documents, 64):
        batch = [_document(at, draw, words, weights) for at in range(first, min(first + 64, documents))]
        await asyncio.gather(*(store.upsert(scope, chunks[0].chunk.document_id, chunks) for chunks in batch))
        ids = [item.chunk.id for chunks in batch for item in chunks]
        for vector_name in ("header", "body"):
            vectors = noise.standard_normal((len(ids), identity.embedder.dimensions)).astype(np.float32)
            vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
            filled: dict[str, Vector] = dict(zip(ids, vectors, strict=True))
            await store.set_vectors(scope, vector_name, filled)


def _vocabulary(draw: random.Random) -> tuple[list[str], list[float]]:
    """The words of a corpus, and how far each is from the start of them all, by how often it is written."""
    further = [f"{draw.choice(WORDS)}{number}" for number in range(VOCABULARY)]
    # Log-uniform ranks: as many of the questions' words among the first hundred as among the thousands behind them.
    ranks = [*(5 * 600 ** draw.random() for _ in WORDS), *range(1, VOCABULARY + 1)]
    return [*WORDS, *further], list(itertools.accumulate(1 / rank for rank in ranks))


def _document(at: int, draw: random.Random, words: list[str], weights: list[float]) -> list[IndexedChunk]:
    readers = frozenset(_reader(name) for name, share in READERS.items() if at % round(1 / share) == 0)
    path = f"src/{draw.choice(WORDS)}/{draw.choice(WORDS)}_{at}.py"
    document_id = str(uuid.uuid5(uuid.NAMESPACE_URL, path))
    chunks = []
    for number in range(PER_DOCUMENT):
        text = " ".join(draw.choices(words, cum_weights=weights, k=140))
        symbol = f"{draw.choice(WORDS).title()}.{draw.choice(WORDS)}_{number}"
        chunk = Chunk(
            id=str(uuid.uuid5(uuid.NAMESPACE_URL, f"{path}#{number}")), document_id=document_id, corpus="bench",
            path=path, source_type="code-python", symbol=symbol, title=symbol, header=f"{path} {symbol}", text=text,
            start_line=number * 20 + 1, end_line=number * 20 + 20, readers=readers, content_hash=path, mtime_ns=at,
            size=1, indexed_at=1,
        )  # fmt: skip
        chunks.append(IndexedChunk(chunk, document_vector(text, path=path, symbol=symbol, header=chunk.header)))
    return chunks


def _reader(name: str) -> str:
    return "team:" + name.replace(" ", "")
