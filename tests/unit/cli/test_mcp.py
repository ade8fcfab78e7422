from __future__ import annotations

import asyncio
import json
import os
import tomllib
from pathlib import Path

import pytest

from ragpilot.cli import run
from ragpilot.cli_mcp_clients import CLIENTS, Setup, snippet
from ragpilot.config import ActorSettings, CorpusSettings, Settings
from ragpilot.mcp_identity import INSTRUCTIONS, instructions
from ragpilot.runtime import OwnerLock, server_record
from ragpilot.settings_loader import load
from tests.server.agents import address
from tests.server.support import Stand, running

OPEN = Setup("http://127.0.0.1:5200/mcp", ["/bin/ragpilot", "--directory", "/src/größe", "mcp"], token=False)
GUARDED = Setup(OPEN.url, OPEN.command, token=True)
PLACED = Setup(
    OPEN.url, OPEN.command, token=True, environ={"RAGPILOT_HOME": "/srv/größe 🌳", "RAGPILOT_CONFIG": "/a.toml"}
)
REFERENCES = {
    "claude-code": "${RAGPILOT_TOKEN}",
    "claude-desktop": "PUT-YOUR-RAGPILOT-TOKEN-HERE",
    "cursor": "${env:RAGPILOT_TOKEN}",
    "gemini": "$RAGPILOT_TOKEN",
    "vscode": "${input:ragpilot-token}",
    "windsurf": "${env:RAGPILOT_TOKEN}",
}
"""How each client is told to take the token from elsewhere; codex names the variable alone."""
REPOSITORY = Path(__file__).parents[3]


def parsed(client: str, setup: Setup, *, stdio: bool = False) -> dict[str, object]:
    _, text = snippet(client, setup, stdio=stdio)
    found: dict[str, object] = tomllib.loads(text) if client == "codex" else json.loads(text)
    return found


@pytest.mark.parametrize("client", sorted(CLIENTS))
def test_every_client_gets_a_file_of_its_own_form(client: str) -> None:
    for setup in (OPEN, GUARDED, PLACED):
        for stdio in (False, True):
            place, text = snippet(client, setup, stdio=stdio)
            assert place
            assert "pilot-rag-ask" in text
            parsed(client, setup, stdio=stdio)
            assert ("/bin/ragpilot" in text) == (stdio or client == "claude-desktop")
            assert (OPEN.url in text) == (not stdio and client != "claude-desktop")
    assert "TOKEN" not in snippet(client, OPEN, stdio=False)[1].upper()


@pytest.mark.parametrize(
    ("client", "entry"),
    [
        ("cursor", {"url": OPEN.url, "headers": {"Authorization": "Bearer ${env:RAGPILOT_TOKEN}"}}),
        ("windsurf", {"serverUrl": OPEN.url, "headers": {"Authorization": "Bearer ${env:RAGPILOT_TOKEN}"}}),
        ("gemini", {"httpUrl": OPEN.url, "headers": {"Authorization": "Bearer $RAGPILOT_TOKEN"}}),
        (
            "claude-code",
            {"type": "http", "url": OPEN.url, "headers": {"Authorization": "Bearer ${RAGPILOT_TOKEN}"}},
        ),
    ],
)
def test_the_token_is_named_and_never_written(client: str, entry: dict[str, object]) -> None:
    assert parsed(client, GUARDED) == {"mcpServers": {"pilot-rag-ask": entry}}


def test_clients_with_forms_of_their_own() -> None:
    assert parsed("vscode", GUARDED) == {
        "inputs": [{"type": "promptString", "id": "ragpilot-token", "description": "RagPilot token", "password": True}],
        "servers": {
            "pilot-rag-ask": {
                "type": "http",
                "url": OPEN.url,
                "headers": {"Authorization": "Bearer ${input:ragpilot-token}"},
            }
        },
    }
    server = {"url": OPEN.url, "bearer_token_env_var": "RAGPILOT_TOKEN"}
    assert parsed("codex", GUARDED) == {"mcp_servers": {"pilot-rag-ask": server}}
    started: dict[str, object] = {"command": "/bin/ragpilot", "args": ["--directory", "/src/größe", "mcp"]}
    assert parsed("codex", OPEN, stdio=True) == {"mcp_servers": {"pilot-rag-ask": started}}
    assert parsed("claude-desktop", OPEN) == {"mcpServers": {"pilot-rag-ask": started}}


@pytest.mark.parametrize("client", sorted(REFERENCES))
def test_a_server_that_the_client_starts_gets_the_token_and_the_place_of_its_state(client: str) -> None:
    found = parsed(client, PLACED, stdio=True)
    servers = found["servers" if client == "vscode" else "mcpServers"]
    assert isinstance(servers, dict)
    entry = servers["pilot-rag-ask"]
    assert entry["env"] == {**PLACED.environ, "RAGPILOT_TOKEN": REFERENCES[client]}
    assert entry.get("type", "stdio") == "stdio"
    assert "env" not in str(snippet(client, OPEN, stdio=True)[1])


def test_codex_hands_the_token_down_by_its_name() -> None:
    found = parsed("codex", PLACED, stdio=True)
    assert found == {
        "mcp_servers": {
            "pilot-rag-ask": {
                "command": "/bin/ragpilot",
                "args": ["--directory", "/src/größe", "mcp"],
                "env_vars": ["RAGPILOT_TOKEN"],
                "env": dict(PLACED.environ),
            }
        }
    }


def test_what_the_repository_brings_is_what_would_be_printed() -> None:
    expected = snippet("claude-code", OPEN, stdio=False)[1]
    for file in (".mcp.json", "plugins/pilot-rag/.mcp.json"):
        assert (REPOSITORY / file).read_text(encoding="utf-8") == expected
    plugin = json.loads((REPOSITORY / "plugins/pilot-rag/.claude-plugin/plugin.json").read_text(encoding="utf-8"))
    assert plugin["name"] == "pilot-rag"


@pytest.mark.parametrize(
    ("options", "url"),
    [
        ([], "http://127.0.0.1:5200/mcp"),
        (["--url", "https://rag.example:8443/"], "https://rag.example:8443/mcp"),
        (["--url", "https://rag.example/mcp"], "https://rag.example/mcp"),
    ],
)
def test_the_command_prints_the_snippet_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], url: str
) -> None:
    assert run(["-C", str(tmp_path), "mcp", "config", "--client", "claude-code", *options]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["mcpServers"]["pilot-rag-ask"]["url"] == url
    assert ".mcp.json" in printed.err


def note_of(folder: Path, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[str, str]:
    """The URL in the snippet, and what is said beside it."""
    own = folder / "own.toml"
    named = ["--config", str(own)] if own.exists() else []
    assert run([*named, "-C", str(folder), "mcp", "config", "--client", "claude-code", *options]) == 0
    printed = capsys.readouterr()
    return json.loads(printed.out)["mcpServers"]["pilot-rag-ask"].get("url", ""), printed.err


@pytest.mark.asyncio
async def test_a_server_of_another_folder_is_warned_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with running(await Stand().app()) as server:
        (tmp_path / "own.toml").write_text(f'schema = "ragpilot/1"\n[server]\nport = {server.port}\n')
        url, said = await asyncio.to_thread(note_of, tmp_path, capsys)
        assert url == f"{address(server)}/mcp"
        assert f"Warning: the server that answers at {address(server)} is that of another folder" in said
        assert "--stdio needs no address" in said
        assert "another folder" not in (await asyncio.to_thread(note_of, tmp_path, capsys, "--stdio"))[1]
    _, said = await asyncio.to_thread(note_of, tmp_path, capsys)
    assert "No server runs there yet" in said


@pytest.mark.asyncio
@pytest.mark.parametrize("idle", [600.0, None])
async def test_an_address_that_will_not_last_is_said_to_be_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], idle: float | None
) -> None:
    state = load(config=None, directory=tmp_path, environ=os.environ).state
    async with running(await Stand().app()) as server:
        with OwnerLock(state, "serve"), server_record(state, address(server), idle_exit=idle):
            url, said = await asyncio.to_thread(note_of, tmp_path, capsys)
    assert url == f"{address(server)}/mcp"
    assert ("it leaves after 10 idle minutes" in said) == (idle is not None)
    assert "another folder" not in said


def test_the_project_is_named_where_nobody_is_kept_from_anything(tmp_path: Path) -> None:
    shop = CorpusSettings(roots=[str(tmp_path / "shop"), str(tmp_path / "a\u202eb")])
    told = instructions(Settings(corpora=[shop]))
    assert told.endswith(
        '\nThis server knows the project in the folder "shop", "a\\u202eb"; it is of no use for another.'
    )
    assert str(tmp_path) not in told
    ann = ActorSettings(name="ann", principals=[], tokens=["0" * 64])
    assert instructions(Settings(corpora=[shop], actors=[ann])) == INSTRUCTIONS


def test_a_server_for_the_network_is_reached_by_its_port(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    config = tmp_path / "own.toml"
    config.write_text(
        'schema = "ragpilot/1"\n[server]\nhost = "0.0.0.0"\nport = 81\n'
        f'[[actors]]\nname = "ann"\nprincipals = []\ntokens = ["{"0" * 64}"]\n'
    )
    named = ["--config", str(config), "-C", str(tmp_path), "mcp", "config", "--client", "vscode"]
    assert run(named) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["servers"]["pilot-rag-ask"]["url"] == "http://127.0.0.1:81/mcp"
    assert "does not belong into the file" in printed.err
    assert run([*named, "--stdio"]) == 0
    entry = json.loads(capsys.readouterr().out)["servers"]["pilot-rag-ask"]
    assert entry["args"][-5:] == ["--config", str(config), "--directory", str(tmp_path), "mcp"]
    assert entry["env"] == {
        "RAGPILOT_HOME": os.environ["RAGPILOT_HOME"],
        "RAGPILOT_TOKEN": "${input:ragpilot-token}",
    }


def test_what_the_variables_decide_here_is_handed_to_the_server(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own.toml").write_text('schema = "ragpilot/1"\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RAGPILOT_CONFIG", "own.toml")
    monkeypatch.setenv("RAGPILOT_HOME", "home")
    monkeypatch.setenv("RAGPILOT_RETRIEVAL__TOP_K", "5")
    monkeypatch.setenv("RAGPILOT_TOKEN", "secret")
    stdio = ["mcp", "config", "--client", "claude-code", "--stdio"]
    assert run([*stdio, "--ingest"]) == 0
    entry = json.loads(capsys.readouterr().out)["mcpServers"]["pilot-rag-ask"]
    assert entry["args"] == ["--directory", str(tmp_path), "mcp", "--ingest"]
    assert entry["env"] == {
        "RAGPILOT_CONFIG": str(tmp_path / "own.toml"),
        "RAGPILOT_HOME": str(tmp_path / "home"),
        "RAGPILOT_RETRIEVAL__TOP_K": "5",
    }
    # A file that is named on the command line stands there; the variable would be passed over.
    assert run(["--config", "own.toml", *stdio]) == 0
    entry = json.loads(capsys.readouterr().out)["mcpServers"]["pilot-rag-ask"]
    assert entry["args"][:2] == ["--config", str(tmp_path / "own.toml")]
    assert "RAGPILOT_CONFIG" not in entry["env"]


def test_a_server_elsewhere_wants_a_token(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for url, wanted in (
        ("https://rag.example", True),
        ("http://10.0.0.5:5200", True),
        ("http://[::1]:5200/mcp/", False),
    ):
        assert run(["-C", str(tmp_path), "mcp", "config", "--client", "cursor", "--url", url]) == 0
        assert ("${env:RAGPILOT_TOKEN}" in capsys.readouterr().out) == wanted


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--client", "cursor", "--url", "ftp://host"], "'ftp://host' is no address of a server"),
        (["--client", "cursor", "--url", "host:5200"], "is no address of a server"),
        (["--client", "cursor", "--url", "http://"], "is no address of a server"),
        (["--client", "cursor", "--url", "http://host:port"], "is no address of a server"),
        (["--client", "cursor", "--url", "http://a b"], "is no address of a server"),
        (["--client", "cursor", "--url", ""], "is no address of a server"),
        (["--client", "cursor", "--url", "http://user:key@host"], "no user, no query"),
        (["--client", "cursor", "--url", "http://host/mcp?token=x"], "no user, no query"),
        (["--client", "cursor", "--stdio", "--url", "http://host"], "with --stdio the client starts it"),
        (["--client", "claude-desktop", "--url", "http://host"], "claude-desktop takes none"),
        (["--client", "cursor", "--ingest"], "add --stdio"),
    ],
)
def test_options_that_make_no_sense_are_wrong_use(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], words: str
) -> None:
    assert run(["-C", str(tmp_path), "mcp", "config", *options]) == 2
    printed = capsys.readouterr()
    assert (printed.out, words in printed.err) == ("", True)


def test_an_option_in_the_wrong_place_is_not_passed_over(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["mcp", "--ingest", "config", "--client", "cursor", "--stdio"]) == 2
    assert "--ingest stands behind the command" in capsys.readouterr().err


def test_an_unknown_client_is_wrong_use(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["mcp", "config", "--client", "emacs"]) == 2
    assert "'claude-code'" in capsys.readouterr().err
