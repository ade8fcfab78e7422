"""Asking a chat adapter a question, to its end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ragpilot.ports import ChatModel
from ragpilot.types import ModelUsage, Prompt
from tests.builders import block, hit

PROMPT = Prompt("Answer from the blocks.", (block(1, hit()),), "where is it?", tokens=40)


async def answer(
    chat: ChatModel, prompt: Prompt = PROMPT, *, report: Callable[[ModelUsage], None] | None = None
) -> str:
    """All that it streams, within ten seconds."""
    async with asyncio.timeout(10):
        return "".join([piece async for piece in chat.stream(prompt, temperature=0.1, max_tokens=64, report=report)])
