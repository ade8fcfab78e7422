"""Any OpenAI-compatible server as an embedder: ``POST /v1/embeddings``."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any

import httpx

from ragpilot.adapters import openai_service
from ragpilot.adapters.byte_counter import ByteCounter
from ragpilot.adapters.embed_batches import BatchEmbedder, Refused, sendable
from ragpilot.adapters.embedding_models import embedding_model
from ragpilot.adapters.http import Reply, Service, fetch, new_client
from ragpilot.errors import EmbedderError, EmbedderUnavailableError, RagPilotError
from ragpilot.types import EmbedderIdentity, GateCalibration, Health, Vector

PROBE_TEXT = "dimension"


class OpenAiEmbedder:
    """Embeds through llama.cpp's server, vLLM, LM Studio and whatever else speaks this protocol.

    The protocol says nothing of a model's revision, so the identity holds name, prefixes and the dimensions that it
    really gives; the server must have been reached once before it is known.
    """

    def __init__(
        self,
        url: str,
        model: str | None,
        *,
        seconds: float = 300.0,
        api_key: str | None = None,
        floor: float = 0.35,
        gate: GateCalibration | None = None,
        remembered: EmbedderIdentity | None = None,
        pause: float = 0.5,
    ) -> None:
        """Connects to nothing yet.

        Args:
            url: The server, with or without ``/v1``.
            model: As the server lists it; None: the only one it has.
            seconds: The longest wait for one batch, loading the model included.
            api_key: Sent as a bearer token.
            floor: The lowest cosine that means anything for this model.
            gate: Its calibrated gate, if it has one.
            remembered: What it was when it was last reached; the first contact proves it or refuses.
            pause: Seconds before a failed connection is tried again.

        Raises:
            ConfigError: ``url`` is no address.
        """
        self.default_floor = floor
        self.gate = gate
        self.counter = ByteCounter()
        self._service = Service("The OpenAI-compatible server", openai_service.base_url(url), "embedder")
        self._model = model
        self._seconds = seconds
        self._pause = pause
        self._headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._client: httpx.AsyncClient | None = None
        self._identity = remembered
        self._proven = False
        self._preparing = asyncio.Lock()

    @property
    def url(self) -> str:
        """The address that endpoints are joined to."""
        return self._service.url

    @property
    def identity(self) -> EmbedderIdentity:
        """Name, dimensions, prefixes and window.

        Raises:
            EmbedderUnavailableError: The server has not been reached yet (``prepare``).
        """
        if self._identity is None:
            raise EmbedderUnavailableError(
                f"The embedding model is not known before the server at {self.url} has answered.",
                hint="Start it, or set embedder.url in config.toml.",
            )
        return self._identity

    async def prepare(self) -> None:
        """Learn the identity from the server, once.

        Raises:
            EmbedderUnavailableError: The server cannot be reached, or it is not clear which model is meant.
            EmbedderError: The server cannot embed.
        """
        async with self._preparing:
            if self._proven:
                return
            self._model, listed = await openai_service.resolve_model(self._service, self._open(), self._model)
            known = embedding_model(self._model)
            served = await openai_service.context_length(self._service, self._open(), listed)
            found = EmbedderIdentity(
                name=self._model,
                dimensions=await self._dimensions(),
                question_prefix=known.question_prefix,
                document_prefix=known.document_prefix,
                truncation=min(known.window, served or known.window),
            )
            if self._identity not in {None, found}:
                raise EmbedderError(
                    f"The server at {self.url} embeds otherwise than before: {found.name}, {found.dimensions}-d.",
                    hint="Restart RagPilot and rebuild: ragpilot index --rebuild",
                )
            self._identity, self._proven = found, True

    async def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        """One vector a text, in order; float32, unit length. A text that is too long is shortened until it fits.

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
        """Whether the server answers. Never raises."""
        started = time.perf_counter()
        try:
            await openai_service.models(self._service, self._open())
            await self.prepare()
        except RagPilotError as error:
            return Health(ok=False, detail=str(error))
        detail = f"{self.url}, {self._model}, {self.identity.dimensions} dimensions"
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
        return BatchEmbedder(self._send, dimensions=identity.dimensions, window=identity.truncation, pause=self._pause)

    async def _dimensions(self) -> int:
        try:
            [row] = await self._send([PROBE_TEXT])
            return len(row)
        except Refused as refused:
            raise refused.error from refused
        except (TypeError, ValueError):
            raise self._service.failed(f"The server at {self.url} gave no vector for {self._model}.") from None

    async def _send(self, texts: Sequence[str]) -> list[Any]:
        body = {"model": self._model, "input": list(texts), "encoding_format": "float"}
        try:
            reply = await fetch(self._service, self._open(), "POST", "embeddings", seconds=self._seconds, body=body)
        except TimeoutError as error:
            raise EmbedderUnavailableError(
                f"The server at {self.url} did not embed {len(texts)} texts with {self._model} within "
                f"{self._seconds:g} s (embedder.timeout_seconds).",
                hint="It may be loading the model, or be slow: raise that limit, or choose a smaller model.",
            ) from error
        if reply.status in {400, 413, 422, 500}:
            refused = EmbedderError(str(openai_service.refusal(self._service, str(self._model), reply)))
            raise Refused(refused, too_long=openai_service.is_too_long(reply))
        if reply.status != httpx.codes.OK:
            raise openai_service.refusal(self._service, str(self._model), reply)
        return self._rows(reply)

    def _rows(self, reply: Reply) -> list[Any]:
        """The vectors in the order of the texts, which is that of ``index``, not of the list."""
        data = reply.body.get("data") if isinstance(reply.body, dict) else None
        try:
            ordered = sorted(data or [], key=lambda row: row.get("index", 0))
            return [row["embedding"] for row in ordered]
        except (AttributeError, KeyError, TypeError):
            raise self._service.failed(f"The server at {self.url} answered without a list of embeddings.") from None
