"""The OpenAI protocol in small, as llama.cpp, vLLM and LM Studio speak it: models, chat completions, embeddings."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from tests.protocol.http_server import ProtocolServer, Reply, Request
from tests.protocol.ollama_server import Embedding, vector_of

ChatFault = Callable[[Request, Reply], Awaitable[None]]


class OpenAiServer(ProtocolServer):
    def __init__(self, pieces: Sequence[str] = ("The answer ", "is [1].")) -> None:
        super().__init__()
        self.pieces = list(pieces)
        self.models: list[dict[str, Any]] = [{"id": "qwen", "object": "model", "owned_by": "me"}]
        self.thoughts: list[str] = []
        self.prompt_tokens: int | None = None
        self.finish_reason = "stop"
        self.unknown_fields: tuple[str, ...] = ()
        """Refused by name, as strict servers do."""
        self.before_headers: asyncio.Event | None = None
        self.gate: asyncio.Semaphore | None = None
        self.interval = 0.0
        """Seconds between pieces."""
        self.chat_fault: ChatFault | None = None
        self.embedding = Embedding()
        self.key: str | None = None

    async def handle(self, request: Request, reply: Reply) -> None:
        if self.key and request.headers.get("authorization") != f"Bearer {self.key}":
            await reply.json(401, {"error": {"message": "Invalid API Key", "type": "authentication_error"}})
            return
        match (request.method, request.path):
            case ("GET", "/v1/models"):
                await reply.json(200, {"object": "list", "data": self.models})
            case ("GET", "/props"):
                await reply.json(200, {"default_generation_settings": {"n_ctx": 2048}})
            case ("POST", "/v1/chat/completions"):
                await self._chat(request, reply)
            case ("POST", "/v1/embeddings"):
                await self._embed(request, reply)
            case _:
                await reply.json(404, {"error": {"message": "File Not Found", "type": "not_found_error"}})

    async def _chat(self, request: Request, reply: Reply) -> None:
        if self.before_headers and not await reply.unless_gone(self.before_headers.wait()):
            return
        if self.chat_fault:
            await self.chat_fault(request, reply)
            return
        for name in self.unknown_fields:
            if name in request.body:
                await reply.json(400, {"error": {"message": f"Unsupported parameter: '{name}'", "param": name}})
                return
        await reply.start("text/event-stream")
        await reply.chunk(b": welcome\n\n" + event(choices=[{"index": 0, "delta": {"role": "assistant"}}]))
        for thought in self.thoughts:
            await reply.chunk(event(choices=[{"index": 0, "delta": {"reasoning_content": thought}}]))
        for index, piece in enumerate(self.pieces):
            if self.gate and index and not await reply.unless_gone(self.gate.acquire()):
                return
            await reply.chunk(event(choices=[{"index": 0, "delta": {"content": piece}, "finish_reason": None}]))
            await asyncio.sleep(self.interval)
        await reply.chunk(event(choices=[{"index": 0, "delta": {}, "finish_reason": self.finish_reason}]))
        counted = self.prompt_tokens
        if counted is None:
            counted = sum(len(message["content"]) for message in request.body["messages"]) // 4
        if request.body.get("stream_options", {}).get("include_usage"):
            usage = {"prompt_tokens": counted, "completion_tokens": len(self.pieces)}
            await reply.chunk(event(choices=[], usage=usage))
        await reply.chunk(b"data: [DONE]\n\n")
        await reply.end()

    async def _embed(self, request: Request, reply: Reply) -> None:
        texts: list[str] = request.body["input"]
        fault = self.embedding
        if fault.statuses:
            status, words = fault.statuses.pop(0)
            await reply.json(status, {"error": {"message": words}})
        elif any(len(text) > fault.longest for text in texts):
            words = "input (1301 tokens) is too large to process. increase the physical batch size (current: 512)"
            await reply.json(500, {"error": {"code": 500, "message": words, "type": "server_error"}})
        elif any(fault.poison in text for text in texts):
            await reply.json(500, {"error": {"message": "unsupported value: NaN"}})
        else:
            vectors = fault.answer([vector_of(text) for text in texts])
            data = [{"object": "embedding", "index": at, "embedding": vector} for at, vector in enumerate(vectors)]
            await reply.json(200, {"object": "list", "data": data[::-1], "model": request.body["model"]})


def event(**fields: Any) -> bytes:
    return b"data: " + json.dumps({"id": "1", "object": "chat.completion.chunk", **fields}).encode() + b"\n\n"
