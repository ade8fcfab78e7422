"""Running the server: the owner lock, the port, Hypercorn, signals, and an end within five seconds.

Hypercorn ends open streams only when its own patience is over, and with a traceback. So the server drains before it
lets Hypercorn stop: open answers get a moment to end, then an ``error`` event.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, Iterator

from hypercorn.asyncio import serve as hypercorn_serve
from hypercorn.config import Config

from ragpilot.config import Environment, contradictions
from ragpilot.errors import ConfigError
from ragpilot.runtime import OwnerLock, local_token, server_record
from server.app import Server, compose, create_app
from server.guard import STALL_SECONDS
from server.logs import configure_logging

logger = logging.getLogger(__name__)

GRACE_SECONDS = 1.0
"""How long open requests may still end by themselves once the server is to stop."""
ENDING_SECONDS = 1.0
CONNECTIONS_SECONDS = 0.5
KEEP_ALIVE_SECONDS = 75.0
"""How long a connection without a request is kept; above what HTTP clients keep theirs."""
ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - not bound to: how to reach what is

STOP_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")


def serve(
    environment: Environment,
    *,
    port: int | None = None,
    any_port: bool = False,
    idle_exit: float | None = None,
    ready: Callable[[str], None] | None = None,
) -> None:
    """Own the state folder and serve until a signal, or until nothing has happened for long enough.

    Args:
        environment: Settings and state folder.
        port: Overrides ``server.port``; 0 takes a free one.
        any_port: Take a free port where the configured one is another program's.
        idle_exit: Leave after this many seconds without a request and without ingestion; None: stay.
        ready: Called with the server's address once it listens.

    Raises:
        ConfigError: The address cannot be listened on, or may not be.
        StoreInUseError: Another process owns the state folder; the message says which.
    """
    configure_logging()
    settings = environment.settings
    if wrong := contradictions(settings):
        raise ConfigError("\n".join(sentence for _, sentence in wrong))
    with OwnerLock(environment.state, "serve") as lock:
        listener = listen(settings.server.host, settings.server.port if port is None else port, any_port=any_port)
        address = address_of(listener)
        token = None if settings.actors else local_token(environment.state)
        lock.announce(address)
        with server_record(environment.state, address):
            if ready:
                ready(address)
            asyncio.run(_serve(environment, listener, token, idle_exit))


async def _serve(environment: Environment, listener: socket.socket, token: str | None, idle_exit: float | None) -> None:
    with stop_signals() as stop:
        async with compose(environment) as application:
            await serve_app(create_app(application, local_token=token), listener, stop, idle_exit=idle_exit)


async def serve_app(
    app: Server, listener: socket.socket, stop: asyncio.Event, *, idle_exit: float | None = None
) -> None:
    """Serve ``app`` on a listening socket, which is closed in the end, until ``stop`` is set or idleness ends it."""
    lifecycle, runs = app.context.lifecycle, app.context.runs
    drained = asyncio.Event()

    async def trigger() -> None:
        await _first(stop.wait(), _idleness(app, idle_exit))
        logger.info("shutting down")
        if not await lifecycle.drain(grace=GRACE_SECONDS, limit=ENDING_SECONDS):
            logger.warning("%d requests did not end by themselves", lifecycle.open_requests)
        drained.set()

    serving = asyncio.create_task(hypercorn_serve(app, _config(listener), shutdown_trigger=trigger))
    draining = asyncio.create_task(drained.wait())
    try:
        await asyncio.wait({serving, draining}, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait({serving}, timeout=CONNECTIONS_SECONDS * 3)
    finally:
        # What is left are connections whose peer neither reads nor leaves. Hypercorn cancels itself over them, too.
        draining.cancel()
        serving.cancel()
        await asyncio.wait({serving}, timeout=CONNECTIONS_SECONDS)
        await runs.aclose()
    if serving.done() and not serving.cancelled():
        serving.result()


def listen(host: str, port: int, *, any_port: bool = False) -> socket.socket:
    """A socket that listens. Raises ConfigError that says what to do about an address that cannot be had."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    except OSError:
        raise ConfigError(f"server.host = {host!r} is no address of this machine.") from None
    listener = socket.socket(family, socket.SOCK_STREAM)
    if sys.platform != "win32":
        # So that a restart need not wait for the last connections to time out; it lets nobody listen beside us.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        # Connections inherit it: one whose peer takes nothing any more is ended by the system.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(STALL_SECONDS * 2000))
    try:
        listener.bind(address)
        listener.listen(128)
    except OSError as error:
        listener.close()
        if any_port and error.errno == errno.EADDRINUSE:
            return listen(host, 0)
        raise _no_port(host, port, error) from None
    return listener


def address_of(listener: socket.socket) -> str:
    """The URL at which this machine reaches the listener."""
    host, port = listener.getsockname()[:2]
    host = ANY_ADDRESS.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


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


def _no_port(host: str, port: int, error: OSError) -> ConfigError:
    if error.errno == errno.EADDRINUSE:
        return ConfigError(
            f"Port {port} of {host} is in use by another program.",
            hint="Choose another one: `--port N`, or `server.port` in config.toml; `--port 0` takes any that is free.",
        )
    if error.errno == errno.EACCES:
        return ConfigError(f"Port {port} may not be used by this user.", hint="Choose one above 1023: `--port N`.")
    return ConfigError(f"{host}:{port} cannot be listened on: {error.strerror}.", hint="See server.host, server.port.")


def _config(listener: socket.socket) -> Config:
    config = Config()
    config.bind = [f"fd://{listener.detach()}"]
    config.include_server_header = False
    config.accesslog = None
    config.errorlog = logging.getLogger("hypercorn.error")
    config.keep_alive_timeout = KEEP_ALIVE_SECONDS
    config.graceful_timeout = CONNECTIONS_SECONDS
    config.shutdown_timeout = 2
    return config


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
