from __future__ import annotations

import socket
from contextlib import closing

from server.listener import Listener


def test_connections_send_each_token_at_once() -> None:
    with closing(Listener.bound("127.0.0.1", 0)) as listener:
        listener.setblocking(True)
        with socket.create_connection(listener.getsockname(), timeout=5):
            connection, _ = listener.accept()
            with closing(connection):
                assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
