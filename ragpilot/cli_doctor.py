"""`ragpilot doctor`: what is configured, what can be reached, whether all fits together, and what to change."""

from __future__ import annotations

import asyncio
import difflib
import os
from contextlib import AsyncExitStack, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ragpilot import cli_output as out
from ragpilot.counted import counted
from ragpilot.exit_codes import DONE, FAILED

if TYPE_CHECKING:
    from collections.abc import Awaitable
    from typing import TypeVar

    from ragpilot.cli import Start
    from ragpilot.config import Environment
    from ragpilot.types import Bounds, Finding

    _Part = TypeVar("_Part")


@click.command(short_help="Find out what is reachable, what does not fit, and what to change.")
@click.option("--fix", is_flag=True, help="Show what would be written into your config.toml, and ask whether to.")
@click.option("--json", "as_json", is_flag=True, help="The findings as one JSON array.")
@click.pass_obj
def doctor(start: Start, *, fix: bool, as_json: bool) -> int:
    """Look at configuration, services, store, embedder, model and indexes, and say what to do about what is wrong.

    Exit code 0 when all is well, 1 when something is not. Nothing is written, but for what you agree to with --fix.
    """
    from ragpilot import doctor as diagnosis
    from ragpilot.errors import ConfigError
    from ragpilot.events import to_wire
    from ragpilot.settings_loader import load

    environment: Environment | None
    try:
        environment = load(config=start.config, directory=start.directory, environ=os.environ)
    except ConfigError as error:
        environment, findings = None, [diagnosis.from_error(error)]
    else:
        findings = asyncio.run(examine(environment))
    if as_json:
        out.as_json(to_wire(findings))
    else:
        for line in diagnosis.render(findings):
            out.line(line)
    if fix:
        _fix(start, diagnosis.proposed(findings), environment)
    return DONE if diagnosis.is_well(findings) else FAILED


async def examine(environment: Environment) -> list[Finding]:
    """Everything that can be found out: through the running server where there is one, else from the parts."""
    from ragpilot.bootstrap.services import survey_services
    from ragpilot.doctor import examine_configuration, from_error
    from ragpilot.errors import RagPilotError
    from ragpilot.grants_report import idle_grants
    from ragpilot.runtime import changed_since, find_server
    from ragpilot.types import Finding

    findings = [*examine_configuration(environment), *await survey_services(environment)]
    try:
        idle = await asyncio.to_thread(idle_grants, environment, environment.settings.corpora)
        findings += [Finding(f"corpus {name}", "note", f"{told}.", "Look at its paths.") for name, told in idle]
    except RagPilotError as error:
        findings.append(from_error(error))
    record = await find_server(environment.state, indexing=True)
    if record is not None:
        findings += [
            Finding("server", "note", told[0].upper() + told[1:], "Stop the server and start it: ragpilot serve")
            for told in await asyncio.to_thread(changed_since, record, environment.files)
        ]
    return findings + (await _parts(environment) if record is None else await _server(environment, record.address))


async def _server(environment: Environment, address: str) -> list[Finding]:
    """What the running server says of its parts and of every corpus that may be asked about."""
    from ragpilot.cli_session import Session, open_session
    from ragpilot.doctor import from_error, from_health
    from ragpilot.errors import RagPilotError
    from ragpilot.types import Finding

    async def corpus(session: Session, name: str) -> list[Finding]:
        part = f"corpus {name}"
        try:
            stats = await session.stats(name)
            if not stats.point_count:
                return [Finding(part, "note", "Nothing is indexed yet that you may read.", "Index it: ragpilot index")]
            await session.search("configuration", k=1, corpus=name)
        except RagPilotError as error:
            return [from_error(error, part)]
        held = f"{counted(stats.documents, 'document')}, {counted(stats.point_count, 'chunk')}"
        return [Finding(part, "ok", f"{held}; a question finds its way."), *_gate(environment, stats.bounds)]

    findings = [Finding("server", "ok", f"Runs at {address}.")]
    try:
        async with open_session(environment, "ask", os.environ) as session:
            findings += from_health(await session.health())
            for info in await session.corpora():
                findings += await corpus(session, info.name)
    except RagPilotError as error:
        findings.append(from_error(error, "server"))
    return findings


async def _parts(environment: Environment) -> list[Finding]:
    """What the parts say when they are opened here, each on its own, so that one that fails hides no other."""
    from ragpilot.bootstrap.chat_models import chat_of
    from ragpilot.bootstrap.embedders import embedder_of
    from ragpilot.bootstrap.stores import store_of
    from ragpilot.calibrations import recall
    from ragpilot.doctor import examine_parts, from_error, from_health
    from ragpilot.errors import RagPilotError
    from ragpilot.ingest.pipeline import index_identity
    from ragpilot.runtime import OwnerLock
    from ragpilot.types import Finding

    settings, findings = environment.settings, list[Finding]()

    async def tried(part: str, opening: Awaitable[_Part]) -> _Part | None:
        try:
            return await opening
        except RagPilotError as error:
            findings.append(from_error(error, part))
            return None

    async with AsyncExitStack() as opened:
        embedder, made = await tried("embedder", embedder_of(environment)), await tried("model", chat_of(environment))
        chat = None if made is None else made.chat
        for part in (embedder, chat):
            if part is not None:
                opened.push_async_callback(part.aclose)
        store = None
        embedded = settings.store.kind == "embedded"
        if embedded and settings.store.path is None and not environment.state.exists():
            findings.append(Finding("store", "note", "Nothing is indexed yet.", "Index it: ragpilot index"))
        else:
            try:
                opened.enter_context(OwnerLock(environment.state, "ask") if embedded else nullcontext())
                store = store_of(environment)
                opened.push_async_callback(store.aclose)
            except RagPilotError as error:
                findings.append(from_error(error, "store"))
        if store is not None and embedder is not None and chat is not None:
            identity = index_identity(embedder.identity, settings.ingest)
            names = [corpus.name for corpus in settings.corpora]
            findings += await examine_parts(store, embedder, chat, identity, names)
        else:
            there = {"store": store, "embedder": embedder, "model": chat}
            findings += from_health({name: await part.check() for name, part in there.items() if part is not None})
        if made is not None and made.reason and not any(made.reason == finding.text for finding in findings):
            findings.append(Finding("model", "note", made.reason))
        if embedder is not None and embedder.gate is None:
            name = embedder.identity.name
            findings += [] if recall(environment.shared, embedder.identity) else _uncalibrated(environment, name)
    return findings


def _gate(environment: Environment, bounds: Bounds) -> list[Finding]:
    return _uncalibrated(environment, "this embedder") if bounds.gate is None else []


def _uncalibrated(environment: Environment, name: str) -> list[Finding]:
    from ragpilot.types import Finding

    if environment.settings.retrieval.gate != "auto":
        return []
    text = f"No gate is known for {name}, and its floor is a guess: questions about anything else may be answered."
    return [Finding("embedder", "note", text, "Fit them: ragpilot calibrate")]


def _file_to_fix(start: Start, environment: Environment | None) -> Path:
    """The file whose word counts, if its user has said that it may be trusted; else the user's own."""
    from ragpilot.config_file import read
    from ragpilot.settings_loader import own_file, state_home
    from ragpilot.trust import is_trusted

    own = own_file(config=start.config, environ=os.environ)
    last = Path(environment.files[-1]) if environment and environment.files else own
    if last == own:
        return own
    if is_trusted(state_home(os.environ), read(last)):
        return last
    out.note(f"{last} is in force over {own}, but came with its folder and is not trusted, so that it may not set all")
    out.note("that your own file may. This is for your own; what both set, the folder's decides. See `ragpilot trust`.")
    return own


def _fix(start: Start, settings: dict[str, str | int | bool], environment: Environment | None) -> None:
    """Show what the findings would put into the file that is in force; write it if told to."""
    from ragpilot.actor_file import open_file, save
    from ragpilot.config_edit import SCHEMA_LINE, with_settings
    from ragpilot.settings_loader import state_home

    if not settings:
        out.note("There is nothing to be set in config.toml.")
        return
    file = open_file(_file_to_fix(start, environment))
    edited = with_settings(file.text, settings)
    lines = difflib.unified_diff(
        file.text.splitlines(), edited.splitlines(), str(file.path), str(file.path), lineterm=""
    )
    for line in lines:
        out.note(line)
    if not click.confirm(f"Write this into {file.path}?", err=True):
        out.note("Nothing was written.")
        return
    Path(file.path).parent.mkdir(parents=True, exist_ok=True)
    # A file that is not there yet is begun with its schema by who saves it.
    text = edited if file.content else edited.removeprefix(SCHEMA_LINE).lstrip("\n")
    save(file, text, home=state_home(os.environ))
    out.note(f"Written. A server that runs reads {file.path} when it starts.")
