"""Any model that fastembed knows, by name, from a folder on this machine. Downloads only where that is allowed."""

from __future__ import annotations

import asyncio
import hashlib
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ragpilot.adapters.byte_counter import ByteCounter
from ragpilot.adapters.embed_batches import BatchEmbedder, sendable
from ragpilot.adapters.embedding_models import embedding_model
from ragpilot.adapters.http import plain
from ragpilot.adapters.wordpiece import WordPieceCounter, plain_specials
from ragpilot.errors import EmbedderError, EmbedderUnavailableError, RagPilotError
from ragpilot.ports import TokenCounter
from ragpilot.types import EmbedderIdentity, GateCalibration, Health, Vector

if TYPE_CHECKING:
    from fastembed import TextEmbedding

TOKENIZER = "tokenizer.json"


@dataclass(frozen=True, slots=True)
class _Loaded:
    model: TextEmbedding
    identity: EmbedderIdentity


class FastembedEmbedder:
    """Embeds in threads. The identity holds the digest of the weights, so it is known once the model is loaded."""

    def __init__(
        self,
        model: str,
        *,
        folder: Path | None = None,
        cache: Path | None = None,
        download: bool = False,
        floor: float | None = None,
        gate: GateCalibration | None = None,
    ) -> None:
        """Loads nothing yet.

        Args:
            model: As fastembed names it, such as ``BAAI/bge-small-en-v1.5``.
            folder: Holds the model's ONNX file and its tokenizer's four JSON files.
            cache: Without a folder: where fastembed keeps what it downloaded.
            download: Whether a model that is not there may be downloaded into the cache.
            floor: The lowest cosine that means anything for this model; None: what is known of it.
            gate: Its calibrated gate; None: the one known for it, if any.
        """
        known = embedding_model(model)
        self.default_floor = known.floor if floor is None else floor
        self.gate = gate or known.gate
        self.counter: TokenCounter = WordPieceCounter(folder / TOKENIZER) if folder else ByteCounter()
        self._model = model
        self._folder = folder
        self._cache = cache
        self._download = download
        self._documents = ThreadPoolExecutor(1, thread_name_prefix="embed-documents")
        self._questions = ThreadPoolExecutor(1, thread_name_prefix="embed-question")
        self._loading = threading.Lock()
        self._loaded: _Loaded | None = None

    @property
    def identity(self) -> EmbedderIdentity:
        """Name, dimensions, prefixes, the digest of the weights, and the window.

        Raises:
            EmbedderUnavailableError: The model is not loaded yet (``prepare``).
        """
        if self._loaded is None:
            raise EmbedderUnavailableError(f"The embedding model {self._model} is not loaded yet.")
        return self._loaded.identity

    async def prepare(self) -> None:
        """Load the model, once.

        Raises:
            EmbedderUnavailableError: fastembed does not know it, its files are missing or damaged.
        """
        await self._run(self._questions, self._load)

    async def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        """One vector a text, in order; float32, unit length. A text is cut where the model's window ends.

        Raises:
            EmbedderUnavailableError: The model cannot be loaded.
            EmbedderError: The model failed.
        """
        if not texts:
            return []
        await self.prepare()
        prefix = self.identity.document_prefix
        return await self._batches(self._documents).embed([prefix + sendable(text) for text in texts])

    async def embed_question(self, text: str) -> Vector:
        """The vector of a question, beside whatever batch of documents is under way. Raises as ``embed_documents``."""
        await self.prepare()
        asked = self.identity.question_prefix + sendable(text)
        return (await self._batches(self._questions).embed([asked]))[0]

    async def check(self) -> Health:
        """Embed a word. Never raises."""
        started = time.perf_counter()
        try:
            await self.embed_question("health")
        except RagPilotError as error:
            return Health(ok=False, detail=str(error))
        detail = f"{self._model}, {self.identity.dimensions} dimensions"
        return Health(ok=True, detail=detail, latency_ms=(time.perf_counter() - started) * 1000)

    async def aclose(self) -> None:
        """Let go of threads and model; a batch under way ends first. Idempotent."""
        for executor in (self._documents, self._questions):
            await asyncio.to_thread(partial(executor.shutdown, wait=True, cancel_futures=True))

    async def _run(self, executor: ThreadPoolExecutor, work: Any, *args: Any) -> Any:
        try:
            return await asyncio.get_running_loop().run_in_executor(executor, work, *args)
        except RuntimeError as error:
            raise EmbedderError("The embedder is closed.") from error

    def _batches(self, executor: ThreadPoolExecutor) -> BatchEmbedder:
        async def send(texts: Sequence[str]) -> list[Any]:
            return cast("list[Any]", await self._run(executor, self._embed, list(texts)))

        identity = self.identity
        return BatchEmbedder(send, dimensions=identity.dimensions, window=identity.truncation, pause=0.0)

    def _embed(self, texts: list[str]) -> list[Any]:
        try:
            return list(self._load().model.embed(texts, batch_size=8))
        except Exception as error:  # the runtime's own exceptions have no root but this
            raise EmbedderError(f"The embedding model {self._model} failed: {plain(str(error))}.") from error

    def _load(self) -> _Loaded:
        """In a thread: the model, loaded if need be."""
        with self._loading:
            if self._loaded is None:
                self._loaded = self._opened()
            return self._loaded

    def _opened(self) -> _Loaded:
        from fastembed import TextEmbedding

        described = next(
            (known for known in TextEmbedding.list_supported_models() if known["model"] == self._model), None
        )
        if described is None:
            raise EmbedderUnavailableError(
                f"fastembed does not know the model {self._model}.",
                hint="Set embedder.model in config.toml to a name of its list, such as BAAI/bge-small-en-v1.5.",
            )
        self._require_files(str(described["model_file"]))
        try:
            model = TextEmbedding(
                self._model,
                specific_model_path=str(self._folder) if self._folder else None,
                cache_dir=str(self._cache or self._folder or Path()),
                providers=["CPUExecutionProvider"],
                local_files_only=not self._download,
            )
            inner = cast("Any", model.model)
            read = (inner.tokenizer.truncation or {}).get("max_length", 512)
            window = min(read, embedding_model(self._model).window)
            inner.tokenizer.enable_truncation(max_length=window)
            plain_specials(inner.tokenizer)
            folder = Path(inner._model_dir)  # noqa: SLF001 -- nothing else says where a download went
            return _Loaded(model, self._identified(described, folder, window))
        except EmbedderUnavailableError:
            raise
        except Exception as error:  # as above
            where = self._folder or self._cache or "its cache"
            raise EmbedderUnavailableError(
                f"The embedding model {self._model} cannot be loaded from {where}: {plain(str(error))}.",
                hint="Put its ONNX file and its tokenizer's files there anew; a damaged one must be replaced.",
            ) from error

    def _require_files(self, weights: str) -> None:
        if self._folder is None:
            return
        for name in (weights, TOKENIZER, "config.json", "tokenizer_config.json", "special_tokens_map.json"):
            if not (self._folder / name).is_file():
                raise EmbedderUnavailableError(
                    f"The folder {self._folder} lacks the file {name} of the embedding model {self._model}.",
                    hint="Put the model's files there, as its page offers them for ONNX.",
                )

    def _identified(self, described: dict[str, Any], folder: Path, window: int) -> EmbedderIdentity:
        known = embedding_model(self._model)
        with (folder / str(described["model_file"])).open("rb") as weights:
            digest = hashlib.file_digest(weights, "sha256").hexdigest()
        return EmbedderIdentity(
            name=self._model,
            dimensions=int(described["dim"]),
            question_prefix=known.question_prefix,
            document_prefix=known.document_prefix,
            revision=digest[:16],
            truncation=window,
        )
