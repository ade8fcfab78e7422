"""What the routes share: the services of the core, who may use them, and the state of the running server."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Protocol

from quart import Response

from ragpilot.answering import AskService
from ragpilot.config import Settings
from ragpilot.searching import SearchService
from ragpilot.status import StatusService
from server.auth import Access
from server.lifecycle import Lifecycle
from server.runs import Ingestion, IngestRuns


class Services(Protocol):
    """The composed core, as far as the routes use it."""

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        ...

    @property
    def asker(self) -> AskService:
        """Answers questions."""
        ...

    @property
    def searcher(self) -> SearchService:
        """Searches without an answer."""
        ...

    @property
    def status(self) -> StatusService:
        """Knows what is indexed and whether the parts are well."""
        ...

    @property
    def ingestion(self) -> Ingestion:
        """Writes the index."""
        ...

    def with_settings(self, settings: Settings) -> Services:
        """The same parts, with other actors and grants."""
        ...


@dataclass(slots=True)
class Context:
    """Made once by ``create_app`` and given to every group of routes.

    Ask it for ``services`` at each request: they are others once actors or grants have changed.
    """

    services: Services
    access: Access
    lifecycle: Lifecycle
    runs: IngestRuns

    def adopt(self, settings: Settings) -> None:
        """Go by the actors and grants of ``settings`` from the next request on."""
        self.access.adopt(settings)
        self.services = self.services.with_settings(settings)
        self.runs.adopt(settings.corpora)


def json_response(data: Any, status: int = 200) -> Response:
    """``data`` as one JSON object, in ASCII, so that any text that was indexed comes through."""
    body = json.dumps(data, allow_nan=False, separators=(",", ":")).encode()
    return Response(body, status, content_type="application/json")
