"""The embedded embedder: all-MiniLM-L6-v2 as int8 ONNX, from installed packages, run by fastembed. No download."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from ragpilot.adapters.embedding_models import FLOOR, MINILM_GATE
from ragpilot.adapters.minilm_model import REVISION, MiniLmFiles, MiniLmModel
from ragpilot.adapters.token_prefix import encodable
from ragpilot.adapters.wordpiece import WordPieceCounter
from ragpilot.errors import EmbedderError
from ragpilot.types import EmbedderIdentity, GateCalibration, Health, Vector

DIMENSIONS = 384
TRUNCATION = 128
"""Word pieces of a text that the model reads, ``[CLS]`` and ``[SEP]`` included."""
BATCH = 8
MOST_WORKERS = 4
READ_CHARS = 16_000
"""Characters of a text that are given to the tokenizer: it would work through all of it before it cuts."""


class MiniLmEmbedder:
    """Embeds in threads, one batch of eight a thread; questions have a thread of their own and wait for no batch.

    Vectors do not depend on what else is in a batch: the weights are int8, the arithmetic is float32. Each thread
    runs the model on one core, which on two cores is as fast as sharing out each batch, and steadier beside others.
    """

    identity = EmbedderIdentity(
        name="all-MiniLM-L6-v2-int8", dimensions=DIMENSIONS, revision=REVISION, truncation=TRUNCATION
    )
    default_floor = FLOOR
    gate: GateCalibration | None = MINILM_GATE

    def __init__(self, *, workers: int | None = None, files: MiniLmFiles | None = None) -> None:
        """Loads nothing: model and tokenizer are loaded, and their checksums verified, at the first use.

        Args:
            workers: Batches of documents that are embedded at once; by default one a core, four at most.
            files: Where the model's files lie, if not where they were installed.
        """
        self.workers = workers or min(usable_cores(), MOST_WORKERS)
        self.files = files or MiniLmFiles()
        self.counter = WordPieceCounter(self.files.tokenizer / "tokenizer.json")
        self._documents = ThreadPoolExecutor(self.workers, thread_name_prefix="embed-documents")
        self._questions = ThreadPoolExecutor(1, thread_name_prefix="embed-question")
        self._loading = threading.Lock()
        self._model: MiniLmModel | None = None
        self._closed = False

    async def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        """One vector a text, in order; shape ``(384,)``, float32, unit length. A text is cut at 128 word pieces.

        A cancelled call gives up the batches that have not begun; those under way end in their threads, each within
        a fraction of a second, and their vectors are thrown away.

        Raises:
            EmbedderUnavailableError: The model's files are missing or damaged.
            EmbedderError: The model failed, or the embedder is closed.
        """
        found: list[Vector | None] = [None] * len(texts)
        # Like lengths together: a batch is as long as its longest text.
        order = sorted(range(len(texts)), key=lambda index: len(texts[index]))
        batches = iter([order[start : start + BATCH] for start in range(0, len(order), BATCH)])
        count = min(self.workers, -(-len(texts) // BATCH))
        tasks = [asyncio.create_task(self._embed_batches(batches, texts, found)) for _ in range(count)]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
        return [vector for vector in found if vector is not None]

    async def _embed_batches(
        self, batches: Iterator[list[int]], texts: Sequence[str], found: list[Vector | None]
    ) -> None:
        """Work through the batches that are shared with the other tasks of this call, one at a time."""
        for batch in batches:
            vectors = await self._run(self._documents, [texts[index] for index in batch])
            for index, vector in zip(batch, vectors, strict=True):
                found[index] = vector

    async def embed_question(self, text: str) -> Vector:
        """The vector of a question, beside whatever batch of documents is under way. Raises as ``embed_documents``."""
        return (await self._run(self._questions, [text]))[0]

    async def check(self) -> Health:
        """Embed a word. Never raises."""
        started = time.perf_counter()
        try:
            await self.embed_question("health")
        except EmbedderError as error:
            return Health(ok=False, detail=str(error))
        detail = f"{self.identity.name}, {DIMENSIONS} dimensions, {self.workers} threads"
        return Health(ok=True, detail=detail, latency_ms=(time.perf_counter() - started) * 1000)

    async def aclose(self) -> None:
        """Let go of threads and model; batches under way end first. Idempotent."""
        self._closed = True
        for executor in (self._documents, self._questions):
            await asyncio.to_thread(executor.shutdown)
        self._model = None

    async def _run(self, executor: ThreadPoolExecutor, texts: list[str]) -> list[Vector]:
        if self._closed:
            raise EmbedderError("The embedder is closed.")
        return await asyncio.get_running_loop().run_in_executor(executor, self._embed, texts)

    def _embed(self, texts: list[str]) -> list[Vector]:
        """In a thread: the vectors of one batch, checked."""
        with self._loading:
            if self._model is None:
                self._model = MiniLmModel(self.files, truncation=TRUNCATION)
        return checked(self._model.embed([encodable(text.lstrip()[:READ_CHARS]) for text in texts]), len(texts))


def checked(vectors: list[Vector], count: int) -> list[Vector]:
    """``vectors``, if they are ``count`` unit vectors of 384 finite float32 numbers; raises EmbedderError otherwise."""
    if len(vectors) != count:
        raise EmbedderError(f"The embedder gave {len(vectors)} vectors for {count} texts.")
    for vector in vectors:
        if vector.shape != (DIMENSIONS,) or vector.dtype != np.float32:
            raise EmbedderError(f"The embedder gave a vector of shape {vector.shape} and type {vector.dtype}.")
        # also False where a number is not finite
        if not abs(float(np.linalg.norm(vector)) - 1.0) < 1e-3:
            raise EmbedderError("The embedder gave a vector that is not finite or not of unit length.")
    return vectors


def usable_cores() -> int:
    """Cores that this process may run on."""
    affinity = getattr(os, "sched_getaffinity", None)  # not on macOS and Windows
    return len(affinity(0)) if affinity else os.cpu_count() or 1
