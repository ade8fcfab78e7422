"""``serve`` in a process of its own, over fakes: what signals, ports and locks are tested with."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from ragpilot.config import Environment
from ragpilot.errors import RagPilotError
from server.run import serve
from tests.fakes import ScriptedChatModel
from tests.server.support import BUDGET, RETRY, ScriptedIngestion, Stand, settings_of


class Composed(Stand):
    """The stand as a context manager that says when it is closed."""

    async def __aenter__(self) -> Stand:
        await self.index([BUDGET, RETRY])
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.store.aclose()
        say(closed=self.store.closed)


def say(**words: Any) -> None:
    sys.stdout.write(json.dumps(words) + "\n")
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("state", type=Path)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--idle-exit", type=float)
    given = parser.parse_args()
    settings = settings_of()

    def compose(_: Environment) -> Composed:
        model = ScriptedChatModel(["one ", "two"], gate=asyncio.Semaphore(0))
        return Composed(chat=model, settings=settings, ingestion=ScriptedIngestion())

    try:
        serve(
            Environment(settings=settings, state=given.state),
            port=given.port,
            idle_exit=given.idle_exit,
            ready=lambda address: say(address=address),
            composed=compose,
        )
    except RagPilotError as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
