"""What the chat models behind a service have in common: a window, limits, messages, and one fault of reasoning."""

from __future__ import annotations

import logging

from ragpilot.adapters.http import Service
from ragpilot.adapters.service_client import ServiceClient
from ragpilot.adapters.streaming import Patience, StreamLimits
from ragpilot.adapters.token_prefix import encodable
from ragpilot.errors import RagPilotError
from ragpilot.types import Prompt

logger = logging.getLogger(__name__)

LEAST_WINDOW = 1024


class ServiceChat(ServiceClient):
    """A chat model behind a service."""

    def __init__(
        self,
        service: Service,
        model: str | None,
        *,
        context_window: int,
        limits: StreamLimits | None,
        api_key: str | None,
    ) -> None:
        """Connects to nothing yet; ``model`` None: the only one that the service has."""
        super().__init__(service, api_key)
        self.context_window = context_window
        self._model = model
        self._limits = limits or StreamLimits()
        self._described = False

    async def _begun(self) -> Patience:
        """The limits of one answer, which count from now; the service is asked for the model if it never was."""
        patience = Patience(self._limits, self._service, self._model or "the model")
        if not self._described:
            await patience.wait(self.prepare())
        return patience

    def _fit(self, window: int | None) -> None:
        """Lower ``context_window`` to what the model or its server reads, where that is known."""
        if window is not None and window < self.context_window:
            logger.warning("%s reads at most %d tokens; chat.context_window is lowered to that", self._model, window)
            self.context_window = max(window, LEAST_WINDOW)
        self._described = True

    def _messages(self, prompt: Prompt) -> list[dict[str, str]]:
        return [{"role": message.role, "content": encodable(message.content)} for message in prompt.messages()]

    def _only_reasoned(self, max_tokens: int) -> RagPilotError:
        return self._service.failed(
            f"{self._model} spent all {max_tokens} tokens on reasoning and wrote no answer.",
            hint="Raise chat.max_answer_tokens in config.toml, or choose a model that does not reason.",
        )
