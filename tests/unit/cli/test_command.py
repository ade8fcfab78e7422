"""What all commands have in common: wrong use, errors, notes, help, and what they can print."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from ragpilot import cli, cli_commands, cli_output
from ragpilot.errors import (
    AuthenticationError,
    ChatModelUnavailableError,
    IndexMismatchError,
    RagPilotError,
    StoreInUseError,
    UnknownCorpusError,
)
from tests.unit.cli.sessions import FakeSession, install


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["ask"], "Missing argument"),
        (["ask", ""], "The question is empty."),
        (["ask", " \n"], "The question is empty."),
        (["ask", "x" * 16_001], "has 16,001 characters; at most 16,000"),
        (["ask", "q", "--top-k", "0"], "1<=x<=50"),
        (["ask", "q", "--top-k", "51"], "1<=x<=50"),
        (["ask", "q", "--top-k", "8.5"], "not a valid integer"),
        (["search", "q", "-k", "201"], "1<=x<=200"),
        (["index", "/no/such/folder"], "does not exist"),
        (["serve", "--port", "70000"], "0<=x<=65535"),
        (["nonsense"], "No such command"),
        (["ask", "q", "--corpus", "nope"], "There is no corpus 'nope'."),
        (["--config", "/no/such/file", "ask", "q"], "There is no configuration file /no/such/file."),
        (["-C", "/no/such/folder", "status"], "There is no folder /no/such/folder."),
        (["trust"], "There is no config.toml of RagPilot"),
        ([], "The terminal UI needs a terminal."),
    ],
)
def test_wrong_use(work: Path, capture: Any, arguments: list[str], said: str) -> None:
    assert cli.run(arguments) == 2
    stdout, stderr = capture()
    assert said in stderr
    assert "Traceback" not in stderr
    assert stdout == ""


def test_a_broken_configuration_is_wrong_use(work: Path, capture: Any) -> None:
    (work / "config.toml").write_text('schema = "ragpilot/1"\n[retrieval]\ntopk = 3\n')
    assert cli.run(["status"]) == 2
    assert f"{work}/config.toml:3: unknown key 'topk' in retrieval; did you mean 'top_k'?" in capture()[1]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ChatModelUnavailableError("Ollama is away.", hint="Start it."), 1),
        (StoreInUseError("In use by somebody."), 1),
        (AuthenticationError("No."), 1),
        (IndexMismatchError("Other embedder.", hint="ragpilot index --rebuild"), 1),
        (UnknownCorpusError("x"), 2),
    ],
)
def test_expected_errors_are_told_with_their_hint(
    work: Path, monkeypatch: pytest.MonkeyPatch, capture: Any, error: RagPilotError, code: int
) -> None:
    install(monkeypatch, FakeSession([error]))
    assert cli.run(["ask", "q"]) == code
    stdout, stderr = capture()
    assert stdout == ""
    assert stderr.startswith(f"Error: {error.message}\n")
    assert "GET /corpora" not in stderr


def test_unexpected_errors_say_where_they_are_written(
    work: Path, monkeypatch: pytest.MonkeyPatch, capture: Any
) -> None:
    class Broken(FakeSession):
        async def search(self, question: str, *, k: int, corpus: str | None) -> dict[str, Any]:
            raise ZeroDivisionError(f"inner {k} {question}")

    install(monkeypatch, Broken())
    assert cli.run(["search", "secret"]) == 1
    log = Path(os.environ["RAGPILOT_HOME"]) / "error.log"
    stderr = capture()[1]
    assert str(log) in stderr
    assert "inner 8 secret" not in stderr
    assert "Traceback" not in stderr
    assert "in search" in log.read_text()
    assert log.read_text().endswith("ZeroDivisionError\n")
    assert "inner 8 secret" not in log.read_text()
    assert log.stat().st_mode & 0o777 == 0o600
    monkeypatch.setenv("RAGPILOT_DEBUG", "1")
    assert cli.run(["search", "secret"]) == 1
    assert "ZeroDivisionError: inner 8 secret" in capture()[1]


def test_ctrl_c_ends_quietly(work: Path, monkeypatch: pytest.MonkeyPatch, capture: Any) -> None:
    def interrupt(*_: object, **__: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli_commands, "run_search", interrupt)
    assert cli.run(["search", "q"]) == 130
    assert capture() == ("", "\n")


def test_trust_shows_what_it_allows(work: Path, capture: Any) -> None:
    (work / "config.toml").write_text('schema = "ragpilot/1"\n[chat]\nkind = "extractive"\n')
    assert cli.run(["status"]) == 2
    assert "`ragpilot trust`" in capture()[1]
    assert cli.run(["trust"]) == 0
    assert capture()[0] == f"Trusted: {work}/config.toml\n  it sets chat.kind\n"
    assert cli.run(["status"]) == 0


def test_notes_about_the_configuration_go_to_stderr(work: Path, monkeypatch: pytest.MonkeyPatch, capture: Any) -> None:
    monkeypatch.setenv("RAGPILOT_CHAT_KIND", "ollama")
    assert cli.run(["status", "--json"]) == 0
    stdout, stderr = capture()
    json.loads(stdout)
    assert "did you mean RAGPILOT_CHAT__KIND?" in stderr


def test_help_has_examples_and_exit_codes(capture: Any) -> None:
    assert cli.run(["--help"]) == 0
    stdout, _ = capture()
    assert "Examples:" in stdout
    assert "4  partly done" in stdout
    for command in ("ask", "search", "index", "serve", "status", "trust"):
        assert cli.run([command, "--help"]) == 0
        assert f"Usage: ragpilot {command}" in capture()[0]
    assert cli.run(["--version"]) == 0
    assert capture()[0].startswith("ragpilot ")


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "utf-8"])
def test_any_text_can_be_printed(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import io
    import sys

    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding)
    monkeypatch.setattr(sys, "stdout", stream)
    cli_output.prepare_streams()
    cli_output.write("日本 ✓ \ud800 é")
    raw.getvalue().decode(encoding)
    assert raw.getvalue()
