"""`ragpilot mcp`: the tools for agents over standard input and output, for clients that start their servers.

It holds no index: every call goes to the running server of the folder, which is started where none runs, and the
tools are those that the server shows to this actor.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable, Mapping
from importlib.metadata import version
from typing import Any, TypeVar

from mcp.server import Server, ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
)

from ragpilot.actors import command_token
from ragpilot.cli_launch import start
from ragpilot.cli_mcp_pipes import message_streams, own_standard_streams
from ragpilot.config import Environment, Settings
from ragpilot.errors import RagPilotError, ServerUnreachableError
from ragpilot.mcp_client import CallBrokenOffError, McpClient, RpcError, ServerSilentError, running_server
from ragpilot.mcp_identity import NAME, TITLE, instructions
from ragpilot.runtime import existing_token

_R = TypeVar("_R")


async def serve_stdio(environment: Environment, environ: Mapping[str, str], *, may_ingest: bool) -> None:
    """Serve until standard input ends, and what was asked is answered.

    ``may_ingest``: where no actors are configured, the tools are those of the state folder's token, which may index.
    """
    # There is nothing to save: what would end the program ends it at once.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    upstream = Upstream(environment, environ, may_ingest=may_ingest)
    try:
        server = bridge(upstream)
        async with message_streams(*own_standard_streams()) as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())
    except* BrokenPipeError:
        # The client has gone: nobody is left to be told.
        pass
    finally:
        await upstream.aclose()


def bridge(upstream: Upstream) -> Server[Any]:
    """A server of the protocol, of both its generations, whose tools are those of ``upstream``."""

    async def list_tools(_: ServerRequestContext[Any, Any], __: PaginatedRequestParams | None) -> ListToolsResult:
        try:
            return ListToolsResult.model_validate(await upstream.use(lambda client: client.call("tools/list", {})))
        except RpcError as error:
            raise MCPError(error.code, error.message) from None
        except RagPilotError as error:
            raise MCPError(INTERNAL_ERROR, str(error)) from None

    async def call_tool(context: ServerRequestContext[Any, Any], params: CallToolRequestParams) -> CallToolResult:
        asked = {"name": params.name, "arguments": params.arguments or {}}
        watched = bool(context.meta and context.meta.get("progress_token") is not None)
        report = context.session.report_progress if watched else None
        try:
            found = await upstream.use(lambda client: client.call("tools/call", asked, progress=report))
            return CallToolResult.model_validate(found)
        except RpcError as error:
            raise MCPError(error.code, error.message) from None
        except RagPilotError as error:
            return CallToolResult(content=[TextContent(text=str(error))], is_error=True)

    return Server(
        NAME,
        version=version("ragpilot"),
        title=TITLE,
        instructions=instructions(upstream.settings),
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


class Upstream:
    """The running server of a state folder, found or started when it is needed, and again when it has gone."""

    def __init__(self, environment: Environment, environ: Mapping[str, str], *, may_ingest: bool) -> None:
        self._environment = environment
        self._environ = environ
        self._may_ingest = may_ingest
        self._client: McpClient | None = None
        self._all: list[McpClient] = []
        self._connecting = asyncio.Lock()

    @property
    def settings(self) -> Settings:
        """The configuration of the folder."""
        return self._environment.settings

    async def use(self, call: Callable[[McpClient], Awaitable[_R]]) -> _R:
        """Make a call; once more, on a server found anew, where the one that was known has gone.

        Not where it was at work on the call: whatever ended it might do so again, and it is for the caller to decide.
        """
        known = self._client
        if known is not None:
            try:
                return await self._made(call, known)
            except (ServerSilentError, CallBrokenOffError):
                raise
            except ServerUnreachableError:
                # It left after its idle minutes, or was started anew at another address.
                pass
        return await self._made(call, await self._connected())

    async def aclose(self) -> None:
        """Close every connection; the server stays."""
        for client in self._all:
            await client.aclose()

    async def _made(self, call: Callable[[McpClient], Awaitable[_R]], client: McpClient) -> _R:
        try:
            return await call(client)
        except ServerUnreachableError:
            # The next call looks for the server anew.
            if self._client is client:
                self._client = None
            raise

    async def _connected(self) -> McpClient:
        async with self._connecting:
            if self._client is None:
                self._client = await self._connect()
                self._all.append(self._client)
            return self._client

    async def _connect(self) -> McpClient:
        state = self._environment.state
        record = await running_server(state) or await start(self._environment, self._environ)
        token = command_token(self._environ)
        if token is None and self._may_ingest and not self._environment.settings.actors:
            token = existing_token(state)
        return McpClient(record.address, token)
