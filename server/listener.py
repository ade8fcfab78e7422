"""The socket that the server listens on, and what is said when it cannot be had."""

from __future__ import annotations

import errno
import socket
import sys
from typing import Any, Self
from weakref import WeakSet

from ragpilot.config import url_of
from ragpilot.errors import ConfigError
from server.guard import STALL_SECONDS


class Listener(socket.socket):
    """A listening socket that remembers the connections it has accepted, so that they can be cut at the end.

    A connection whose peer neither reads nor leaves cannot be closed by asyncio before its buffer is empty, which is
    never; nor can it be cancelled.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._accepted: WeakSet[socket.socket] = WeakSet()

    @classmethod
    def bound(cls, host: str, port: int, *, any_port: bool = False) -> Self:
        """A socket that listens on ``host`` and ``port``; on a free one where that is taken and ``any_port`` is set.

        Raises ConfigError that says what to do about an address that cannot be had.
        """
        try:
            family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        except OSError:
            raise ConfigError(f"server.host = {host!r} is no address of this machine.") from None
        listener = cls(family, socket.SOCK_STREAM)
        if sys.platform != "win32":
            # So that a restart need not wait for the last connections to time out; it lets nobody listen beside us.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            # Inherited by connections: the system ends one whose peer takes nothing for twice as long as we wait.
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(STALL_SECONDS * 2000))
        try:
            listener.bind(address)
            listener.listen(128)
        except OSError as error:
            listener.close()
            if any_port and error.errno == errno.EADDRINUSE:
                return cls.bound(host, 0)
            raise _no_port(host, port, error) from None
        listener.setblocking(False)
        return listener

    @property
    def address(self) -> str:
        """The URL at which this machine reaches it."""
        return url_of(*self.getsockname()[:2])

    def accept(self) -> tuple[socket.socket, Any]:
        """As ever, and the connection is remembered while it lives."""
        connection, peer = super().accept()
        # A token must not wait until the one before it is acknowledged, which readers delay by up to 40 ms.
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._accepted.add(connection)
        return connection, peer

    def cut(self) -> None:
        """Cut every connection that is still there, whatever its peer does."""
        for connection in tuple(self._accepted):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                # It is gone already.
                continue


def _no_port(host: str, port: int, error: OSError) -> ConfigError:
    if error.errno == errno.EADDRINUSE:
        return ConfigError(
            f"Port {port} of {host} is in use by another program.",
            hint="Choose another one: `--port N`, or `server.port` in config.toml; `--port 0` takes any that is free.",
        )
    if error.errno == errno.EACCES:
        return ConfigError(f"Port {port} may not be used by this user.", hint="Choose one above 1023: `--port N`.")
    return ConfigError(f"{host}:{port} cannot be listened on: {error.strerror}.", hint="See server.host, server.port.")
