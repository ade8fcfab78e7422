"""`ragpilot mcp`: the tools for agents over standard input and output, and the snippets that set clients up."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from ragpilot import cli_output as out
from ragpilot.cli_mcp_clients import CLIENTS, Setup, snippet
from ragpilot.config import DEFAULT_PORT, Environment, is_loopback, url_of
from ragpilot.exit_codes import DONE
from ragpilot.terminal_text import clean_line

if TYPE_CHECKING:
    from ragpilot.cli import Start

_LASTING = "`ragpilot serve` with a port of its own (`port` under [server]) stays, and --stdio needs no address."
_LEAVES = f"That server was started in the background: it leaves after {{:g}} idle minutes. {_LASTING}"
_OTHERS = f"Warning: the server that answers at {{}} is that of another folder, not of {{}}. {_LASTING}"


@click.group(invoke_without_command=True, short_help="Serve agents over stdin and stdout; `mcp config` sets them up.")
@click.option("--ingest", "may_ingest", is_flag=True, help="Let the agent index too (rag_ingest), not only ask.")
@click.pass_context
def mcp(context: click.Context, *, may_ingest: bool) -> int | None:
    """Serve agents over standard input and output, through the running server of the folder, started where none runs.

    Agents that take a URL need none of this: a running server has the same tools at /mcp. RAGPILOT_TOKEN says who asks.
    """
    if context.invoked_subcommand is not None:
        if may_ingest:
            raise click.UsageError("--ingest stands behind the command: `ragpilot mcp config --stdio --ingest …`.")
        return None
    from ragpilot.cli_mcp_stdio import serve_stdio

    start: Start = context.obj
    if sys.stdin is not None and sys.stdin.isatty():
        out.note("Waiting for messages of an agent, a line each; Ctrl-D ends it. `ragpilot mcp config` sets agents up.")
    asyncio.run(serve_stdio(start.load(), os.environ, may_ingest=may_ingest))
    return DONE


@mcp.command()
@click.option("--client", required=True, type=click.Choice(sorted(CLIENTS)), help="Whose configuration it goes into.")
@click.option("--stdio", is_flag=True, help="For a server that the client starts, instead of one at a URL.")
@click.option("--ingest", "may_ingest", is_flag=True, help="With --stdio: let the agent index too (rag_ingest).")
@click.option(
    "--url", metavar="URL", help="The server's address; default: the running server's, else the configured one."
)
@click.pass_obj
def config(start: Start, client: str, *, stdio: bool, may_ingest: bool, url: str | None) -> int:
    """Print what sets a client up; where it goes is said on stderr."""
    starting = stdio or CLIENTS[client].http is None
    if url is not None and starting:
        why = "with --stdio the client starts it" if stdio else f"{client} takes none, it starts its servers"
        raise click.UsageError(f"--url names a server that runs: {why}.")
    if may_ingest and not starting:
        raise click.UsageError("--ingest is for a server that the client starts: add --stdio.")
    address, host = ("", "localhost") if url is None else _checked(url)
    environment = start.load()
    remarks: list[str] = []
    if not address:
        address, remarks = asyncio.run(_address(environment))
    setup = Setup(
        url=address + "/mcp",
        command=[*_command(environment), *(["--ingest"] if may_ingest else [])],
        # A server on another machine has actors, whatever is configured here: without them it would not be there.
        token=bool(environment.settings.actors) or not is_loopback(host),
        environ=_variables(environment, os.environ),
    )
    place, text = snippet(client, setup, stdio=stdio)
    out.write(text)
    out.note(f"Goes into {place}; what is there already stays beside it.")
    for remark in () if starting else remarks:
        out.note(remark)
    if setup.token:
        out.note(CLIENTS[client].token)
    return DONE


def _checked(url: str) -> tuple[str, str]:
    """The address in ``url``, without ``/mcp`` at its end, and its host. Raises UsageError."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        host = ""
    if not host or not url.startswith(("http://", "https://")) or re.search(r"[\s\x00-\x1f\x7f]", url):
        raise click.UsageError(f"--url {clean_line(url)!r} is no address of a server, such as http://127.0.0.1:5200.")
    if re.search("[@?#]", url):
        raise click.UsageError("--url takes an address alone: no user, no query. A token comes from RAGPILOT_TOKEN.")
    return url.rstrip("/").removesuffix("/mcp"), host


def _variables(environment: Environment, environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that made configuration and state what they are here; a client may not hand them down."""
    names = {origin for origin in environment.origins.values() if origin in environ}
    found = {name: environ[name] for name in sorted(names)}
    for name in ("RAGPILOT_HOME", *(() if environment.config else ("RAGPILOT_CONFIG",))):
        if environ.get(name):
            # As a variable, not as --config: that one would pass over the working folder's own file.
            found[name] = str(Path(environ[name]).absolute())
    return found


async def _address(environment: Environment) -> tuple[str, list[str]]:
    """Where the server is, or will be, and what is to be known of that address."""
    from ragpilot.runtime import answers, find_server, owner

    record = await find_server(environment.state, wait=0)
    if record is not None:
        return record.address, [] if record.idle_exit is None else [_LEAVES.format(record.idle_exit / 60)]
    server = environment.settings.server
    address = url_of(server.host, server.port or DEFAULT_PORT)
    holder = await asyncio.to_thread(owner, environment.state)
    if holder is not None and holder.role == "serve":
        # It is just starting, or too busy to say so.
        return holder.address or address, []
    if await answers(address):
        return address, [_OTHERS.format(address, environment.directory)]
    return address, [f"No server runs there yet: `ragpilot serve` in {environment.directory} starts it."]


def _command(environment: Environment) -> list[str]:
    """What starts `ragpilot mcp` for this folder from anywhere."""
    # The one beside this interpreter first: another on the path may be of another version.
    beside = Path(sys.executable).with_name("ragpilot")
    found = str(beside) if beside.exists() else shutil.which("ragpilot")
    program = [found] if found else [sys.executable, "-P", "-m", "ragpilot"]
    named = ["--config", environment.config] if environment.config else []
    return [*program, *named, "--directory", str(environment.directory), "mcp"]
