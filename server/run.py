"""Running the server: the owner lock, the port, Hypercorn, signals, and an end within five seconds.

Hypercorn ends open streams only when its own patience is over, and with a traceback. So the server drains before it
lets Hypercorn stop: open answers get a moment to end, then an ``error`` event.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager

from hypercorn.asyncio import serve as hypercorn_serve
from hypercorn.config import Config, Sockets

from ragpilot.access_config import AccessConfiguration
from ragpilot.actors import unset_variables
from ragpilot.config import Environment, contradictions
from ragpilot.errors import ConfigError
from ragpilot.runtime import OwnerLock, local_token, server_record
from server.app import Server, compose, create_app
from server.context import Services
from server.listener import Listener
from server.logs import configure_logging

logger = logging.getLogger(__name__)

GRACE_SECONDS = 1.0
"""How long open requests may still end by themselves once the server is to stop."""
ENDING_SECONDS = 1.0
CONNECTIONS_SECONDS = 0.5
KEEP_ALIVE_SECONDS = 75.0
"""How long a connection without a request is kept; above what HTTP clients keep theirs."""
Compose = Callable[[Environment], AbstractAsyncContextManager[Services]]

EVERY_INTERFACE = ("0.0.0.0", "::", "[::]")  # noqa: S104 - looked for, not listened on

STOP_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")


def serve(
    environment: Environment,
    *,
    port: int | None = None,
    any_port: bool = False,
    idle_exit: float | None = None,
    ready: Callable[[str], None] | None = None,
    composed: Compose = compose,
) -> None:
    """Own the state folder and serve until a signal, or until nothing has happened for long enough.

    Args:
        environment: Settings and state folder.
        port: Overrides ``server.port``; 0 takes a free one.
        any_port: Take a free port where the configured one is another program's.
        idle_exit: Leave after this many seconds without a request and without ingestion; None: stay.
        ready: Called with the server's address once it listens and the core is composed.
        composed: Makes the core; entered before the first request and left after the last one.

    Raises:
        ConfigError: The address cannot be listened on, or may not be.
        StoreInUseError: Another process owns the state folder; the message says which.
    """
    configure_logging()
    settings = environment.settings
    if wrong := contradictions(settings):
        raise ConfigError("\n".join(sentence for _, sentence in wrong))
    with OwnerLock(environment.state, "serve") as lock:
        wanted = settings.server.port if port is None else port
        listener = Listener.bound(settings.server.host, wanted, any_port=any_port)
        token = None if settings.actors else local_token(environment.state)
        lock.announce(listener.address)
        with server_record(environment.state, listener.address, idle_exit=idle_exit):
            logger.info("listening at %s", listener.address)
            if settings.server.host in EVERY_INTERFACE and not settings.server.allowed_hosts:
                logger.warning("other machines are refused until server.allowed_hosts says how they call this one")
            for sentence in unset_variables(settings, os.environ):
                logger.warning("%s", sentence)
            configuration = AccessConfiguration(environment, os.environ)
            asyncio.run(_serve(composed(environment), listener, token, configuration, idle_exit, ready))


async def _serve(
    core: AbstractAsyncContextManager[Services],
    listener: Listener,
    token: str | None,
    configuration: AccessConfiguration,
    idle_exit: float | None,
    ready: Callable[[str], None] | None,
) -> None:
    with stop_signals() as stop:
        async with core as services:
            app = create_app(services, local_token=token, configuration=configuration)
            if ready:
                ready(listener.address)
            await serve_app(app, listener, stop, idle_exit=idle_exit)


async def serve_app(app: Server, listener: Listener, stop: asyncio.Event, *, idle_exit: float | None = None) -> None:
    """Serve ``app`` on ``listener``, which is closed in the end, until ``stop`` is set or idleness ends it."""
    lifecycle, runs = app.context.lifecycle, app.context.runs
    drained = asyncio.Event()

    async def trigger() -> None:
        await _first(stop.wait(), _idleness(app, idle_exit))
        logger.info("shutting down")
        await asyncio.gather(lifecycle.drain(grace=GRACE_SECONDS, limit=ENDING_SECONDS), runs.aclose())
        if lifecycle.open_requests:
            logger.warning("%d requests did not end by themselves", lifecycle.open_requests)
        drained.set()

    serving = asyncio.create_task(hypercorn_serve(app, _Config(listener), shutdown_trigger=trigger))
    draining = asyncio.create_task(drained.wait())
    try:
        await asyncio.wait({serving, draining}, return_when=asyncio.FIRST_COMPLETED)
        if not serving.done():
            await asyncio.wait({serving}, timeout=CONNECTIONS_SECONDS)
        listener.cut()
        await asyncio.wait({serving}, timeout=CONNECTIONS_SECONDS)
        if serving.done():
            serving.result()
    finally:
        draining.cancel()
        serving.cancel()
        await asyncio.wait({serving}, timeout=CONNECTIONS_SECONDS)
        await runs.aclose()
        listener.close()


@contextlib.contextmanager
def stop_signals() -> Iterator[asyncio.Event]:
    """An event that is set when the process is told to stop; nothing is interrupted by the signal itself."""
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    numbers = [getattr(signal, name) for name in STOP_SIGNALS if hasattr(signal, name)]
    before = {number: signal.getsignal(number) for number in numbers}
    for number in numbers:
        try:
            loop.add_signal_handler(number, stop.set)
        except NotImplementedError:  # Windows
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(stop.set))
    try:
        yield stop
    finally:
        for number, handler in before.items():
            with contextlib.suppress(NotImplementedError):
                loop.remove_signal_handler(number)
            signal.signal(number, handler)


class _Config(Config):
    """Hypercorn's settings for one listener that is bound already."""

    def __init__(self, listener: Listener) -> None:
        super().__init__()
        self._listener = listener
        self.include_server_header = False
        self.accesslog = None
        self.errorlog = logging.getLogger("hypercorn.error")
        self.keep_alive_timeout = KEEP_ALIVE_SECONDS
        # Never reached: the listener cuts its connections before, and Hypercorn ends with a traceback over it.
        self.graceful_timeout = 60.0
        self.shutdown_timeout = 2

    def create_sockets(self) -> Sockets:
        return Sockets(secure_sockets=[], insecure_sockets=[self._listener], quic_sockets=[])


async def _idleness(app: Server, seconds: float | None) -> None:
    """Return once nothing was asked or indexed for ``seconds``; never where that is None."""
    lifecycle, runs = app.context.lifecycle, app.context.runs
    while seconds is None or (left := seconds - lifecycle.idle_seconds()) > 0:
        await asyncio.sleep(3600 if seconds is None else min(left, 5.0))
        if runs.busy:
            lifecycle.touch()


async def _first(*awaitables: Awaitable[object]) -> None:
    """Wait until one of them is done, and cancel the others."""
    tasks = {asyncio.ensure_future(awaitable) for awaitable in awaitables}
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
