"""Ollama's public API (docs/api.md) in small: tags, show, chat, embed. Faults are given by a test."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.fakes import FakeEmbedder
from tests.protocol.http_server import ProtocolServer, Reply, Request

DIMENSIONS = 64

ChatFault = Callable[[Request, Reply], Awaitable[None]]


@dataclass
class Model:
    digest: str = "sha256:" + "ab" * 32
    context_length: int = 32_768
    embedding_length: int = DIMENSIONS
    capabilities: Sequence[str] = ("completion",)


@dataclass
class Embedding:
    """How texts are embedded: a text that one of these matches is refused or answered wrongly."""

    longest: int = 10**9
    """Characters; more is a 400, whatever ``truncate`` says."""
    poison: str = "\0never\0"
    """A text that holds it makes the whole request fail with a NaN."""
    answer: Callable[[list[list[float]]], Any] = lambda vectors: vectors
    """What becomes of the vectors on their way out."""
    statuses: list[tuple[int, str]] = field(default_factory=list)
    """Statuses and errors of the next requests."""


def vector_of(text: str, dimensions: int = DIMENSIONS) -> list[float]:
    return [float(number) for number in FakeEmbedder(dimensions).vector(text)]


class OllamaServer(ProtocolServer):
    def __init__(
        self, pieces: Sequence[str] = ("The answer ", "is [1]."), *, models: Mapping[str, Model] | None = None
    ) -> None:
        super().__init__()
        self.pieces = list(pieces)
        self.models = {f"{name}:latest": model for name, model in (models or {"qwen": Model()}).items()}
        self.thoughts: list[str] = []
        self.prompt_eval_count: int | None = None
        self.done_reason = "stop"
        self.before_headers: asyncio.Event | None = None
        """Set by the test to let the headers go: a cold model sends none before it is loaded."""
        self.gate: asyncio.Semaphore | None = None
        """Acquired before each piece after the first."""
        self.chat_fault: ChatFault | None = None
        self.embedding = Embedding()

    async def handle(self, request: Request, reply: Reply) -> None:
        match (request.method, request.path):
            case ("GET", "/api/tags"):
                listed = [{"name": name, "digest": model.digest} for name, model in self.models.items()]
                await reply.json(200, {"models": listed})
            case ("GET", "/api/version"):
                await reply.json(200, {"version": "0.13.5"})
            case ("POST", "/api/show"):
                await self._with_model(request, reply, self._show)
            case ("POST", "/api/chat"):
                await self._with_model(request, reply, self._chat)
            case ("POST", "/api/embed"):
                await self._with_model(request, reply, self._embed)
            case _:
                await reply.whole(404, b"404 page not found", "text/plain")

    async def _with_model(
        self, request: Request, reply: Reply, then: Callable[[Request, Reply, Model], Awaitable[None]]
    ) -> None:
        name = request.body["model"]
        model = self.models.get(name if ":" in name else f"{name}:latest")
        if model is None:
            await reply.json(404, {"error": f"model '{name}' not found"})
        else:
            await then(request, reply, model)

    async def _show(self, request: Request, reply: Reply, model: Model) -> None:
        info = {
            "general.architecture": "toy",
            "toy.context_length": model.context_length,
            "toy.embedding_length": model.embedding_length,
        }
        await reply.json(200, {"model_info": info, "capabilities": list(model.capabilities)})

    async def _chat(self, request: Request, reply: Reply, model: Model) -> None:
        if self.before_headers and not await reply.unless_gone(self.before_headers.wait()):
            return
        if self.chat_fault:
            await self.chat_fault(request, reply)
            return
        await reply.start("application/x-ndjson")
        for thought in self.thoughts:
            await reply.chunk(line(message={"role": "assistant", "content": "", "thinking": thought}, done=False))
        for index, piece in enumerate(self.pieces):
            if self.gate and index and not await reply.unless_gone(self.gate.acquire()):
                return
            await reply.chunk(line(message={"role": "assistant", "content": piece}, done=False))
        counted = self.prompt_eval_count
        if counted is None:
            counted = sum(len(message["content"]) for message in request.body["messages"]) // 4
        await reply.chunk(
            line(
                message={"role": "assistant", "content": ""},
                done=True,
                done_reason=self.done_reason,
                prompt_eval_count=counted,
                eval_count=len(self.pieces),
            )
        )
        await reply.end()

    async def _embed(self, request: Request, reply: Reply, model: Model) -> None:
        given = request.body["input"]
        texts = [given] if isinstance(given, str) else given
        fault = self.embedding
        if fault.statuses:
            status, words = fault.statuses.pop(0)
            await reply.json(status, {"error": words})
        elif any(len(text) > fault.longest for text in texts):
            await reply.json(400, {"error": "the input length exceeds the context length"})
        elif any(fault.poison in text for text in texts):
            await reply.json(500, {"error": "failed to encode response: json: unsupported value: NaN"})
        else:
            vectors = [vector_of(text, model.embedding_length) for text in texts]
            await reply.json(200, {"model": request.body["model"], "embeddings": fault.answer(vectors)})


def line(**fields: Any) -> bytes:
    return json.dumps({"model": "toy", "created_at": "2025-10-26T17:15:24.097767Z", **fields}).encode() + b"\n"
