"""What the embedders behind a service have in common: an identity known after contact, prefixes, batches, limits."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from ragpilot.adapters.byte_counter import ByteCounter
from ragpilot.adapters.embed_batches import BatchEmbedder, Refused, sendable
from ragpilot.adapters.embedding_models import EmbeddingModel, embedding_model
from ragpilot.adapters.http import Reply, Service, fetch
from ragpilot.adapters.service_client import ServiceClient
from ragpilot.errors import EmbedderUnavailableError
from ragpilot.types import EmbedderIdentity, GateCalibration, Vector

PROBE_TEXT = "dimension"


class ServiceEmbedder(ServiceClient):
    """An embedder behind a service. Subclasses give ``prepare``, which sets the identity, and ``_send``."""

    def __init__(
        self,
        service: Service,
        model: str | None,
        *,
        seconds: float,
        api_key: str | None,
        floor: float | None,
        gate: GateCalibration | None,
        remembered: EmbedderIdentity | None,
        pause: float,
    ) -> None:
        """Connects to nothing yet; the arguments are explained where users give them."""
        super().__init__(service, api_key)
        self._floor = floor
        self._gate = gate
        self.counter = ByteCounter()
        self._model = model
        self._seconds = seconds
        self._pause = pause
        self._identity = remembered
        self._preparing = asyncio.Lock()

    @property
    def default_floor(self) -> float:
        """The configured floor, else the one known for the model."""
        return self._known.floor if self._floor is None else self._floor

    @property
    def gate(self) -> GateCalibration | None:
        """The configured gate, else the one known for the model, if any."""
        return self._gate or self._known.gate

    @property
    def _known(self) -> EmbeddingModel:
        return embedding_model(self._model or "")

    @property
    def identity(self) -> EmbedderIdentity:
        """What the service was found to embed with.

        Raises:
            EmbedderUnavailableError: The service has not been reached yet (``prepare``).
        """
        if self._identity is None:
            raise EmbedderUnavailableError(
                f"Which embedding model it is, is not known before {self.url} has answered.",
                hint="Start that service, or set embedder.url in config.toml.",
            )
        return self._identity

    async def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        """One vector a text, in order; float32, unit length. A text that is too long is cut until it fits.

        Raises:
            EmbedderUnavailableError: The service cannot be reached, lacks the model, or took too long.
            TextsNotEmbeddedError: The model refused some texts, each alone; it holds the vectors of the others.
            EmbedderError: The service failed.
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

    @abstractmethod
    async def _send(self, texts: Sequence[str], window: int) -> list[Any]:
        """One request: as many rows as texts, as the service gave them. Raises Refused, EmbedderError."""

    def _batches(self) -> BatchEmbedder:
        identity = self.identity
        return BatchEmbedder(
            lambda texts: self._send(texts, identity.truncation),
            dimensions=identity.dimensions,
            window=identity.truncation,
            pause=self._pause,
        )

    async def _dimensions(self, window: int) -> int:
        """How many numbers a vector really has."""
        try:
            [row] = await self._send([PROBE_TEXT], window)
            return len(row)
        except Refused as refused:
            raise refused.error from refused
        except (TypeError, ValueError):
            vendor = self._service.vendor
            raise self._service.failed(f"{vendor} at {self.url} gave no vector for {self._model}.") from None

    async def _post(self, path: str, body: dict[str, Any], texts: Sequence[str]) -> Reply:
        """The reply to one request for vectors, whatever its status. Raises EmbedderUnavailableError, EmbedderError."""
        try:
            return await fetch(self._service, self._open(), "POST", path, seconds=self._seconds, body=body)
        except TimeoutError as error:
            raise EmbedderUnavailableError(
                f"{self._service.vendor} at {self.url} did not embed {len(texts)} texts with {self._model} within "
                f"{self._seconds:g} s (embedder.timeout_seconds).",
                hint="It may be loading the model, or be slow: raise that limit, or choose a smaller model.",
            ) from error
