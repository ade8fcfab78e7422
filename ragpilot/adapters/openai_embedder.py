"""Any OpenAI-compatible server as an embedder: ``POST /v1/embeddings``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import httpx

from ragpilot.adapters import openai_service
from ragpilot.adapters.embed_batches import Refused
from ragpilot.adapters.http import Reply, Service
from ragpilot.adapters.service_embedder import ServiceEmbedder
from ragpilot.errors import EmbedderError
from ragpilot.types import EmbedderIdentity, GateCalibration


class OpenAiEmbedder(ServiceEmbedder):
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
        floor: float | None = None,
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
            floor: The lowest cosine that means anything for this model; None: what is known of it.
            gate: Its calibrated gate; None: the one known for it, if any.
            remembered: What it was when it was last reached; the first contact proves it or refuses.
            pause: Seconds before a failed connection is tried again.

        Raises:
            ConfigError: ``url`` is no address.
        """
        super().__init__(
            Service("The OpenAI-compatible server", openai_service.base_url(url), "embedder"),
            model,
            seconds=seconds,
            api_key=api_key,
            floor=floor,
            gate=gate,
            remembered=remembered,
            pause=pause,
        )
        self._proven = False

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
            known = self._known
            served = await openai_service.context_length(self._service, self._open(), listed)
            window = min(known.window, served or known.window)
            found = EmbedderIdentity(
                name=self._model,
                dimensions=await self._dimensions(window),
                question_prefix=known.question_prefix,
                document_prefix=known.document_prefix,
                truncation=window,
            )
            if self._identity not in {None, found}:
                raise EmbedderError(
                    f"The server at {self.url} embeds otherwise than before: {found.name}, {found.dimensions}-d.",
                    hint="Restart RagPilot and rebuild: ragpilot index --rebuild",
                )
            self._identity, self._proven = found, True

    async def _look(self) -> None:
        await openai_service.models(self._service, self._open())
        await self.prepare()

    def _detail(self) -> str:
        return f"{self.url}, {self._model}, {self.identity.dimensions} dimensions"

    async def _send(self, texts: Sequence[str], window: int) -> list[Any]:  # noqa: ARG002 -- no field says it
        body = {"model": self._model, "input": list(texts), "encoding_format": "float"}
        reply = await self._post("embeddings", body, texts)
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
