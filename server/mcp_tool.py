"""What a tool for agents is: its description, one call of it, its progress, its output, and what is said of errors."""

from __future__ import annotations

import difflib
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from mcp_types import ToolAnnotations

from ragpilot.errors import (
    ChatModelError,
    ChatModelTimeoutError,
    ChatModelUnavailableError,
    EmbedderError,
    EmbedderUnavailableError,
    InvalidRequestError,
    RagPilotError,
    StoreError,
    StoreUnavailableError,
    UnknownCorpusError,
)
from ragpilot.types import Actor, Permission
from server.mcp_schemas import Result, input_schema, output_schema
from server.problems import from_error
from server.requests import Body, check

PROGRESS_SECONDS = 0.5
"""Progress is told at most this often."""

_STEP = 0.01
"""By how much the number of a notification grows at least."""

_AWAY: tuple[tuple[type[RagPilotError], str], ...] = (
    (StoreUnavailableError, "The store of the index is away."),
    (StoreError, "The store of the index failed."),
    (EmbedderUnavailableError, "The embedder is away."),
    (EmbedderError, "The embedder failed."),
    (ChatModelUnavailableError, "The chat model is away; rag_query works without it."),
    (ChatModelError, "The chat model failed; rag_query works without it."),
)
"""An agent learns which part it is. Addresses, folders and causes are for `ragpilot status` and the server's log."""


class ToolError(Exception):
    """A call that failed, in words for the agent that made it; ``code`` is the word for the log."""

    def __init__(self, code: str, words: str) -> None:
        super().__init__(words)
        self.code = code


class Report(Protocol):
    """Sends one notification of progress, where the caller asked for them."""

    async def __call__(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Send it."""
        ...


class Progress:
    """Progress of one call. ``watched``: somebody has asked for it."""

    def __init__(self, report: Report, *, watched: bool) -> None:
        self._report = report
        self.watched = watched
        self._number = 0.0
        self._total: float | None = None
        self._stage = ""
        self._before = 0.0
        """The number at which the stage began."""
        self._last = float("-inf")

    async def tell(self, message: str, *, always: bool = False) -> None:
        """Tell what is done now. Told too soon after the last one, it is dropped, unless ``always``."""
        step = 1.0 if self._total is None else _STEP
        await self._tell(message, self._number + step, self._total, always=always)

    async def tell_of(self, stage: str, message: str, *, done: int, total: int) -> None:
        """The same, where it is known how much a stage holds and how much of it is done; a total of 0 is not known."""
        if stage != self._stage:
            self._stage, self._before, self._total = stage, self._number, None
        whole = self._before + total if total else None
        await self._tell(message, self._before + done, whole, always=False)

    async def _tell(self, message: str, number: float, total: float | None, *, always: bool) -> None:
        now = time.monotonic()
        if not self.watched or (now - self._last < PROGRESS_SECONDS and not always):
            return
        self._last = now
        # The protocol wants a number that grows with every notification, and knows no stages that begin anew.
        self._number = max(number, self._number + _STEP)
        self._total = None if total is None else max(total, self._number)
        await self._report(self._number, self._total, message)


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a tool."""

    actor: Actor
    request_id: str
    progress: Progress


@dataclass(frozen=True, slots=True)
class Output:
    """What a call gives: text for the agent, and the same as JSON."""

    text: str
    result: Result

    @property
    def structured(self) -> dict[str, Any]:
        """The result in JSON types."""
        return self.result.model_dump(mode="json", by_alias=True)


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool. ``run`` gets its arguments checked, as an instance of ``arguments``."""

    name: str
    title: str
    description: str
    arguments: type[Body]
    result: type[Result]
    annotations: ToolAnnotations
    run: Callable[[Call, Any], Awaitable[Output]]
    seconds: float
    """A call that takes longer is cut off."""
    permission: Permission = "ask"
    audited: bool = False
    """Each call is logged at the security level, those too that are refused."""

    @property
    def input_schema(self) -> dict[str, Any]:
        """JSON schema of the arguments."""
        return input_schema(self.arguments)

    def checked(self, arguments: Mapping[str, Any]) -> Body:
        """``arguments`` as the tool takes them; null counts as left away where that may be.

        Raises InvalidRequestError, which names the argument and its rule.
        """
        fields = {field.alias or name: field for name, field in self.arguments.model_fields.items()}
        unknown = next((name for name in arguments if name not in fields), None)
        if unknown is not None:
            raise InvalidRequestError(_no_argument(self.name, unknown, list(fields)), field=unknown[:100])
        for name, field in fields.items():
            if field.is_required() and name not in arguments:
                rule = f"{self.name} needs the argument {name!r}: it must be {field.description}."
                raise InvalidRequestError(rule, field=name)
        given = {name: value for name, value in arguments.items() if value is not None or fields[name].is_required()}
        return check(self.arguments, given)

    @property
    def output_schema(self) -> dict[str, Any]:
        """JSON schema of the structured output."""
        return output_schema(self.result)


def _no_argument(tool: str, name: str, known: list[str]) -> str:
    if not known:
        return f"{tool} takes no arguments, and was given {name[:100]!r}."
    folded = {each.lower(): each for each in known}
    near = difflib.get_close_matches(name.lower().replace("_", ""), folded, n=1, cutoff=0.6)
    meant = f" Did you mean {folded[near[0]]!r}?" if near else ""
    return f"{tool} has no argument {name[:100]!r}.{meant} It takes: {', '.join(known)}."


def words_of(error: RagPilotError, *, tool: Tool) -> str:
    """What an agent is told of ``error``: what is away or wrong and what to do, without details."""
    if isinstance(error, UnknownCorpusError):
        # By the name that the tool's argument has.
        noun = "collection" if "collection" in tool.arguments.model_fields else "corpus"
        words = error.message.replace("There is no corpus", f"There is no {noun}", 1)
        return f"{words} rag_collections lists those there are."
    if isinstance(error, ChatModelTimeoutError):
        return error.message
    away = next((words for kind, words in _AWAY if isinstance(error, kind)), None)
    return away or from_error(error).detail
