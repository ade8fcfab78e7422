"""`ragpilot mcp`: the tools for agents over standard input and output, and the snippets that set clients up."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ragpilot import cli_output as out
from ragpilot.cli_mcp_clients import CLIENTS, Setup, snippet
from ragpilot.config import DEFAULT_PORT, Environment

if TYPE_CHECKING:
    from ragpilot.cli import Start

_ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - not bound to: how to reach what is


@click.group(invoke_without_command=True, short_help="Serve agents over stdin and stdout; `mcp config` sets them up.")
@click.option("--ingest", "may_ingest", is_flag=True, help="Let the agent index too (rag_ingest), not only ask.")
@click.pass_context
def mcp(context: click.Context, *, may_ingest: bool) -> int | None:
    """Serve agents over standard input and output, through the running server of the folder, started where none runs.

    Agents that take a URL need none of this: a running server has the same tools at /mcp. RAGPILOT_TOKEN says who asks.
    """
    if context.invoked_subcommand is not None:
        return None
    from ragpilot.cli_mcp_stdio import serve_stdio

    start: Start = context.obj
    if sys.stdin is not None and sys.stdin.isatty():
        out.note("Waiting for messages of an agent, a line each; Ctrl-D ends it. `ragpilot mcp config` sets agents up.")
    asyncio.run(serve_stdio(start.load(), os.environ, may_ingest=may_ingest))
    return 0


@mcp.command()
@click.option("--client", required=True, type=click.Choice(sorted(CLIENTS)), help="Whose configuration it goes into.")
@click.option("--stdio", is_flag=True, help="For a server that the client starts, instead of one at a URL.")
@click.option(
    "--url", metavar="URL", help="The server's address; default: the running server's, else the configured one."
)
@click.pass_obj
def config(start: Start, client: str, *, stdio: bool, url: str | None) -> int:
    """Print what sets a client up; where it goes is said on stderr."""
    environment = start.load()
    setup = Setup(
        url=(url or asyncio.run(_address(environment))).rstrip("/").removesuffix("/mcp") + "/mcp",
        command=_command(environment),
        token=bool(environment.settings.actors),
    )
    place, text = snippet(client, setup, stdio=stdio)
    out.write(text)
    out.note(f"Goes into {place}; what is there already stays beside it.")
    if setup.token:
        out.note("The token is taken from RAGPILOT_TOKEN, or asked for; it does not belong into the file.")
    return 0


async def _address(environment: Environment) -> str:
    """Where the server is, or will be."""
    from ragpilot.runtime import find_server

    record = await find_server(environment.state, wait=0)
    if record is not None:
        return record.address
    server = environment.settings.server
    host = _ANY_ADDRESS.get(server.host, server.host)
    return f"http://{f'[{host}]' if ':' in host else host}:{server.port or DEFAULT_PORT}"


def _command(environment: Environment) -> list[str]:
    """What starts `ragpilot mcp` for this folder from anywhere."""
    beside = Path(sys.executable).with_name("ragpilot")
    found = shutil.which("ragpilot") or (str(beside) if beside.exists() else None)
    program = [found] if found else [sys.executable, "-P", "-m", "ragpilot"]
    named = ["--config", environment.config] if environment.config else []
    return [*program, *named, "--directory", str(environment.directory), "mcp"]
