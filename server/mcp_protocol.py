"""The protocol for agents over the toolbox: which tools there are for whom, and one call to its result."""

from __future__ import annotations

import asyncio
from importlib.metadata import version
from typing import Any

from mcp.server import Server, ServerRequestContext
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
)
from mcp_types import Tool as ToolDescription

from ragpilot.mcp_identity import NAME, TITLE, instructions
from ragpilot.terminal_text import clean
from server.context import Context
from server.guard import Receive, Scope, Send, request_id
from server.mcp import actor_of
from server.mcp_tool import Call, Progress, Tool, ToolError
from server.mcp_toolbox import Toolbox


class Protocol:
    """The server side of the protocol without sessions; serves both its generations. Used once: start, then close."""

    def __init__(self, context: Context) -> None:
        self._tools = Toolbox(context)
        self._descriptions = {tool.name: _described(tool) for tool in self._tools.all()}
        self._context = context
        self._server = server = Server[Any](
            NAME,
            version=version("ragpilot"),
            title=TITLE,
            instructions=instructions(context.services.settings),
            on_list_tools=self._list,
            on_call_tool=self._call,
        )
        # Host, Origin and the size of bodies are the guard's, for every route alike.
        self._manager = StreamableHTTPSessionManager(
            app=server, stateless=True, max_request_body_size=context.services.settings.server.max_body_bytes
        )
        self._stop = asyncio.Event()
        self._ready = asyncio.Event()
        self._running: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Make ready for calls."""
        # A task of its own: the manager's scope must be left by the task that entered it.
        self._running = asyncio.create_task(self._run())
        ready = asyncio.create_task(self._ready.wait())
        await asyncio.wait({self._running, ready}, return_when=asyncio.FIRST_COMPLETED)
        if not ready.done():
            ready.cancel()
            self._running.result()

    async def aclose(self) -> None:
        """Cancel the calls that are under way."""
        self._stop.set()
        if self._running is not None:
            await self._running

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One POST."""
        # Actors may have come since it was made.
        self._server.instructions = instructions(self._context.services.settings)
        await self._manager.handle_request(scope, receive, send)

    async def _run(self) -> None:
        async with self._manager.run():
            self._ready.set()
            await self._stop.wait()

    async def _list(self, context: ServerRequestContext[Any, Any], _: PaginatedRequestParams | None) -> ListToolsResult:
        tools = self._tools.of(actor_of(_scope(context)))
        return ListToolsResult(tools=[self._descriptions[tool.name] for tool in tools])

    async def _call(self, context: ServerRequestContext[Any, Any], params: CallToolRequestParams) -> CallToolResult:
        scope = _scope(context)
        watched = bool(context.meta and context.meta.get("progress_token") is not None)
        progress = Progress(context.session.report_progress, watched=watched)
        call = Call(actor_of(scope), request_id(scope), progress)
        tool = self._tools.find(call, params.name, params.arguments or {})
        if tool is None:
            raise MCPError(INVALID_PARAMS, f"Unknown tool: {params.name[:100]}")
        try:
            output = await self._tools.run(tool, call, params.arguments or {})
        except ToolError as error:
            return CallToolResult(content=[_shown(str(error))], is_error=True)
        return CallToolResult(content=[_shown(output.text)], structured_content=output.structured)


def _shown(text: str) -> TextContent:
    """Text that an agent's terminal may show: nothing that it would obey, and nothing that nobody sees."""
    return TextContent(text=clean(text))


def _scope(context: ServerRequestContext[Any, Any]) -> Scope:
    """The request that this call came with; every message of this transport has one."""
    scope: Scope = context.request.scope  # type: ignore[union-attr]
    return scope


def _described(tool: Tool) -> ToolDescription:
    return ToolDescription(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        annotations=tool.annotations,
    )
