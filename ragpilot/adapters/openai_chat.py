"""Any OpenAI-compatible server as a chat model: ``POST /v1/chat/completions``, streamed as server-sent events."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any

from ragpilot.adapters import openai_service
from ragpilot.adapters.http import Reply, Service, complaint, plain
from ragpilot.adapters.service_chat import ServiceChat
from ragpilot.adapters.streaming import UNPACKED, StreamLimits, json_object, server_sent_data, streamed_lines
from ragpilot.adapters.thinking import ThinkingFilter
from ragpilot.adapters.usage import usage_of
from ragpilot.errors import RagPilotError
from ragpilot.types import ModelIdentity, ModelUsage, Prompt

logger = logging.getLogger(__name__)

OPTIONAL = ("stream_options", "temperature", "max_tokens")
"""Fields that some server or model refuses; each is left out, or renamed, once it was refused by name."""


class OpenAiChat(ServiceChat):
    """Streams answers from llama.cpp's server, vLLM, LM Studio and whatever else speaks this protocol."""

    def __init__(
        self,
        url: str,
        model: str | None,
        *,
        context_window: int = 8192,
        limits: StreamLimits | None = None,
        api_key: str | None = None,
        vendor: str = "The OpenAI-compatible server",
    ) -> None:
        """Connects to nothing yet.

        Args:
            url: The server, with or without ``/v1``.
            model: As the server lists it; None: the only one it has.
            context_window: Tokens that prompt and answer may take together; lowered to what the server says.
            limits: How long to wait for what.
            api_key: Sent as a bearer token.
            vendor: What messages call the server.

        Raises:
            ConfigError: ``url`` is no address.
        """
        service = Service(vendor, openai_service.base_url(url), "chat")
        super().__init__(service, model, context_window=context_window, limits=limits, api_key=api_key)
        self._refused: set[str] = set()

    @property
    def identity(self) -> ModelIdentity:
        """The model's name, once it is known; until then the address stands for the only one there."""
        return ModelIdentity(name=self._model or self.url, provider="openai")

    async def prepare(self) -> None:
        """Ask the server for its models, settle on one, and fit ``context_window`` to it.

        Raises:
            ChatModelUnavailableError: The server cannot be reached, or it is not clear which model is meant.
        """
        self._model, listed = await openai_service.resolve_model(self._service, self._open(), self._model)
        self._fit(await openai_service.context_length(self._service, self._open(), listed))

    async def stream(
        self,
        prompt: Prompt,
        *,
        temperature: float,
        max_tokens: int,
        report: Callable[[ModelUsage], None] | None = None,
    ) -> AsyncGenerator[str, None]:
        """The answer's pieces as they come.

        ``report`` is called once, at the answer's end, with the counts that the model gave and what the asker
        should know. Closing the generator closes the connection at once.

        Raises:
            ChatModelUnavailableError: The server cannot be reached, lacks the model, or broke off.
            ChatModelTimeoutError: A limit was passed; the message names it.
            ChatModelError: The server failed, before or while it streamed.
        """
        patience = await self._begun()
        answer = _Answer(self._service, self.identity.name)
        for _ in range(len(OPTIONAL) + 1):
            body = self._body(prompt, temperature, max_tokens)
            request = self._open().build_request("POST", "chat/completions", json=body, headers=UNPACKED)
            try:
                async with (
                    aclosing(streamed_lines(self._open(), request, patience, self._service, self._refusal)) as lines,
                    aclosing(server_sent_data(lines)) as events,
                ):
                    async for data in events:
                        if not data.strip():
                            continue
                        text = answer.read(data)
                        if answer.begun:
                            patience.spoken()
                        if answer.done:
                            patience.end()
                        if text:
                            yield text
                        if answer.finished:
                            break
                break
            except _FieldRefusedError as refused:
                logger.info("%s does not take %s", self.url, refused.field)
        if text := answer.end():
            yield text
        if answer.only_reasoned:
            raise self._only_reasoned(max_tokens)
        if report:
            report(usage_of(self.identity.name, prompt, *answer.counts, cut=answer.cut, max_tokens=max_tokens))

    def _detail(self) -> str:
        return f"{self.url}, {self._model}, window of {self.context_window} tokens"

    def _body(self, prompt: Prompt, temperature: float, max_tokens: int) -> dict[str, Any]:
        body = {
            "model": self._model,
            "messages": self._messages(prompt),
            "stream": True,
            "stream_options": {"include_usage": True},
            "temperature": temperature,
            "max_tokens": max_tokens,
        }
        if "max_tokens" in self._refused:
            body["max_completion_tokens"] = max_tokens
        return {name: value for name, value in body.items() if name not in self._refused}

    def _refusal(self, reply: Reply) -> RagPilotError:
        words = reply.complaint()
        if reply.status in {400, 422} and not openai_service.is_too_long(reply):
            for field in OPTIONAL:
                if field in words and field not in self._refused:
                    self._refused.add(field)
                    return _FieldRefusedError(words, field)
        return openai_service.refusal(self._service, self.identity.name, reply)


class _FieldRefusedError(RagPilotError):
    """The server refused an optional field by name: the request is worth another try without it."""

    def __init__(self, message: str, field: str) -> None:
        super().__init__(message)
        self.field = field


class _Answer:
    """Reads the events of one answer."""

    def __init__(self, service: Service, model: str) -> None:
        self._service = service
        self._model = model
        self._thinking = ThinkingFilter()
        self._reason: str | None = None
        self._spoken = False
        self._reasoned = False
        self.counts: tuple[Any, Any] = (None, None)
        self.begun = False
        """Whether the model has written anything, reasoning included."""
        self.finished = False

    @property
    def done(self) -> bool:
        """Whether the model has said why it ended; counts may follow."""
        return self._reason is not None

    @property
    def cut(self) -> bool:
        """Whether the answer ended at a limit."""
        return self._reason == "length"

    def read(self, data: bytes) -> str:
        """The answer text of one event. Raises ChatModelError for an error in it."""
        if data == b"[DONE]":
            self.finished = True
            return ""
        event = json_object(data, self._service)
        if words := complaint(event) or _bare_message(event):
            raise self._service.failed(f"{self._model} at {self._service.url} failed while it was writing: {words}.")
        usage = event.get("usage")
        if isinstance(usage, dict):
            self.counts = usage.get("prompt_tokens"), usage.get("completion_tokens")
        choices = event.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else {}
        if not isinstance(choice, dict):
            return ""
        self._reason = choice.get("finish_reason") or self._reason
        # A server that does not stream sends the whole message at once.
        delta = choice.get("delta") or choice.get("message")
        if not isinstance(delta, dict):
            return ""
        content, thought = _text_of(delta.get("content")), delta.get("reasoning_content") or delta.get("reasoning")
        self._reasoned = self._reasoned or bool(thought)
        self.begun = self.begun or bool(content or thought)
        text = self._thinking.feed(content)
        self._spoken = self._spoken or bool(text)
        return text

    @property
    def only_reasoned(self) -> bool:
        """Whether the limit came before the first word of the answer."""
        return self.cut and not self._spoken and (self._reasoned or self._thinking.seen)

    def end(self) -> str:
        """What was held back. Raises the service's error for an answer that broke off."""
        if not self.finished and self._reason is None:
            raise self._service.unavailable(f"{self._model} at {self._service.url} broke off before it was done.")
        text = self._thinking.end()
        self._spoken = self._spoken or bool(text)
        return text


def _text_of(content: object) -> str:
    """The answer text of a message's content, which is a string, nothing, or a list of parts of some kinds."""
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict) and part.get("type") == "text"]
        return "".join(text for text in parts if isinstance(text, str))
    return content if isinstance(content, str) else ""


def _bare_message(event: dict[str, Any]) -> str:
    """The words of an error that is an event of its own: ``{"object": "error", "message": "…"}``."""
    message = event.get("message")
    return plain(message) if "choices" not in event and isinstance(message, str) else ""
