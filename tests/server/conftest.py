from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from tests.server.support import Running, Stand, running


@pytest_asyncio.fixture
async def server() -> AsyncIterator[Running]:
    async with running(await Stand().app()) as started:
        yield started
