"""`ragpilot status`: what is indexed, by what, whether the parts are well, and where everything lies."""

from __future__ import annotations

import asyncio
import os
from importlib.metadata import version
from typing import Any

from ragpilot import cli_output as out
from ragpilot.actors import command_token
from ragpilot.cli_commands import untouched
from ragpilot.cli_session import open_session, store_actor
from ragpilot.config import Environment
from ragpilot.corpora import known_corpora
from ragpilot.counted import counted
from ragpilot.errors import (
    AuthenticationError,
    ChatModelError,
    EmbedderError,
    IndexMismatchError,
    RagPilotError,
    StoreError,
    StoreInUseError,
)
from ragpilot.events import to_wire
from ragpilot.exit_codes import DONE
from ragpilot.runtime import changed_since, find_server, owner
from ragpilot.settings_loader import passed_over
from ragpilot.terminal_text import clean_line
from ragpilot.types import Health


async def run_status(environment: Environment, *, as_json: bool) -> int:
    """Print what is known about the index and its parts."""
    facts: dict[str, Any] = {
        "version": version("ragpilot"),
        "directory": str(environment.directory),
        "files": environment.files,
        "passedOver": None if environment.config else passed_over(environment.directory),
        "origins": environment.origins,
        "state": str(environment.state),
        "server": None,
        "notInForce": [],
        "inUseBy": None,
        "health": {},
        "corpora": _known(environment),
    }
    if untouched(environment, None):
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
    return [{"corpus": item.name, "roots": item.roots} for item in known_corpora(environment.settings, actor)]


def _print_status(facts: dict[str, Any]) -> None:
    out.line(f"RagPilot {facts['version']} in {facts['directory']}")
    out.line(f"Configuration: {', '.join(facts['files']) or 'none; defaults'}")
    if facts["passedOver"]:
        out.line(f"  {facts['passedOver']}")
    out.line(f"State: {facts['state']}")
    out.line(f"Server: {facts['server'] or 'none runs'}")
    for told in facts["notInForce"]:
        out.line(f"  {told}")
    if facts["inUseBy"]:
        out.line(f"In use by {facts['inUseBy']}; what is indexed can be seen when it has ended.")
    for name, part in facts["health"].items():
        out.line(f"{name.capitalize()}: {'ok' if part['ok'] else 'NOT WELL'}; {clean_line(part['detail'])}")
    for corpus in facts["corpora"]:
        out.line(f"\nCorpus {corpus['corpus']}: {', '.join(corpus['roots'])}")
        for root in corpus["roots"]:
            if not os.path.lexists(root):
                out.line(f"  {root} is not on this machine")
        if "pointCount" not in corpus:
            continue
        if left := corpus.get("leftOut"):
            out.line("  left out: " + ", ".join(f"{number:,} {reason}" for reason, number in left.items()))
        if misfit := corpus.get("misfit"):
            out.line(f"  NOT WELL; {clean_line(misfit)}")
        if not corpus["pointCount"]:
            out.line("  nothing indexed that you may read; `ragpilot index` indexes what there is")
            continue
        documents, chunks = counted(corpus["documents"], "document"), counted(corpus["pointCount"], "chunk")
        out.line(f"  {documents}, {chunks}, last indexed {corpus['lastIngestionTime']}")
        kinds = sorted(corpus["chunksBySourceType"].items(), key=lambda item: (-item[1], item[0]))
        out.line("  " + ", ".join(f"{number:,} {kind}" for kind, number in kinds))
        names, texts, embedder = corpus["headerShare"], corpus["bodyShare"], corpus["embedder"]["name"]
        out.line(f"  vectors: {names:.0%} of names, {texts:.0%} of texts; {embedder}")
        bounds = corpus["bounds"]
        gate = "off" if bounds["gate"] is None else f"{bounds['gate']:.2f}"
        out.line(f"  floor {bounds['floor']:.2f} ({bounds['floorOrigin']}), gate {gate} ({bounds['gateOrigin']})")
