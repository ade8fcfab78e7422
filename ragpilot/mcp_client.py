"""Calls to the ``/mcp`` of a running server, each a POST of its own: what `ragpilot mcp` and the facade speak."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any, Final

import httpx
from httpx_sse import EventSource, SSEError

from ragpilot.config import is_loopback
from ragpilot.errors import AuthenticationError, ServerUnreachableError
from ragpilot.runtime import ServerRecord, find_server, owner

REVISION: Final = "2025-11-25"
"""The newest revision whose calls need no envelope. A server without sessions takes them without a handshake."""

ReportProgress = Callable[[float, float | None, str | None], Awaitable[None]]
"""(progress, total, message), as the server tells them."""

SILENCE_SECONDS: Final = 25.0
"""A server that lives sends something every 15 s, whatever its model does."""
CONNECT_SECONDS: Final = 5.0
WAIT_SECONDS: Final = 10.0
"""How long a server that is just starting is waited for."""
_HEADERS: Final = {
    "Accept": "application/json, text/event-stream",
    "Content-Type": "application/json",
    "MCP-Protocol-Version": REVISION,
}


async def running_server(state: Path, *, wait: float | None = None) -> ServerRecord | None:
    """The running server of ``state``; None where there is none.

    Raises ServerUnreachableError for one that is there and does not answer: it holds the index, so that neither
    another server nor a command could take its place.
    """
    record = await find_server(state, wait=WAIT_SECONDS if wait is None else wait, indexing=True)
    if record is None:
        holder = await asyncio.to_thread(owner, state)
        if holder is not None and holder.role == "serve":
            raise ServerUnreachableError(
                f"The running RagPilot server does not answer: {holder}.",
                hint=f"Ask again in a moment; if it stays silent, end process {holder.pid} and start it anew.",
            )
    return record


class RpcError(Exception):
    """The server refused the call: a wrong method or tool. What a tool found wrong is a result, not this."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class ServerSilentError(ServerUnreachableError):
    """The server takes calls and says nothing: asking again at once would be waiting once more."""


class CallBrokenOffError(ServerUnreachableError):
    """The server ended while it was at work on the call."""


class McpClient:
    """One server, spoken to as one actor. Nothing is connected before the first call; cancelling a call ends it."""

    def __init__(self, address: str, token: str | None) -> None:
        self.address = address.rstrip("/")
        url = httpx.URL(self.address)
        self._client = httpx.AsyncClient(
            headers={**_HEADERS, **({"Authorization": f"Bearer {token}"} if token else {})},
            timeout=httpx.Timeout(SILENCE_SECONDS, connect=CONNECT_SECONDS),
            # A proxy named in the environment cannot reach this machine's loopback, and must not see what is asked.
            trust_env=not is_loopback(url.host),
            verify=url.scheme == "https",
        )

    async def call(
        self, method: str, params: Mapping[str, Any], *, progress: ReportProgress | None = None
    ) -> dict[str, Any]:
        """The result of one call, in JSON types.

        Raises:
            RpcError: The server refused it.
            AuthenticationError: It wants a token that it knows.
            ServerUnreachableError: There is no server, or it is another program's.
            ServerSilentError: It said nothing for SILENCE_SECONDS.
            CallBrokenOffError: It ended in the middle of the call.
        """
        asked = {**params, "_meta": {"progressToken": 1}} if progress else dict(params)
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": asked}
        begun = False
        try:
            # ASCII: what an agent passes on may hold what UTF-8 cannot.
            content = json.dumps(body).encode()
            async with self._client.stream("POST", f"{self.address}/mcp", content=content) as response:
                begun = True
                if response.headers.get("content-type", "").startswith("text/event-stream"):
                    return await self._from_events(response, progress)
                return self._result(await response.aread())
        except SSEError as error:
            raise self._foreign() from error
        except httpx.TimeoutException as error:
            raise ServerSilentError(
                f"The RagPilot server at {self.address} does not answer: silent for {SILENCE_SECONDS:g} s.",
                hint="Make the call again in a moment; `ragpilot status` tells whether the server lives.",
            ) from error
        except httpx.RequestError as error:
            if begun:
                raise self._broken_off() from error
            raise ServerUnreachableError(
                f"No RagPilot server answers at {self.address}.", hint="`ragpilot serve` starts one."
            ) from error

    async def aclose(self) -> None:
        """Close every connection. Idempotent."""
        await self._client.aclose()

    async def _from_events(self, response: httpx.Response, progress: ReportProgress | None) -> dict[str, Any]:
        async with aclosing(EventSource(response).aiter_sse()) as events:
            async for event in events:
                message = self._message(event.data)
                if "id" in message:
                    return self._result(event.data)
                told = message.get("params")
                if progress and message.get("method") == "notifications/progress" and isinstance(told, dict):
                    await progress(told["progress"], told.get("total"), told.get("message"))
        raise self._broken_off()

    def _result(self, content: str | bytes) -> dict[str, Any]:
        message = self._message(content)
        error, result = message.get("error"), message.get("result")
        if isinstance(error, dict):
            data = error.get("data")
            if isinstance(data, dict) and data.get("code") == AuthenticationError.code:
                raise AuthenticationError(str(error.get("message", "")), hint="It is taken from RAGPILOT_TOKEN.")
            raise RpcError(int(error.get("code", 0)), str(error.get("message", "")))
        if not isinstance(result, dict):
            raise self._foreign()
        return result

    def _message(self, content: str | bytes) -> dict[str, Any]:
        try:
            message = json.loads(content)
        except ValueError:
            raise self._foreign() from None
        if not isinstance(message, dict):
            raise self._foreign()
        return message

    def _broken_off(self) -> CallBrokenOffError:
        return CallBrokenOffError(
            f"The RagPilot server at {self.address} ended during this call.", hint="The call can be made again."
        )

    def _foreign(self) -> ServerUnreachableError:
        return ServerUnreachableError(
            f"What answers at {self.address} does not speak as a RagPilot server of this version does.",
            hint="Another program may have the port, or an older server still runs.",
        )
