"""``POST /ask``: one question to an answer, as a stream of events or as one JSON object."""

from __future__ import annotations

from quart import Blueprint, Response, request

from ragpilot.events import Answer, AnswerEvent, Done, Failed, Sources, Token, to_wire
from ragpilot.types import Actor, Source
from server.context import Context, json_response
from server.guard import cleanup, request_id
from server.negotiation import answer_form
from server.problems import ProblemError, from_code
from server.requests import AskBody, body
from server.sse import EventStream, Limits, respond


def ask_routes(context: Context) -> Blueprint:
    """The route of questions."""
    routes = Blueprint("ask", __name__)
    settings = context.services.settings
    limits = Limits.of(settings.chat)

    @routes.post("/ask")
    @context.access.needs("ask")
    async def ask(actor: Actor) -> Response:
        form = answer_form(request.headers.get("Accept"))
        question = (await body(AskBody)).request(request_id(request.scope))
        stream = EventStream[AnswerEvent](
            context.services.asker.ask(actor, question),
            request_id=question.request_id,
            lifecycle=context.lifecycle,
            keep_alive=settings.server.keep_alive_seconds,
            limits=limits,
        )
        cleanup(request.scope).push_async_callback(stream.aclose)
        await stream.begin()
        if form == "text/event-stream":
            return respond(stream)
        return json_response(to_wire(await collect(stream)))

    return routes


async def collect(stream: EventStream[AnswerEvent]) -> Answer:
    """The whole answer of ``stream``. Raises ProblemError where it failed on the way, RagPilotError at a limit."""
    pieces: list[str] = []
    sources: tuple[Source, ...] = ()
    while True:
        match await stream.next():
            case Token(text=text):
                pieces.append(text)
            case Sources(sources=found):
                sources = found
            case Done() as done:
                return Answer("".join(pieces), sources, done)
            case Failed(code=code, message=message):
                raise ProblemError(from_code(code, message))
            case None:
                # A keep-alive would be due; a JSON object has no place for one.
                continue
