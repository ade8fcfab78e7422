"""How long a call that only reads may take, and which part it waited for where it took longer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Final, TypeVar

from ragpilot.errors import EmbedderUnavailableError, StoreUnavailableError
from ragpilot.status import StatusService
from server.problems import Problem, ProblemError

READ_SECONDS: Final = 30.0
"""What needs no language model ends by then; a first question may load the embedder, or embed some headers."""

_LOOK_SHARE: Final = 0.1
_LOOK_SECONDS: Final = 3.0

_SILENT: Final = {
    "store": Problem(
        503,
        StoreUnavailableError.code,
        "The store of the index does not answer. Ask again in a moment.",
        headers=(("Retry-After", "10"),),
        hint="Ask again in a moment.",
    ),
    "embedder": Problem(
        503,
        EmbedderUnavailableError.code,
        "The embedder does not answer. Ask again in a moment.",
        headers=(("Retry-After", "10"),),
        hint="Ask again in a moment.",
    ),
}

_T = TypeVar("_T")


def look_seconds(seconds: float) -> float:
    """How much of a deadline is kept for finding out what was waited for."""
    return min(_LOOK_SECONDS, seconds * _LOOK_SHARE)


async def silent_part(status: StatusService, *, within: float) -> Problem | None:
    """The part of the core that does not say within so many seconds that it is well; None where all do."""
    parts = await status.health(within=within)
    return next((problem for name, problem in _SILENT.items() if not parts[name].ok), None)


async def in_time(work: Awaitable[_T], status: StatusService, *, seconds: float | None = None) -> _T:
    """The result of ``work``, which is cut off so that all is over after ``seconds`` (READ_SECONDS).

    Raises ProblemError: 503 with the part that does not answer, or 504; and whatever ``work`` raises.
    """
    whole = READ_SECONDS if seconds is None else seconds
    look = look_seconds(whole)
    deadline = asyncio.timeout(whole - look)
    try:
        async with deadline:
            return await work
    except TimeoutError:
        if not deadline.expired():
            raise
    late = Problem(504, "timeout", f"There was no result within {whole:g} s.", headers=(("Retry-After", "10"),))
    raise ProblemError(await silent_part(status, within=look) or late)
