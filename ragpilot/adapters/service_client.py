"""What an adapter of an HTTP service is beside its protocol: an address, a key, and one client opened at first use."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod

import httpx

from ragpilot.adapters.http import Service, new_client
from ragpilot.errors import RagPilotError
from ragpilot.types import Health


class ServiceClient(ABC):
    """An adapter of one service. Subclasses speak the protocol, in ``prepare`` and in what their port asks for."""

    def __init__(self, service: Service, api_key: str | None) -> None:
        """Connects to nothing yet; ``api_key`` goes out as a bearer token."""
        self._service = service
        self._headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._client: httpx.AsyncClient | None = None

    @property
    def url(self) -> str:
        """The address that is called."""
        return self._service.url

    @abstractmethod
    async def prepare(self) -> None:
        """Learn from the service what is needed of it. Raises the errors of the port."""

    async def check(self) -> Health:
        """Whether the service answers and has the model, which need not be loaded. Never raises."""
        started = time.perf_counter()
        try:
            await self._look()
            detail = self._detail()
        except RagPilotError as error:
            return Health(ok=False, detail=str(error))
        return Health(ok=True, detail=detail, latency_ms=(time.perf_counter() - started) * 1000)

    async def aclose(self) -> None:
        """Close the connections. Idempotent."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _look(self) -> None:
        """Ask the service anew."""
        await self.prepare()

    @abstractmethod
    def _detail(self) -> str:
        """What a check found, for people."""

    def _open(self) -> httpx.AsyncClient:
        if self._client is None:
            self._client = new_client(self._service, self._headers)
        return self._client
