"""The owner process: the only one that touches the shards.

The engine holds the interpreter's lock while it works, and a full disk kills the process that has its files mapped.
So the shards live in a process beside the server, which reads batches of work from its standard input, does them one
after the other, and ends when that input ends: when its parent closes it, or dies in whatever way.
"""

from __future__ import annotations

import gc
import os
import pickle
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from ragpilot.adapters.edge_collections import Collections
from ragpilot.adapters.edge_room import full
from ragpilot.adapters.index_identity import REBUILD
from ragpilot.disk import free_bytes, is_full
from ragpilot.errors import RagPilotError, StoreError

Work = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]
"""A function of ``edge_reads`` or ``edge_writes``, and its arguments after the collections."""

Reply = tuple[bool, Any]
"""True and the value, or False and a RagPilotError."""

READY = "ready"
_SECONDS_TO_END = 30


def main(root: str) -> None:
    """Serve until the input ends. Standard output carries the replies; what is printed goes to standard error."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        # These reach the whole process group or service; the parent decides when the store is closed.
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    # What a search makes has no cycles and is gone with its reply; looking for some takes as long as the search.
    gc.set_threshold(100_000, 50, 50)
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    try:
        serve(Collections(Path(root)), sys.stdin.buffer, replies)
    except BrokenPipeError:
        # The parent died while it was being answered: nobody is left to be told.
        os._exit(0)


def serve(collections: Collections, requests: BinaryIO, replies: BinaryIO) -> None:
    """Answer batches until the input ends, then close the collections."""
    _send(replies, READY)
    try:
        while (batch := _receive(requests)) is not None:
            _send(replies, answer(collections, batch))
    finally:
        if hasattr(signal, "alarm"):
            # A disk that hangs must not leave an orphan that holds the lock; the log has everything by now.
            signal.alarm(_SECONDS_TO_END)
        collections.close()


def answer(collections: Collections, batch: Sequence[Work]) -> list[Reply]:
    """Do the batch in order, then put all its writes on disk at once: a flush costs the same for one and for fifty."""
    done = [_attempt(collections, *work) for work in batch]
    flushed, error = _attempt(collections, Collections.flush, (), {})
    return done if flushed else [(False, error)] * len(batch)


def _attempt(
    collections: Collections, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Reply:
    try:
        return True, function(collections, *args, **kwargs)
    except RagPilotError as error:
        return False, error
    except Exception as error:  # noqa: BLE001 - the engine raises bare Exception; its panics are none, and end the process
        if is_full(error):
            return False, full(collections.root, free_bytes(collections.root))
        problem = f"The store in {collections.root} failed: {error}."
        return False, StoreError(problem, hint=f"If it fails again, {REBUILD}")


def _send(replies: BinaryIO, reply: object) -> None:
    replies.write(pickle.dumps(reply, protocol=pickle.HIGHEST_PROTOCOL))
    replies.flush()


def _receive(requests: BinaryIO) -> list[Work] | None:
    try:
        batch: list[Work] = pickle.load(requests)  # noqa: S301 - the other end is the process that started this one
    except (EOFError, pickle.UnpicklingError):
        return None
    return batch
