"""A GGUF file as a chat model, through the extra ``ragpilot[llamacpp]``: no service, nothing to install beside."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from pathlib import Path

from ragpilot.adapters.llamacpp_process import LlamaCppProcess
from ragpilot.adapters.openai_chat import OpenAiChat
from ragpilot.adapters.streaming import StreamLimits
from ragpilot.errors import ChatModelTimeoutError, ChatModelUnavailableError, RagPilotError
from ragpilot.types import Health, ModelIdentity, ModelUsage, Prompt

PACKAGE = "xllamacpp"
MAGIC = b"GGUF"


class LlamaCppChat:
    """Runs the file in a process of its own, started by the first question, and speaks to it over loopback.

    Closing a stream ends the model's work at once, also while it still reads the prompt. A process that dies is
    started again by the next question.
    """

    def __init__(
        self,
        path: Path,
        *,
        context_window: int = 8192,
        limits: StreamLimits | None = None,
        threads: int | None = None,
    ) -> None:
        """Starts nothing yet.

        Args:
            path: The GGUF file.
            context_window: Tokens that prompt and answer may take together.
            limits: How long to wait for what; the first token's limit includes loading.
            threads: How many cores the model uses; None: llama.cpp's own choice.
        """
        self.identity = ModelIdentity(name=path.stem, provider="llamacpp")
        self.path = path.absolute()
        self.context_window = context_window
        self._limits = limits or StreamLimits()
        self._threads = threads
        self._starting = asyncio.Lock()
        self._process: LlamaCppProcess | None = None
        self._chat: OpenAiChat | None = None

    @property
    def pid(self) -> int | None:
        """The model's process, for diagnosis; None while none runs."""
        return self._process.pid if self._process is not None and self._process.running else None

    async def prepare(self) -> None:
        """Load the model, if it is not loaded; a second for each 100 MB, and more from a slow disk.

        Raises:
            ChatModelUnavailableError: The extra is not installed, or the file is missing or no model.
            ChatModelTimeoutError: It took longer than the first token may.
        """
        self._look()
        try:
            async with asyncio.timeout(self._limits.first_token):
                await self._running()
        except TimeoutError:
            raise ChatModelTimeoutError(
                f"The model {self.path} was not loaded within {self._limits.first_token:g} s "
                "(chat.first_token_seconds).",
                hint="A smaller model loads quicker.",
            ) from None

    async def stream(
        self,
        prompt: Prompt,
        *,
        temperature: float,
        max_tokens: int,
        report: Callable[[ModelUsage], None] | None = None,
    ) -> AsyncGenerator[str, None]:
        """The answer's pieces as they come; closing the generator ends the model's work at once.

        ``report`` is called once, at the answer's end, with the model's counts.

        Raises:
            ChatModelUnavailableError: The model cannot be loaded, or its process died.
            ChatModelTimeoutError: A limit was passed; the message names it.
            ChatModelError: The model failed.
        """
        await self.prepare()
        chat = await self._running()
        try:
            answer = chat.stream(prompt, temperature=temperature, max_tokens=max_tokens, report=report)
            async with aclosing(answer) as pieces:
                async for piece in pieces:
                    yield piece
        except ChatModelUnavailableError as error:
            if self._process is not None and await self._process.ended():
                raise ChatModelUnavailableError(
                    f"The model {self.path.name} went down while it answered: {self._process.last_words()}.",
                    hint="There may be too little memory for it: choose a smaller model or chat.context_window.",
                ) from error
            raise

    async def check(self) -> Health:
        """Whether the extra is installed and the file is a model; it need not be loaded. Never raises."""
        try:
            await asyncio.to_thread(self._look)
        except RagPilotError as error:
            return Health(ok=False, detail=str(error))
        loaded = "loaded" if self.pid is not None else "loaded by the first question"
        return Health(ok=True, detail=f"{self.path}, window of {self.context_window} tokens, {loaded}")

    async def aclose(self) -> None:
        """End the model's process. Idempotent."""
        async with self._starting:
            await self._end()

    async def _end(self) -> None:
        chat, process = self._chat, self._process
        self._chat = self._process = None
        if chat is not None:
            await chat.aclose()
        if process is not None:
            await process.end()

    async def _running(self) -> OpenAiChat:
        async with self._starting:
            if self._chat is not None and self._process is not None and self._process.running:
                return self._chat
            await self._end()
            self._process, served = await LlamaCppProcess.start(
                self.path, name=self.identity.name, context_window=self.context_window, threads=self._threads
            )
            self._chat = OpenAiChat(
                served.url,
                self.identity.name,
                context_window=self.context_window,
                limits=self._limits,
                api_key=served.key,
                vendor="llama.cpp",
            )
            await self._chat.prepare()
            self.context_window = self._chat.context_window
            return self._chat

    def _look(self) -> None:
        """Raise ChatModelUnavailableError unless the extra and the file are there."""
        if importlib.util.find_spec(PACKAGE) is None:
            raise ChatModelUnavailableError(
                "A GGUF file needs the package xllamacpp, which is not installed.",
                hint='Install it with: pip install "ragpilot[llamacpp]"',
            )
        try:
            with self.path.open("rb") as file:
                magic = file.read(len(MAGIC))
        except OSError as error:
            raise ChatModelUnavailableError(
                f"The model {self.path} cannot be read: {error.strerror}.",
                hint="Set chat.model in config.toml to the path of a GGUF file.",
            ) from error
        if magic != MAGIC:
            raise ChatModelUnavailableError(
                f"The file {self.path} is no GGUF model.",
                hint="Set chat.model in config.toml to the path of a GGUF file.",
            )
