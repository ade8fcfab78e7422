"""The toolbox: every tool there is, who gets to see which, and one call within its deadline, errors as words."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

from ragpilot.errors import ChatModelTimeoutError, RagPilotError
from ragpilot.logs import log_unexpected
from ragpilot.types import Actor
from server.context import Context
from server.logs import SECURITY
from server.mcp_ingest import ingest_tool
from server.mcp_reading import reading_tools
from server.mcp_tool import Call, Output, Tool, ToolError, words_of
from server.patience import look_seconds, silent_part
from server.problems import UNEXPECTED, ProblemError, from_error

ARGUMENTS_LOGGED = 300

logger = logging.getLogger(__name__)


class Toolbox:
    """The tools over one server's services."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._tools = {tool.name: tool for tool in (*reading_tools(context), ingest_tool(context))}

    def all(self) -> list[Tool]:
        """Every tool, whoever may call it."""
        return list(self._tools.values())

    def of(self, actor: Actor) -> list[Tool]:
        """The tools that ``actor`` may call; of others he learns nothing."""
        return [tool for tool in self._tools.values() if actor.may(tool.permission)]

    def find(self, call: Call, name: str, arguments: Mapping[str, Any]) -> Tool | None:
        """The tool of that name; None where there is none, and where the actor may not call it."""
        tool = self._tools.get(name)
        if tool is None or call.actor.may(tool.permission):
            return tool
        _audit(tool, call, arguments, "forbidden")
        return None

    async def run(self, tool: Tool, call: Call, arguments: Mapping[str, Any]) -> Output:
        """Call a tool. Raises ToolError for whatever goes wrong in it, and nothing else."""
        outcome = "failed"
        try:
            output = await self._run(tool, call, arguments)
            outcome = getattr(output.result, "outcome", "done")
            return output
        except ToolError as error:
            outcome = error.code
            raise
        except asyncio.CancelledError:
            outcome = "left by its caller"
            raise
        finally:
            _audit(tool, call, arguments, outcome)

    async def _run(self, tool: Tool, call: Call, arguments: Mapping[str, Any]) -> Output:
        look = look_seconds(tool.seconds)
        deadline = asyncio.timeout(tool.seconds - look)
        try:
            async with deadline:
                return await tool.run(call, tool.checked(arguments))
        except TimeoutError as error:
            if not deadline.expired():
                raise self._unexpected(error, call) from error
            raise await self._late(tool, look) from None
        except ProblemError as error:
            raise ToolError(error.problem.code, error.problem.detail) from None
        except ChatModelTimeoutError as error:
            # The model may never have been asked: what it would have been given is looked for before.
            silent = await silent_part(self._context.services.status, within=look)
            code, words = (silent.code, silent.detail) if silent else (error.code, words_of(error, tool=tool))
            raise ToolError(code, words) from error
        except RagPilotError as error:
            if from_error(error) is UNEXPECTED:
                raise self._unexpected(error, call) from error
            logger.info("request %s: %s failed: %s", call.request_id, tool.name, error.code)
            raise ToolError(error.code, words_of(error, tool=tool)) from error
        except Exception as error:
            # The last handler of a call: its agent learns that it failed, the log where.
            raise self._unexpected(error, call) from error

    async def _late(self, tool: Tool, look: float) -> ToolError:
        """A call that took too long, with the part that it waited for, where that is silent still."""
        silent = await silent_part(self._context.services.status, within=look)
        if silent is not None:
            return ToolError(silent.code, silent.detail)
        return ToolError("timeout", f"{tool.name} did not end within {tool.seconds:g} s and was stopped.")

    def _unexpected(self, error: Exception, call: Call) -> ToolError:
        log_unexpected(logger, error, call.request_id)
        return ToolError(UNEXPECTED.code, f"{UNEXPECTED.detail} ({call.request_id})")


def _audit(tool: Tool, call: Call, arguments: Mapping[str, Any], outcome: str) -> None:
    """One line at the security level: who wanted what, and what came of it."""
    if tool.audited:
        # As Python spells them, so that no argument can forge a line of the log.
        shown = ascii(dict(arguments))[:ARGUMENTS_LOGGED]
        logger.log(SECURITY, "%s by %s, %s: %s (%s)", tool.name, call.actor.name, shown, outcome, call.request_id)
