"""What a chat model's own counts say about an answer."""

from __future__ import annotations

from typing import Any

from ragpilot.types import ModelUsage, Prompt

READ_SHARE = 0.75
"""Of the estimate. Tokenizers differ, but none of today's needs so few tokens for text and code."""
SLACK_TOKENS = 128
"""An estimate of a short prompt holds reserves."""


def usage_of(model: str, prompt: Prompt, read: Any, written: Any, *, cut: bool, max_tokens: int) -> ModelUsage:
    """The counts as far as they are numbers, and warnings for a prompt not read whole and an answer cut short.

    Args:
        model: The model's name, for the warnings.
        prompt: What was sent; ``prompt.tokens`` is the estimate.
        read: Tokens of the prompt by the model's count.
        written: Tokens of the answer by the model's count.
        cut: Whether generation stopped at a limit rather than at the answer's end.
        max_tokens: That limit.
    """
    prompt_tokens = read if isinstance(read, int) and read > 0 else None
    warnings = []
    if prompt_tokens is not None and prompt_tokens < prompt.tokens * READ_SHARE - SLACK_TOKENS:
        warnings.append(
            f"Context truncated: {model} read {prompt_tokens} of about {prompt.tokens} prompt tokens. "
            "Set chat.context_window to what the model really reads."
        )
    answer_tokens = written if isinstance(written, int) else None
    if cut and answer_tokens is not None and answer_tokens < max_tokens:
        warnings.append("The answer was cut where the model's context window ended (chat.context_window).")
    elif cut:
        warnings.append(f"The answer was cut at the generation limit of {max_tokens} tokens (chat.max_answer_tokens).")
    return ModelUsage(prompt_tokens, answer_tokens, tuple(warnings))
