"""Actors and grants that change under a running server: in force before the next request is served.

Files are looked at before each request, which costs a stat each. A change that cannot be read leaves everything as it
was, and the log says so. A change of grants is applied to the index before anything is answered from it again.
"""

from __future__ import annotations

import asyncio
import logging

from ragpilot.access_config import AccessConfiguration
from ragpilot.errors import RagPilotError
from ragpilot.logs import log_unexpected
from server.context import Context

logger = logging.getLogger(__name__)

QUIET_SECONDS = 0.05
"""For how long a file must not have changed before it is read: an editor may still be at it."""
PATIENCE_SECONDS = 2.0
"""How long one that never rests is waited for."""


class Changes:
    """Sees to it that what the files say is in force. Without ``configuration`` they are never looked at."""

    def __init__(self, context: Context, configuration: AccessConfiguration | None) -> None:
        self._context = context
        self._configuration = configuration
        self._reading = asyncio.Lock()

    async def settled(self, *, reads: bool) -> None:
        """Return once a request may be served; ``reads``: whether it may tell something of the index.

        Raises ProblemError where grants are to be applied first, and that takes too long or fails.
        """
        if self._configuration is not None and self._configuration.changed():
            async with self._reading:
                if self._configuration.changed():
                    await self._read(self._configuration)
        if reads:
            await self._context.runs.granted()

    async def _read(self, configuration: AccessConfiguration) -> None:
        states = await _at_rest(configuration)
        try:
            settings = await asyncio.to_thread(configuration.read)
        except RagPilotError as error:
            logger.error("the changed configuration is not taken, actors and grants stay as they were: %a", str(error))
        except Exception as error:  # noqa: BLE001 - whatever is wrong with a file, what was in force stays
            log_unexpected(logger, error, "for the changed configuration")
        else:
            self._context.adopt(settings)
        configuration.settle(states)


async def _at_rest(configuration: AccessConfiguration) -> dict[str, str]:
    """The states of the files, once they have stayed the same for a moment."""
    states = configuration.states()
    for _ in range(round(PATIENCE_SECONDS / QUIET_SECONDS)):
        await asyncio.sleep(QUIET_SECONDS)
        before, states = states, configuration.states()
        if states == before:
            break
    return states
