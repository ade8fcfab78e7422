"""Ollama as a chat model: ``POST /api/chat``, streamed as lines of JSON."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any, Literal

from ragpilot.adapters import ollama_service
from ragpilot.adapters.http import Reply, Service, complaint
from ragpilot.adapters.ollama_host import ollama_url
from ragpilot.adapters.service_chat import ServiceChat
from ragpilot.adapters.streaming import UNPACKED, StreamLimits, json_object, streamed_lines
from ragpilot.adapters.thinking import ThinkingFilter
from ragpilot.adapters.usage import usage_of
from ragpilot.errors import RagPilotError
from ragpilot.types import ModelIdentity, ModelUsage, Prompt


class OllamaChat(ServiceChat):
    """Streams answers from an Ollama server.

    ``num_ctx`` goes out with every request: without it the server would cut a long prompt at 4,096 tokens, the system
    message first, and say nothing. The window is lowered to what the model was made for as soon as that is known.
    """

    _model: str

    def __init__(
        self,
        url: str | None,
        model: str,
        *,
        context_window: int = 8192,
        keep_alive: str = "30m",
        limits: StreamLimits | None = None,
        think: bool | Literal["low", "medium", "high"] = False,
        api_key: str | None = None,
    ) -> None:
        """Connects to nothing yet.

        Args:
            url: The server, in any spelling of OLLAMA_HOST; None: this machine, port 11434.
            model: As ``ollama list`` names it; without a tag, ``latest``.
            context_window: Tokens that prompt and answer may take together.
            keep_alive: How long the model stays loaded after an answer: ``30m``, seconds, or ``-1`` for ever.
            limits: How long to wait for what.
            think: Whether a thinking model reasons before it answers. Reasoning is never answer text.
            api_key: Sent as a bearer token, for servers behind a gateway.

        Raises:
            ConfigError: ``url`` is no address, or ``keep_alive`` no duration.
        """
        service = Service("Ollama", ollama_url(url), "chat")
        super().__init__(service, model, context_window=context_window, limits=limits, api_key=api_key)
        self.identity = ModelIdentity(name=model, provider="ollama")
        self._keep_alive = ollama_service.keep_alive_value(keep_alive)
        self._think = think

    async def prepare(self) -> None:
        """Ask the server for the model, and fit ``context_window`` to it.

        Raises:
            ChatModelUnavailableError: The server cannot be reached or lacks the model.
            ChatModelError: The model cannot chat.
        """
        model = await ollama_service.describe(self._service, self._open(), self._model)
        if model.capabilities and "completion" not in model.capabilities:
            offers = ", ".join(sorted(model.capabilities))
            raise self._service.failed(
                f"The model {self._model} at {self.url} cannot chat; it offers: {offers}.",
                hint="Set chat.model in config.toml to a language model.",
            )
        self._fit(model.context_length)

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
        should know. Closing the generator closes the connection at once; Ollama then stops generating.

        Raises:
            ChatModelUnavailableError: The server cannot be reached, lacks the model, or broke off.
            ChatModelTimeoutError: A limit was passed; the message names it.
            ChatModelError: The server failed, before or while it streamed.
        """
        patience = await self._begun()
        client = self._open()
        request = client.build_request(
            "POST", "/api/chat", json=self._body(prompt, temperature, max_tokens), headers=UNPACKED
        )
        thinking, reasoned, spoken = ThinkingFilter(), False, False
        last: dict[str, Any] | None = None
        async with aclosing(streamed_lines(client, request, patience, self._service, self._refusal)) as found:
            async for line in found:
                if not line.strip():
                    continue
                data = json_object(line, self._service)
                if words := complaint(data):
                    raise self._service.failed(f"Ollama at {self.url} failed while {self._model} was writing: {words}.")
                content, thought = _parts(data)
                if content or thought:
                    patience.spoken()
                reasoned = reasoned or bool(thought)
                if text := thinking.feed(content):
                    spoken = True
                    yield text
                if data.get("done"):
                    last = data
                    break
        if last is None:
            raise self._service.unavailable(f"Ollama at {self.url} broke off before the answer was done.")
        if text := thinking.end():
            spoken = True
            yield text
        cut = last.get("done_reason") == "length"
        if cut and not spoken and (reasoned or thinking.seen):
            raise self._only_reasoned(max_tokens)
        if report:
            counts = (last.get("prompt_eval_count"), last.get("eval_count"))
            report(usage_of(self._model, prompt, *counts, cut=cut, max_tokens=max_tokens))

    def _detail(self) -> str:
        return f"Ollama at {self.url}, {self._model}, window of {self.context_window} tokens"

    def _body(self, prompt: Prompt, temperature: float, max_tokens: int) -> dict[str, Any]:
        return {
            "model": self._model,
            "messages": self._messages(prompt),
            "stream": True,
            "think": self._think,
            "keep_alive": self._keep_alive,
            # A server that knows these refuses a prompt that does not fit, instead of cutting it silently.
            "truncate": False,
            "shift": False,
            "options": {"num_ctx": self.context_window, "num_predict": max_tokens, "temperature": temperature},
        }

    def _refusal(self, reply: Reply) -> RagPilotError:
        return ollama_service.refusal(self._service, self._model, reply)


def _parts(data: dict[str, Any]) -> tuple[str, str]:
    """Answer text and reasoning of one line."""
    message = data.get("message")
    if not isinstance(message, dict):
        return "", ""
    content, thought = message.get("content"), message.get("thinking")
    return content if isinstance(content, str) else "", thought if isinstance(thought, str) else ""
