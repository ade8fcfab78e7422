"""What the clients of agents want to be told of this server: one snippet each, in the form of its own file. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ragpilot.mcp_identity import NAME

VARIABLE: Final = "RAGPILOT_TOKEN"
PLACEHOLDER: Final = "PUT-YOUR-RAGPILOT-TOKEN-HERE"
"""For a client that writes values as they are, and takes none from its own environment."""


@dataclass(frozen=True, slots=True)
class Setup:
    """How this server is reached. ``token``: it wants one, which the client takes from RAGPILOT_TOKEN or asks for."""

    url: str
    command: Sequence[str]
    """What starts `ragpilot mcp`, for clients that start their servers."""
    token: bool
    environ: Mapping[str, str] = field(default_factory=dict)
    """Variables that the command needs to be for the same configuration and state as here; no secrets."""


@dataclass(frozen=True, slots=True)
class Client:
    """One client: where its snippet goes, and how it is written for a server at a URL or one that it starts."""

    place: str
    http: Callable[[Setup], str] | None
    """None: it takes no server at a URL."""
    stdio: Callable[[Setup], str]
    token: str = f"The token is taken from {VARIABLE}; it does not belong into the file."
    """What is to be known of the token, where one is wanted."""


def snippet(client: str, setup: Setup, *, stdio: bool) -> tuple[str, str]:
    """Where the snippet for ``client`` goes, and the snippet. Raises KeyError for a client that is not known."""
    known = CLIENTS[client]
    write = known.stdio if stdio or known.http is None else known.http
    return known.place, write(setup)


def _http(address: str, kind: str | None, value: str) -> Callable[[Setup], str]:
    """``address`` is the key of the URL, ``kind`` the type that is named, ``value`` how the variable is written."""

    def write(setup: Setup) -> str:
        entry = {**({"type": kind} if kind else {}), address: setup.url, **_bearer(setup, value)}
        return _json({"mcpServers": {NAME: entry}})

    return write


def _stdio(kind: str | None, value: str) -> Callable[[Setup], str]:
    def write(setup: Setup) -> str:
        return _json({"mcpServers": {NAME: _started(setup, kind, value)}})

    return write


def _bearer(setup: Setup, value: str) -> dict[str, Any]:
    return {"headers": {"Authorization": f"Bearer {value}"}} if setup.token else {}


def _started(setup: Setup, kind: str | None, value: str) -> dict[str, Any]:
    program, *arguments = setup.command
    # Whole: a client may hand its own environment down, a part of it, or nothing.
    environ = {**setup.environ, **({VARIABLE: value} if setup.token else {})}
    return {
        **({"type": kind} if kind else {}),
        "command": program,
        "args": arguments,
        **({"env": environ} if environ else {}),
    }


def _vscode(entry: Mapping[str, Any], setup: Setup) -> str:
    asked = {"type": "promptString", "id": "ragpilot-token", "description": "RagPilot token", "password": True}
    return _json({**({"inputs": [asked]} if setup.token else {}), "servers": {NAME: entry}})


def _vscode_http(setup: Setup) -> str:
    return _vscode({"type": "http", "url": setup.url, **_bearer(setup, _ASKED)}, setup)


def _vscode_stdio(setup: Setup) -> str:
    return _vscode(_started(setup, "stdio", _ASKED), setup)


def _codex_http(setup: Setup) -> str:
    return _toml({"url": setup.url, **({"bearer_token_env_var": VARIABLE} if setup.token else {})})


def _codex_stdio(setup: Setup) -> str:
    program, *arguments = setup.command
    entry: dict[str, Any] = {"command": program, "args": arguments}
    if setup.token:
        entry["env_vars"] = [VARIABLE]
    return _toml(entry) + (_toml(setup.environ, ".env") if setup.environ else "")


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def _toml(entry: Mapping[str, Any], below: str = "") -> str:
    """A table of texts and lists of them: JSON spells both as TOML does."""
    lines = [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in entry.items()]
    return "\n".join([f"[mcp_servers.{NAME}{below}]", *lines]) + "\n"


_EXPANDED: Final = f"${{{VARIABLE}}}"
_OF_ENVIRONMENT: Final = f"${{env:{VARIABLE}}}"
_ASKED: Final = "${input:ragpilot-token}"

CLIENTS: Final[Mapping[str, Client]] = {
    "claude-code": Client(".mcp.json of the project", _http("url", "http", _EXPANDED), _stdio("stdio", _EXPANDED)),
    "claude-desktop": Client(
        "claude_desktop_config.json of Claude Desktop",
        None,
        _stdio(None, PLACEHOLDER),
        f"Put your token in the place of {PLACEHOLDER}: this client takes none from the environment. Keep the file "
        "to yourself.",
    ),
    "codex": Client("~/.codex/config.toml", _codex_http, _codex_stdio),
    "cursor": Client(
        ".cursor/mcp.json of the project", _http("url", None, _OF_ENVIRONMENT), _stdio("stdio", _OF_ENVIRONMENT)
    ),
    "gemini": Client(
        ".gemini/settings.json of the project",
        _http("httpUrl", None, f"${VARIABLE}"),
        _stdio(None, f"${VARIABLE}"),
    ),
    "vscode": Client(
        ".vscode/mcp.json of the project",
        _vscode_http,
        _vscode_stdio,
        "The token is asked for when the server is first used; it does not belong into the file.",
    ),
    "windsurf": Client(
        "~/.codeium/windsurf/mcp_config.json",
        _http("serverUrl", None, _OF_ENVIRONMENT),
        _stdio(None, _OF_ENVIRONMENT),
    ),
}
