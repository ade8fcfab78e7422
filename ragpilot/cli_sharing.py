"""`ragpilot index` can be asked while it runs: its process owns the store, so it answers for everybody else.

For a run that takes longer than a moment, an HTTP server like that of `ragpilot serve` listens on a free port of this
machine until the run has ended. It writes nothing: whoever asks it to index is told that a run is under way.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from ragpilot.access_config import AccessConfiguration
from ragpilot.config import Environment
from ragpilot.errors import RagPilotError
from ragpilot.logs import log_unexpected
from ragpilot.runtime import OwnerLock, local_token, server_record

if TYPE_CHECKING:
    from server.context import Services

logger = logging.getLogger(__name__)

HOST: Final = "127.0.0.1"
SOON_SECONDS: Final = 1.5
"""What ends sooner is waited for instead; the server's modules alone take a third of a second to load."""
ENDS_WITH_ITS_RUN: Final = 0.0
"""What the record of such a server says of when it leaves."""
LAST_ANSWER_SECONDS: Final = 30.0
"""How long an answer that is being written may keep a run's process after its end."""


@asynccontextmanager
async def shared(environment: Environment, services: Services, lock: OwnerLock) -> AsyncIterator[None]:
    """Let others ask ``services`` until the block ends, and then finish the answers that are being written.

    That it cannot be had, such as for want of a port, keeps no run from its end.
    """
    over: asyncio.Future[float] = asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(_serve(environment, services, lock, over))
    patience = 0.0
    try:
        yield
        patience = LAST_ANSWER_SECONDS
    finally:
        over.set_result(patience)
        await asyncio.shield(asyncio.wait({serving}))


async def _serve(environment: Environment, services: Services, lock: OwnerLock, over: asyncio.Future[float]) -> None:
    """Listen until ``over`` says for how many seconds an answer that is being written may keep the process."""
    ended, _ = await asyncio.wait({over}, timeout=SOON_SECONDS)
    if ended:
        return
    try:
        await _listen(environment, services, lock, over)
    except (RagPilotError, OSError) as error:
        logger.info("this run cannot be asked meanwhile: %s", error)
    except Exception as error:  # noqa: BLE001 - a convenience beside the run, which must not end by it
        log_unexpected(logger, error, "while a run was shared")


async def _listen(environment: Environment, services: Services, lock: OwnerLock, over: asyncio.Future[float]) -> None:
    # Here, and not above: most runs end before they are needed.
    from server.app import create_app
    from server.lifecycle import Lifecycle
    from server.listener import Listener
    from server.run import serve_app

    lifecycle, stop = Lifecycle(), asyncio.Event()
    token = None if environment.settings.actors else local_token(environment.state)
    app = create_app(
        services,
        local_token=token,
        configuration=AccessConfiguration(environment, os.environ),
        lifecycle=lifecycle,
        writes=False,
    )
    listener = Listener.bound(HOST, 0)
    lock.announce(listener.address)
    with server_record(environment.state, listener.address, idle_exit=ENDS_WITH_ITS_RUN):
        serving = asyncio.create_task(serve_app(app, listener, stop))
        await asyncio.wait({over})
        if not serving.done():
            await lifecycle.drain(grace=over.result(), limit=1.0)
        stop.set()
        await serving
