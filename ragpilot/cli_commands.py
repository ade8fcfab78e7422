"""What the commands do. Apart from ``cli``, so that ``--help`` and ``trust`` load none of it."""

from __future__ import annotations

import os
import shlex
from collections.abc import AsyncGenerator
from contextlib import aclosing
from uuid import uuid4

from ragpilot import cli_output as out
from ragpilot.adhoc import known
from ragpilot.cli_launch import connect
from ragpilot.cli_session import open_session
from ragpilot.config import Environment, ServerSettings
from ragpilot.config_words import problems
from ragpilot.errors import ConfigError, UnknownCorpusError
from ragpilot.events import Answer, AnswerEvent, Done, Failed, Sources, Token, near_miss_from_wire, to_wire
from ragpilot.exit_codes import DONE, FAILED, NOT_FOUND
from ragpilot.routing import Intent
from ragpilot.settings_loader import indexed_above
from ragpilot.types import NOT_FOUND_ANSWER, Outcome, Source


async def run_ask(
    environment: Environment,
    question: str,
    *,
    top_k: int | None,
    corpus: str | None,
    as_json: bool,
    explain: bool = False,
) -> int:
    """Print one answer. Gives 3 where nothing was found."""
    if untouched(environment, corpus):
        return _nothing_indexed(environment, as_json=as_json)
    outcome: Outcome | None = None
    async with (
        open_session(environment, "ask", os.environ) as session,
        aclosing(session.ask(question, top_k=top_k, corpus=corpus)) as events,
    ):
        outcome = await _print_answer(events, as_json=as_json, explain=explain)
    if outcome is None:
        return FAILED
    return NOT_FOUND if outcome is Outcome.NOT_FOUND else DONE


async def _print_answer(events: AsyncGenerator[AnswerEvent, None], *, as_json: bool, explain: bool) -> Outcome | None:
    """Print events as they come; gives how the answer ended, None where it failed."""
    pieces: list[str] = []
    sources: tuple[Source, ...] = ()
    async for event in events:
        match event:
            case Token(text=text):
                pieces.append(text)
                if not as_json:
                    out.write(text)
            case Sources(sources=found):
                sources = found
            case Failed(message=message):
                if pieces and not as_json:
                    out.line()
                out.note(f"Error: {message}")
                return None
            case Done() as end:
                answer = Answer("".join(pieces), sources, end)
                if as_json:
                    out.as_json(to_wire(answer))
                else:
                    _end_answer(answer)
                    if explain:
                        out.receipt(end)
                return end.outcome
    out.note("Error: The answer ended before it was complete.")
    return None


def _end_answer(answer: Answer) -> None:
    if not answer.answer.endswith("\n"):
        out.line()
    out.sources(answer.sources)
    out.done(answer.done)


def untouched(environment: Environment, corpus: str | None) -> bool:
    """Whether nothing can be indexed here, so that asking need not make a state folder to find that out."""
    if corpus is not None and environment.settings.corpus(corpus) is None:
        raise UnknownCorpusError(corpus)
    store = environment.settings.store
    return store.kind == "embedded" and store.path is None and not environment.state.exists()


def nothing_indexed(environment: Environment) -> str:
    """What to do where nothing is indexed: here, or in a folder above this one that is."""
    told = f"Nothing is indexed yet for {environment.directory}. `ragpilot index` there indexes it."
    above = indexed_above(environment)
    if above is None:
        return told
    return f"{told}\n{above}, above it, is indexed: `ragpilot -C {shlex.quote(str(above))} ask …` asks about that."


def _nothing_indexed(environment: Environment, *, as_json: bool) -> int:
    hint = nothing_indexed(environment)
    end = Done(outcome=Outcome.NOT_FOUND, request_id=str(uuid4()), warnings=(hint,))
    if as_json:
        out.as_json(to_wire(Answer(NOT_FOUND_ANSWER, (), end)))
    else:
        out.line(NOT_FOUND_ANSWER)
    out.note(hint)
    elsewhere = [made for made in known(environment.state.parent) if made.state != environment.state]
    if elsewhere:
        out.note(f"Indexed elsewhere, asked with --corpus: {', '.join(made.name for made in elsewhere)}.")
    return NOT_FOUND


async def run_search(environment: Environment, question: str, *, k: int, corpus: str | None, as_json: bool) -> int:
    """Print the passages that a question finds."""
    if untouched(environment, corpus):
        out.note(nothing_indexed(environment))
        if as_json:
            out.as_json({"hits": [], "floor": None, "gate": None, "warnings": ["nothing is indexed"]})
        return DONE
    async with open_session(environment, "ask", os.environ) as session:
        found = await session.search(question, k=k, corpus=corpus)
    if as_json:
        out.as_json(found)
        return DONE
    if found.get("plan", {}).get("intent") == Intent.SMALL_TALK:
        out.note("There is nothing to search for in that.")
        return DONE
    out.hits(found["hits"])
    for warning in found.get("warnings", ()):
        out.note(f"Warning: {warning}")
    if not found["hits"]:
        gate = "" if found.get("gate") is None else f" and gate {found['gate']:.2f}"
        out.note(f"Nothing passes the floor {found['floor']:.2f}{gate}.")
        misses = [near_miss_from_wire(miss) for miss in found.get("nearMisses", ())]
        out.near_misses(misses, found.get("evidence", 0.0))
    return DONE


def run_serve(environment: Environment, *, host: str | None, port: int | None) -> int:
    """Serve until a signal."""
    from pydantic import ValidationError

    from server.run import serve

    if host is not None:
        given = {**environment.settings.server.model_dump(), "host": host}
        try:
            server = ServerSettings.model_validate(given)
        except ValidationError as error:
            raise ConfigError(problems(error, {"server": given})[0].text) from None
        settings = environment.settings.model_copy(update={"server": server})
        environment = environment.model_copy(update={"settings": settings})

    def ready(address: str) -> None:
        out.note(f"RagPilot answers at {address}; Ctrl-C stops it.")
        out.note(f"""curl -N {address}/ask -H 'Content-Type: application/json' -d '{{"question": "…"}}'""")

    serve(environment, port=port, ready=ready)
    return DONE


def run_tui(environment: Environment) -> int:
    """Open the terminal UI, on a server that is found or started."""
    from tui.app import RagPilotApp

    app = RagPilotApp(lambda: connect(environment, os.environ, indexing=True), label=environment.directory.name or "/")
    app.run()
    return app.return_code or DONE
