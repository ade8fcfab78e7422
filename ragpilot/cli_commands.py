"""What the commands do. Apart from ``cli``, so that ``--help`` and ``trust`` load none of it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import aclosing
from importlib.metadata import version
from typing import Any, Final
from uuid import uuid4

from ragpilot import cli_output as out
from ragpilot.actors import command_token
from ragpilot.adhoc import known
from ragpilot.cli_launch import connect
from ragpilot.cli_session import open_session, store_actor
from ragpilot.config import Environment, ServerSettings
from ragpilot.config_words import problems
from ragpilot.corpora import known_corpora
from ragpilot.errors import (
    AuthenticationError,
    ChatModelError,
    ConfigError,
    EmbedderError,
    IndexMismatchError,
    RagPilotError,
    StoreError,
    StoreInUseError,
    UnknownCorpusError,
)
from ragpilot.events import Answer, AnswerEvent, Done, Failed, Sources, Token, near_miss_from_wire, to_wire
from ragpilot.runtime import changed_since, find_server, owner
from ragpilot.types import NOT_FOUND_ANSWER, Health, Outcome, Source

DONE: Final = 0
FAILED: Final = 1
NOT_FOUND: Final = 3


# --- ask and search ---------------------------------------------------------------------------------


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
    if _untouched(environment, corpus):
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


def _untouched(environment: Environment, corpus: str | None) -> bool:
    """Whether nothing can be indexed here, so that asking need not make a state folder to find that out."""
    if corpus is not None and environment.settings.corpus(corpus) is None:
        raise UnknownCorpusError(corpus)
    store = environment.settings.store
    return store.kind == "embedded" and store.path is None and not environment.state.exists()


def _nothing_indexed(environment: Environment, *, as_json: bool) -> int:
    hint = f"Nothing is indexed yet for {environment.directory}. `ragpilot index` there indexes it."
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
    if _untouched(environment, corpus):
        out.note(f"Nothing is indexed yet for {environment.directory}. `ragpilot index` there indexes it.")
        if as_json:
            out.as_json({"hits": [], "floor": None, "gate": None, "warnings": ["nothing is indexed"]})
        return DONE
    async with open_session(environment, "ask", os.environ) as session:
        found = await session.search(question, k=k, corpus=corpus)
    if as_json:
        out.as_json(found)
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


# --- serve, status and the terminal UI --------------------------------------------------------------


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


async def run_status(environment: Environment, *, as_json: bool) -> int:
    """Print what is known about the index and its parts."""
    facts: dict[str, Any] = {
        "version": version("ragpilot"),
        "directory": str(environment.directory),
        "files": environment.files,
        "origins": environment.origins,
        "state": str(environment.state),
        "server": None,
        "notInForce": [],
        "inUseBy": None,
        "health": {},
        "corpora": _known(environment),
    }
    if _untouched(environment, None):
        facts["corpora"] = [{**item, "pointCount": 0, "documents": 0} for item in facts["corpora"]]
    else:
        try:
            async with open_session(environment, "ask", os.environ) as session:
                facts["server"] = session.address
                record = await find_server(environment.state) if session.address else None
                if record is not None:
                    facts["notInForce"] = await asyncio.to_thread(changed_since, record, environment.files)
                facts["health"] = to_wire(await session.health())
                stats = [to_wire(await session.stats(info.name)) for info in await session.corpora()]
                roots = {item.name: item.roots for item in environment.settings.corpora}
                facts["corpora"] = [{**item, "roots": roots.get(item["corpus"], [])} for item in stats]
        except StoreInUseError:
            holder = owner(environment.state)
            facts["inUseBy"] = str(holder) if holder else None
        except (StoreError, EmbedderError, ChatModelError, IndexMismatchError) as error:
            _mark_ill(facts["health"], error)
    if as_json:
        out.as_json(facts)
    else:
        _print_status(facts)
    return DONE


def _mark_ill(health: dict[str, Any], error: RagPilotError) -> None:
    """Tell ``error`` at the part that it speaks of, unless that part has said for itself that it is not well."""
    kinds: dict[str, type[RagPilotError]] = {"store": StoreError, "embedder": EmbedderError, "model": ChatModelError}
    part = next((name for name, kind in kinds.items() if isinstance(error, kind)), "index")
    if health.get(part, {"ok": True})["ok"]:
        health[part] = to_wire(Health(ok=False, detail=str(error)))


def _known(environment: Environment) -> list[dict[str, Any]]:
    """The corpora that whoever asks may know of by the configuration, with their roots; none for an unknown token."""
    try:
        actor = store_actor(environment, command_token(os.environ), os.environ)
    except AuthenticationError:
        return []  # a server may know it; where there is none, the session says what is wrong with it
    known = known_corpora(environment.settings, actor)
    return [{"corpus": item.name, "roots": item.roots} for item in known]


def _print_status(facts: dict[str, Any]) -> None:
    out.line(f"RagPilot {facts['version']} in {facts['directory']}")
    out.line(f"Configuration: {', '.join(facts['files']) or 'none; defaults'}")
    out.line(f"State: {facts['state']}")
    out.line(f"Server: {facts['server'] or 'none runs'}")
    for told in facts["notInForce"]:
        out.line(f"  {told}")
    if facts["inUseBy"]:
        out.line(f"In use by {facts['inUseBy']}; what is indexed can be seen when it has ended.")
    for name, part in facts["health"].items():
        out.line(f"{name.capitalize()}: {'ok' if part['ok'] else 'NOT WELL'}; {out.one_line(part['detail'])}")
    for corpus in facts["corpora"]:
        out.line(f"\nCorpus {corpus['corpus']}: {', '.join(corpus['roots'])}")
        if "pointCount" not in corpus:
            continue
        if left := corpus.get("leftOut"):
            out.line("  left out: " + ", ".join(f"{number:,} {reason}" for reason, number in left.items()))
        if misfit := corpus.get("misfit"):
            out.line(f"  NOT WELL; {out.one_line(misfit)}")
        if not corpus["pointCount"]:
            out.line("  nothing indexed that you may read; `ragpilot index` indexes what there is")
            continue
        out.line(f"  {out.number(corpus['documents'], 'document')}, {out.number(corpus['pointCount'], 'chunk')},"
                 f" last indexed {corpus['lastIngestionTime']}")  # fmt: skip
        kinds = sorted(corpus["chunksBySourceType"].items(), key=lambda item: (-item[1], item[0]))
        out.line("  " + ", ".join(f"{number:,} {kind}" for kind, number in kinds))
        out.line(f"  vectors: {corpus['headerShare']:.0%} of names, {corpus['bodyShare']:.0%} of texts;"
                 f" {corpus['embedder']['name']}")  # fmt: skip
        bounds = corpus["bounds"]
        gate = "off" if bounds["gate"] is None else f"{bounds['gate']:.2f}"
        out.line(f"  floor {bounds['floor']:.2f} ({bounds['floorOrigin']}), gate {gate} ({bounds['gateOrigin']})")


def run_tui(environment: Environment) -> int:
    """Open the terminal UI, on a server that is found or started."""
    from tui.app import RagPilotApp

    app = RagPilotApp(lambda: connect(environment, os.environ, indexing=True), label=environment.directory.name or "/")
    app.run()
    return app.return_code or DONE
