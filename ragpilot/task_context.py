"""The facade for planners: what the index knows about a task, as text to put before a model, or nothing.

It asks the running server of the working folder, or else opens the index itself, once for all who ask at the same time;
a command that holds the index is waited for. It never raises and never takes longer than ten seconds: a planner that
gets no context plans without it.
"""

from __future__ import annotations

import asyncio
import atexit
import functools
import logging
import os
import threading
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from ragpilot.actors import command_token, resolve_actor
from ragpilot.config import Environment
from ragpilot.errors import PermissionDeniedError, RagPilotError, StoreInUseError
from ragpilot.logs import log_unexpected
from ragpilot.mcp_client import McpClient, RpcError, running_server
from ragpilot.passages import format_passages
from ragpilot.runtime import existing_token
from ragpilot.searching import SearchService
from ragpilot.settings_loader import load
from ragpilot.task_index import opened_index
from ragpilot.types import Actor

QUERY_CHARS: Final = 500
LIMIT: Final = 3
THRESHOLD: Final = 0.5
SECONDS: Final = 10.0
STARTING_SECONDS: Final = 3.0
"""How long a server that is just starting is waited for."""
AGAIN_SECONDS: Final = 0.1
"""After how long an index that somebody else holds is tried again."""

_JOINER: Final = "\u200d"
_SKIN_TONES: Final = range(0x1F3FB, 0x1F400)
_FLAG_LETTERS: Final = range(0x1F1E6, 0x1F200)

logger = logging.getLogger(__name__)
_starting = threading.Lock()


async def query_rag_for_task(
    title: str | None,
    description: str | None,
    *,
    actor: Actor,
    searcher: SearchService | None = None,
    directory: Path | None = None,
) -> str:
    """Passages of the index that are near to a task, numbered and named; empty where there are none.

    Whatever goes wrong gives the empty string, and a line in the log that holds nothing of the task.

    Args:
        title: The task's title; None as well as empty where it has none.
        description: What is to be done, likewise. Of both together the first 500 characters are looked for.
        actor: Who plans: nothing comes back that he may not read.
        searcher: The search of an application that is open already; None: the index of ``directory``.
        directory: The working folder whose configuration counts; None: the current one.
    """
    waited_for: list[str] = []
    work = asyncio.ensure_future(_context(title, description, actor, searcher, directory, waited_for))
    # What is abandoned at the deadline tidies up behind us, and its end interests nobody.
    work.add_done_callback(lambda done: done.cancelled() or done.exception())
    try:
        await asyncio.wait({work}, timeout=SECONDS)
        if not work.done():
            why = f" ({waited_for[-1]})" if waited_for else ""
            logger.warning("no context for a task: nothing came within %g s%s", SECONDS, why)
            return ""
        return work.result()
    except RagPilotError as error:
        logger.warning("no context for a task: %s", error.code)
    except RpcError as error:
        logger.warning("no context for a task: the server refused the call (%d)", error.code)
    except Exception as error:  # noqa: BLE001 - a planner must never fail for want of context
        log_unexpected(logger, error, "context for a task")
    finally:
        work.cancel()
    return ""


def query_rag_for_task_sync(
    title: str | None, description: str | None, *, actor: Actor, directory: Path | None = None
) -> str:
    """``query_rag_for_task`` for planners without an event loop; may be called beside a running one, and in threads."""
    with _starting:
        loop = _loop(os.getpid())
    query = query_rag_for_task(title, description, actor=actor, directory=directory)
    going = asyncio.run_coroutine_threadsafe(query, loop)
    try:
        return going.result(SECONDS + 1.0)
    except TimeoutError:
        going.cancel()
        logger.warning("no context for a task: nothing came within %g s", SECONDS)
        return ""


@functools.cache
def _loop(_: int) -> asyncio.AbstractEventLoop:
    """The event loop of a process, in a thread that no exit waits for: calls without a loop share what they open."""
    loop = asyncio.new_event_loop()

    def run() -> None:
        try:
            loop.run_forever()
        finally:
            loop.close()

    thread = threading.Thread(target=run, name="task-context", daemon=True)
    thread.start()

    def end() -> None:
        if thread.is_alive():
            loop.call_soon_threadsafe(loop.stop)
            thread.join(1.0)

    atexit.register(end)
    return loop


def task_query(title: str | None, description: str | None) -> str:
    """What is looked for: title and description, at most 500 characters, none of them split."""
    joined = " ".join(part for part in ((title or "").strip(), (description or "").strip()) if part)
    return _cut(joined.encode(errors="replace").decode(), QUERY_CHARS).strip()


async def _context(
    title: str | None,
    description: str | None,
    actor: Actor,
    searcher: SearchService | None,
    directory: Path | None,
    waited_for: list[str],
) -> str:
    actor.need("ask")
    query = task_query(title, description)
    if not query:
        return ""
    if searcher is not None:
        return await _search(searcher, actor, query)
    environment = await asyncio.to_thread(load, config=None, directory=directory, environ=os.environ)
    while True:
        record = await running_server(environment.state, wait=STARTING_SECONDS)
        if record is not None:
            return await _ask_server(record.address, environment, actor, query, os.environ)
        try:
            return await _open_index(environment, actor, query)
        except StoreInUseError as error:
            # By a command, which ends, or by a server that is just starting: what is there is looked at anew.
            waited_for.append(error.code)
            await asyncio.sleep(AGAIN_SECONDS)


async def _search(searcher: SearchService, actor: Actor, query: str) -> str:
    found = await searcher.search(actor, query, k=LIMIT, min_score=THRESHOLD, texts=True)
    if not found["hits"]:
        _log_warnings(found)
        return ""
    return format_passages(found)


def _log_warnings(found: Mapping[str, Any]) -> None:
    """Why there was nothing, where that is not for want of a passage near enough; words of ours, none of the task."""
    for warning in found["warnings"]:
        logger.warning("no context for a task: %s", warning)


async def _ask_server(
    address: str, environment: Environment, actor: Actor, query: str, environ: Mapping[str, str]
) -> str:
    """Through the server, which answers for the actor of RAGPILOT_TOKEN: that one may not read more than ``actor``."""
    token = command_token(environ)
    local = existing_token(environment.state)
    known = resolve_actor(environment.settings, token, local_token=local, environ=environ)
    if not known.principals <= actor.principals:
        raise PermissionDeniedError(f"The server would answer for {known.name!r}, who may read more than the actor.")
    client = McpClient(address, token)
    try:
        arguments = {"question": query, "limit": LIMIT, "threshold": THRESHOLD}
        result: dict[str, Any] = await client.call("tools/call", {"name": "rag_query", "arguments": arguments})
    finally:
        await client.aclose()
    text = str(result["content"][0]["text"])
    if result.get("isError"):
        logger.warning("no context for a task: %s", text)
        return ""
    found = result["structuredContent"]
    if not found["hits"]:
        _log_warnings(found)
        return ""
    return text


async def _open_index(environment: Environment, actor: Actor, query: str) -> str:
    embedded = environment.settings.store.kind == "embedded"
    if embedded and environment.settings.store.path is None and not environment.state.exists():
        logger.info("no context for a task: nothing is indexed for its folder")
        return ""
    # Here, and not above: it loads every vendor's library, of which a planner with a server has no need.
    from ragpilot.bootstrap import build

    async with opened_index(environment, build) as searcher:
        return await _search(searcher, actor, query)


def _cut(text: str, length: int) -> str:
    """The first ``length`` characters; fewer where the cut would split what a reader sees as one character."""
    if len(text) <= length:
        return text
    end = length
    while end > 0 and _belongs(text, end):
        end -= 1
    return text[:end]


def _belongs(text: str, at: int) -> bool:
    """Whether the character at ``at`` forms one with those before it: an accent, a joined emoji, half a flag."""
    character, before = text[at], text[at - 1]
    if character == _JOINER or before == _JOINER or unicodedata.category(character) in ("Mn", "Me", "Mc"):
        return True
    if ord(character) in _SKIN_TONES or (before, character) == ("\r", "\n"):
        return True
    if ord(character) in _FLAG_LETTERS:
        start = at
        while start > 0 and ord(text[start - 1]) in _FLAG_LETTERS:
            start -= 1
        return (at - start) % 2 == 1
    return False
