"""Ollama as an embedder: ``POST /api/embed``."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any

import httpx

from ragpilot.adapters import ollama_service
from ragpilot.adapters.byte_counter import ByteCounter
from ragpilot.adapters.embed_batches import BatchEmbedder, Refused, sendable
from ragpilot.adapters.embedding_models import embedding_model
from ragpilot.adapters.http import Service, fetch, new_client
from ragpilot.adapters.ollama_host import ollama_url
from ragpilot.adapters.ollama_service import OllamaModel
from ragpilot.errors import EmbedderError, EmbedderUnavailableError, RagPilotError
from ragpilot.types import EmbedderIdentity, GateCalibration, Health, Vector

PROBE_TEXT = "dimension"
DIGEST_SECONDS = 60.0
"""How long it is believed that the server still has the same model under the name."""


class OllamaEmbedder:
    """Embeds through an Ollama server, with the prefixes that the model's makers ask for.

    The identity holds the digest of the model's weights and the dimensions that it really gives, so the server must
    have been reached once before it is known.
    """

    def __init__(
        self,
        url: str | None,
        model: str,
        *,
        keep_alive: str = "30m",
        seconds: float = 300.0,
        api_key: str | None = None,
        floor: float = 0.35,
        gate: GateCalibration | None = None,
        remembered: EmbedderIdentity | None = None,
        pause: float = 0.5,
    ) -> None:
        """Connects to nothing yet.

        Args:
            url: The server, in any spelling of OLLAMA_HOST; None: this machine, port 11434.
            model: As ``ollama list`` names it; without a tag, ``latest``.
            keep_alive: How long the model stays loaded: ``30m``, seconds, or ``-1`` for ever.
            seconds: The longest wait for one batch, loading the model included.
            api_key: Sent as a bearer token, for servers behind a gateway.
            floor: The lowest cosine that means anything for this model.
            gate: Its calibrated gate, if it has one.
            remembered: What it was when it was last reached; the first contact proves it or refuses.
            pause: Seconds before a failed connection is tried again.

        Raises:
            ConfigError: ``url`` is no address, or ``keep_alive`` no duration.
        """
        self.default_floor = floor
        self.gate = gate
        self.counter = ByteCounter()
        self._service = Service("Ollama", ollama_url(url), "embedder")
        self._model = model
        self._known = embedding_model(model)
        self._keep_alive = ollama_service.keep_alive_value(keep_alive)
        self._seconds = seconds
        self._pause = pause
        self._headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._client: httpx.AsyncClient | None = None
        self._identity = remembered
        self._preparing = asyncio.Lock()
        self._seen = -DIGEST_SECONDS

    @property
    def url(self) -> str:
        """The address that is called."""
        return self._service.url

    @property
    def identity(self) -> EmbedderIdentity:
        """Name, dimensions, prefixes, the digest of the weights, and the window.

        Raises:
            EmbedderUnavailableError: The server has not been reached yet (``prepare``).
        """
        if self._identity is None:
            raise EmbedderUnavailableError(
                f"Which model {self._model} is, is not known before Ollama at {self.url} has answered.",
                hint="Start it, or set embedder.url in config.toml.",
            )
        return self._identity

    async def prepare(self) -> None:
        """Learn the identity from the server; at later calls, and with a remembered one, that it is still the same.

        Raises:
            EmbedderUnavailableError: The server cannot be reached or lacks the model.
            EmbedderError: The model cannot embed, or was replaced since.
        """
        async with self._preparing:
            if self._identity is not None and time.monotonic() - self._seen < DIGEST_SECONDS:
                return
            model = await ollama_service.describe(self._service, self._open(), self._model)
            if model.capabilities and "embedding" not in model.capabilities:
                raise EmbedderError(
                    f"The model {self._model} at {self.url} cannot embed.",
                    hint="Set embedder.model in config.toml to an embedding model, such as nomic-embed-text.",
                )
            found = await self._identified(model)
            if self._identity not in {None, found}:
                raise EmbedderError(
                    f"Another model than before is {self._model} on {self.url} now; its vectors would not match.",
                    hint="Restart RagPilot and rebuild: ragpilot index --rebuild",
                )
            self._identity = found
            self._seen = time.monotonic()

    async def _identified(self, model: OllamaModel) -> EmbedderIdentity:
        window = min(self._known.window, model.context_length or self._known.window)
        return EmbedderIdentity(
            name=ollama_service.full_name(self._model).removesuffix(":latest"),
            dimensions=self._identity.dimensions if self._identity else await self._dimensions(window),
            question_prefix=self._known.question_prefix,
            document_prefix=self._known.document_prefix,
            revision=model.digest[:16],
            truncation=window,
        )

    async def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        """One vector a text, in order; float32, unit length. A text is cut where the model's window ends.

        Raises:
            EmbedderUnavailableError: The server cannot be reached, lacks the model, or took too long.
            TextsNotEmbeddedError: The model refused some texts, each alone; it holds the vectors of the others.
            EmbedderError: The server failed.
        """
        if not texts:
            return []
        await self.prepare()
        prefix = self.identity.document_prefix
        return await self._batches().embed([prefix + sendable(text) for text in texts])

    async def embed_question(self, text: str) -> Vector:
        """The vector of a question, with the model's question prefix. Raises as ``embed_documents``."""
        await self.prepare()
        return (await self._batches().embed([self.identity.question_prefix + sendable(text)]))[0]

    async def check(self) -> Health:
        """Whether the server answers and has the model; it need not be loaded. Never raises."""
        started = time.perf_counter()
        try:
            self._seen = -DIGEST_SECONDS
            await self.prepare()
        except RagPilotError as error:
            return Health(ok=False, detail=str(error))
        detail = f"Ollama at {self.url}, {self._model}, {self.identity.dimensions} dimensions"
        return Health(ok=True, detail=detail, latency_ms=(time.perf_counter() - started) * 1000)

    async def aclose(self) -> None:
        """Close the connections. Idempotent."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    def _open(self) -> httpx.AsyncClient:
        if self._client is None:
            self._client = new_client(self._service, self._headers)
        return self._client

    def _batches(self) -> BatchEmbedder:
        identity = self.identity
        return BatchEmbedder(
            lambda texts: self._send(texts, identity.truncation),
            dimensions=identity.dimensions,
            window=identity.truncation,
            pause=self._pause,
        )

    async def _dimensions(self, window: int) -> int:
        try:
            [row] = await self._send([PROBE_TEXT], window)
            return len(row)
        except Refused as refused:
            raise refused.error from refused
        except (TypeError, ValueError):
            raise self._service.failed(f"Ollama at {self.url} gave no vector for {self._model}.") from None

    async def _send(self, texts: Sequence[str], window: int) -> list[Any]:
        body = {
            "model": self._model,
            "input": list(texts),
            "truncate": True,
            "keep_alive": self._keep_alive,
            "options": {"num_ctx": window},
        }
        try:
            reply = await fetch(self._service, self._open(), "POST", "/api/embed", seconds=self._seconds, body=body)
        except TimeoutError as error:
            raise EmbedderUnavailableError(
                f"Ollama at {self.url} did not embed {len(texts)} texts with {self._model} within "
                f"{self._seconds:g} s (embedder.timeout_seconds).",
                hint="It may be loading the model, or be slow: raise that limit, or choose a smaller model.",
            ) from error
        rows = reply.body.get("embeddings") if isinstance(reply.body, dict) else None
        if reply.status == httpx.codes.OK and isinstance(rows, list):
            return rows
        if reply.status in {400, 413, 422, 500}:
            refused = EmbedderError(str(ollama_service.refusal(self._service, self._model, reply)))
            raise Refused(refused, too_long=ollama_service.is_too_long(reply))
        if reply.status == httpx.codes.OK:
            raise self._service.failed(f"Ollama at {self.url} answered without a list of embeddings.")
        raise ollama_service.refusal(self._service, self._model, reply)
