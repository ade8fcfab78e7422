"""A protocol server in a thread of its own, for suites whose adapters are made by plain functions."""

from __future__ import annotations

import asyncio
import atexit
import functools
import threading
from collections.abc import Callable

from tests.protocol.http_server import ProtocolServer


@functools.cache
def in_background(make: Callable[[], ProtocolServer]) -> str:
    """The address of a server that ``make`` gives; one for all callers, until the interpreter ends."""
    started, ended = threading.Event(), threading.Event()
    box: dict[str, str] = {}
    ending: list[Callable[[], object]] = []

    async def serve() -> None:
        done = asyncio.Event()
        async with make() as server:
            box["url"] = server.url
            ending.append(functools.partial(asyncio.get_running_loop().call_soon_threadsafe, done.set))
            started.set()
            await done.wait()
        ended.set()

    threading.Thread(target=lambda: asyncio.run(serve()), name="protocol-server", daemon=True).start()
    if not started.wait(5):
        raise RuntimeError("the protocol server did not start")

    def stop() -> None:
        ending[0]()
        ended.wait(5)

    atexit.register(stop)
    return box["url"]
