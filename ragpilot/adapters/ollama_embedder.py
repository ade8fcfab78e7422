"""Ollama as an embedder: ``POST /api/embed``."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import httpx

from ragpilot.adapters import ollama_service
from ragpilot.adapters.embed_batches import Refused
from ragpilot.adapters.http import Service
from ragpilot.adapters.ollama_host import ollama_url
from ragpilot.adapters.ollama_service import OllamaModel
from ragpilot.adapters.service_embedder import ServiceEmbedder
from ragpilot.errors import EmbedderError
from ragpilot.types import EmbedderIdentity, GateCalibration

DIGEST_SECONDS = 60.0
"""How long it is believed that the server still has the same model under the name."""


class OllamaEmbedder(ServiceEmbedder):
    """Embeds through an Ollama server, with the prefixes that the model's makers ask for.

    The identity holds the digest of the model's weights and the dimensions that it really gives, so the server must
    have been reached once before it is known.
    """

    _model: str

    def __init__(
        self,
        url: str | None,
        model: str,
        *,
        keep_alive: str = "30m",
        seconds: float = 300.0,
        api_key: str | None = None,
        floor: float | None = None,
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
            floor: The lowest cosine that means anything for this model; None: what is known of it.
            gate: Its calibrated gate; None: the one known for it, if any.
            remembered: What it was when it was last reached; the first contact proves it or refuses.
            pause: Seconds before a failed connection is tried again.

        Raises:
            ConfigError: ``url`` is no address, or ``keep_alive`` no duration.
        """
        super().__init__(
            Service("Ollama", ollama_url(url), "embedder"),
            model,
            seconds=seconds,
            api_key=api_key,
            floor=floor,
            gate=gate,
            remembered=remembered,
            pause=pause,
        )
        self._keep_alive = ollama_service.keep_alive_value(keep_alive)
        self._seen = -DIGEST_SECONDS

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

    async def _look(self) -> None:
        self._seen = -DIGEST_SECONDS
        await self.prepare()

    def _detail(self) -> str:
        return f"Ollama at {self.url}, {self._model}, {self.identity.dimensions} dimensions"

    async def _send(self, texts: Sequence[str], window: int) -> list[Any]:
        body = {
            "model": self._model,
            "input": list(texts),
            "truncate": True,
            "keep_alive": self._keep_alive,
            "options": {"num_ctx": window},
        }
        reply = await self._post("/api/embed", body, texts)
        rows = reply.body.get("embeddings") if isinstance(reply.body, dict) else None
        if reply.status == httpx.codes.OK and isinstance(rows, list):
            return rows
        if reply.status in {400, 413, 422, 500}:
            refused = EmbedderError(str(ollama_service.refusal(self._service, self._model, reply)))
            raise Refused(refused, too_long=ollama_service.is_too_long(reply))
        if reply.status == httpx.codes.OK:
            raise self._service.failed(f"Ollama at {self.url} answered without a list of embeddings.")
        raise ollama_service.refusal(self._service, self._model, reply)
