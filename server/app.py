"""The application: every route, every refusal and the guard around them, built by ``create_app``."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, cast

from quart import Quart, Response, request
from quart.globals import request_ctx
from werkzeug.exceptions import HTTPException

from ragpilot.access_config import AccessConfiguration
from ragpilot.config import Environment
from ragpilot.errors import RagPilotError, StoreDamagedError
from ragpilot.logs import log_unexpected
from server.admission import Admission, QueuedChatModel
from server.ask import ask_routes
from server.auth import Access
from server.changes import Changes
from server.context import Context, Services
from server.guard import STALL_SECONDS, AsgiApp, Guard, request_id
from server.ingest import ingest_routes
from server.lifecycle import Lifecycle
from server.mcp import McpMount
from server.mcp_rpc import PATHS as MCP_PATHS
from server.problems import CONTENT_TYPE as PROBLEM_TYPE
from server.problems import UNEXPECTED, Problem, ProblemError, from_error, from_http
from server.runs import IngestRuns
from server.search import search_routes
from server.status import HEALTH_PATH, status_routes

if TYPE_CHECKING:
    from ragpilot.bootstrap import Application

logger = logging.getLogger(__name__)


def compose(environment: Environment) -> AbstractAsyncContextManager[Application]:
    """The core for a server: generations of its chat model pass through a queue. Entering it opens the parts."""
    # Here, and not above: it loads every vendor's library, which routes over other parts have no need of.
    from ragpilot.bootstrap import build

    limits = environment.settings.server
    admission = Admission(running=limits.max_running, waiting=limits.max_waiting)
    return build(environment, wrap_chat=lambda chat: QueuedChatModel(chat, admission))


class Server(Quart):
    """Quart without static files, redirects and HTML, with what the runner needs to know of it."""

    def __init__(self, context: Context) -> None:
        super().__init__(__name__, static_folder=None, template_folder=None)
        self.context = context
        self.debug = False
        self.url_map.merge_slashes = False
        self.url_map.strict_slashes = False

    async def make_default_options_response(self) -> Response:
        """Which methods a path takes, without a body."""
        adapter = request_ctx.url_adapter
        allowed = sorted(adapter.allowed_methods()) if adapter else []
        response = Response(status=204, headers={"Allow": ", ".join(allowed)})
        del response.headers["Content-Type"]
        return response


def create_app(
    services: Services,
    *,
    local_token: str | None = None,
    configuration: AccessConfiguration | None = None,
    lifecycle: Lifecycle | None = None,
    stall_seconds: float = STALL_SECONDS,
    writes: bool = True,
) -> Server:
    """The ASGI application over ``services``.

    Args:
        services: The composed core; who made it closes it, after the application has shut down.
        local_token: The state folder's token, which adds ``ingest`` and ``admin`` where no actors are configured.
        configuration: Where actors and grants may change while this serves; None: they do not.
        lifecycle: Given by a runner that wants to drain the server; made anew otherwise.
        stall_seconds: How long a reader may take nothing before its response is given up.
        writes: Whether it may index; False beside a run of ingestion in the same process.
    """
    settings = services.settings
    context = Context(
        services=services,
        access=Access(settings, local_token),
        lifecycle=lifecycle or Lifecycle(),
        runs=IngestRuns(services.ingestion, settings.corpora, writes=writes),
    )
    app = Server(context)
    for routes in (ask_routes, search_routes, status_routes, ingest_routes):
        app.register_blueprint(routes(context))
    _answer_errors(app)
    mount = McpMount(cast("AsgiApp", app.asgi_app), context)

    @app.while_serving
    async def serving() -> AsyncGenerator[None, None]:
        context.runs.grant()
        context.runs.fill()
        yield
        await mount.aclose()
        await context.runs.aclose()

    changes = Changes(context, configuration)
    posts = [rule.rule for rule in app.url_map.iter_rules() if "POST" in (rule.methods or ())]
    guard = Guard(
        mount,
        settings.server,
        context.lifecycle,
        # A probe of health tells nothing of what is indexed, and is answered whatever is going on.
        before=lambda path: changes.settled(reads=path != HEALTH_PATH),
        json_paths=[*posts, *MCP_PATHS],
        rpc_paths=MCP_PATHS,
        stall_seconds=stall_seconds,
    )
    app.asgi_app = guard  # type: ignore[method-assign, assignment]
    return app


def _answer_errors(app: Server) -> None:
    """Every error becomes a problem document, those of the framework too."""

    @app.errorhandler(ProblemError)
    async def problem(error: ProblemError) -> Response:
        return _response(error.problem)

    @app.errorhandler(RagPilotError)
    async def core(error: RagPilotError) -> Response:
        found = from_error(error)
        if found is UNEXPECTED:
            log_unexpected(logger, error, request_id(request.scope))
        if isinstance(error, StoreDamagedError):
            logger.error("request %s: %s", request_id(request.scope), error.message)
        return _response(found)

    @app.errorhandler(HTTPException)
    async def framework(error: HTTPException) -> Response:
        return _response(from_http(error))

    @app.errorhandler(Exception)
    async def unexpected(error: Exception) -> Response:
        log_unexpected(logger, error, request_id(request.scope))
        return _response(UNEXPECTED)


def _response(problem: Problem) -> Response:
    body = problem.body(request_id(request.scope))
    return Response(body, problem.status, dict(problem.headers), content_type=PROBLEM_TYPE)
