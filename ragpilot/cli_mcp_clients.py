"""What the clients of agents want to be told of this server: one snippet each, in the form of its own file. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ragpilot.mcp_identity import NAME

VARIABLE: Final = "RAGPILOT_TOKEN"


@dataclass(frozen=True, slots=True)
class Setup:
    """How this server is reached. ``token``: it wants one, which the client takes from RAGPILOT_TOKEN or asks for."""

    url: str
    command: Sequence[str]
    """What starts `ragpilot mcp`, for clients that start their servers."""
    token: bool


@dataclass(frozen=True, slots=True)
class Client:
    """One client: where its snippet goes, and how it is written for a server at a URL or one that it starts."""

    place: str
    http: Callable[[Setup], str] | None
    """None: it takes no server at a URL."""
    stdio: Callable[[Setup], str]


def snippet(client: str, setup: Setup, *, stdio: bool) -> tuple[str, str]:
    """Where the snippet for ``client`` goes, and the snippet. Raises KeyError for a client that is not known."""
    known = CLIENTS[client]
    write = known.stdio if stdio or known.http is None else known.http
    return known.place, write(setup)


def _http(field: str, kind: str | None, value: str) -> Callable[[Setup], str]:
    """``field`` holds the URL, ``kind`` is the type that is named, ``value`` how the variable is written."""

    def write(setup: Setup) -> str:
        entry = {**({"type": kind} if kind else {}), field: setup.url, **_bearer(setup, value)}
        return _json({"mcpServers": {NAME: entry}})

    return write


def _bearer(setup: Setup, value: str) -> dict[str, Any]:
    return {"headers": {"Authorization": f"Bearer {value}"}} if setup.token else {}


def _stdio(setup: Setup) -> str:
    return _json({"mcpServers": {NAME: _command(setup)}})


def _command(setup: Setup) -> dict[str, Any]:
    program, *arguments = setup.command
    return {"command": program, "args": arguments}


def _vscode(entry: Mapping[str, Any], setup: Setup) -> str:
    asked = {"type": "promptString", "id": "ragpilot-token", "description": "RagPilot token", "password": True}
    return _json({**({"inputs": [asked]} if setup.token else {}), "servers": {NAME: entry}})


def _vscode_http(setup: Setup) -> str:
    return _vscode({"type": "http", "url": setup.url, **_bearer(setup, "${input:ragpilot-token}")}, setup)


def _vscode_stdio(setup: Setup) -> str:
    environment = {"env": {VARIABLE: "${input:ragpilot-token}"}} if setup.token else {}
    return _vscode({"type": "stdio", **_command(setup), **environment}, setup)


def _codex_http(setup: Setup) -> str:
    token = f'bearer_token_env_var = "{VARIABLE}"\n' if setup.token else ""
    return f"[mcp_servers.{NAME}]\nurl = {json.dumps(setup.url)}\n{token}"


def _codex_stdio(setup: Setup) -> str:
    program, *arguments = setup.command
    token = f'env_vars = ["{VARIABLE}"]\n' if setup.token else ""
    return f"[mcp_servers.{NAME}]\ncommand = {json.dumps(program)}\nargs = {json.dumps(arguments)}\n{token}"


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


CLIENTS: Final[Mapping[str, Client]] = {
    "claude-code": Client(".mcp.json of the project", _http("url", "http", f"${{{VARIABLE}}}"), _stdio),
    "claude-desktop": Client("claude_desktop_config.json of Claude Desktop", None, _stdio),
    "codex": Client("~/.codex/config.toml", _codex_http, _codex_stdio),
    "cursor": Client(".cursor/mcp.json of the project", _http("url", None, f"${{env:{VARIABLE}}}"), _stdio),
    "gemini": Client(".gemini/settings.json of the project", _http("httpUrl", None, f"${VARIABLE}"), _stdio),
    "vscode": Client(".vscode/mcp.json of the project", _vscode_http, _vscode_stdio),
    "windsurf": Client("~/.codeium/windsurf/mcp_config.json", _http("serverUrl", None, f"${{env:{VARIABLE}}}"), _stdio),
}
