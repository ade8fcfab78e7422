"""`ragpilot ask` and `ragpilot search` in this process."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from ragpilot import cli
from ragpilot.events import AnswerEvent, Done, Failed, Sources, Token
from ragpilot.ingest.manifest import FILE_NAME as MANIFEST_NAME
from ragpilot.settings_loader import load
from ragpilot.types import Outcome, Source
from tests.unit.cli.sessions import ANSWER, NOT_FOUND, FakeSession, install


def test_an_answer_comes_with_its_sources(work: Path, monkeypatch: pytest.MonkeyPatch, capture: Any) -> None:
    session = install(monkeypatch, FakeSession([*ANSWER]))
    assert cli.run(["ask", "when", "does it run?", "--top-k", "3"]) == 0
    assert session.asked == [("when does it run?", 3, None)]
    stdout, stderr = capture()
    assert stdout == "It runs at start [1].\n\nSources:\n[1] src/app.py:10-42 App.run (0.71)\n"
    assert stderr == ""


def test_the_not_found_answer_is_the_whole_of_stdout(work: Path, monkeypatch: pytest.MonkeyPatch, capture: Any) -> None:
    install(monkeypatch, FakeSession([*NOT_FOUND]))
    assert cli.run(["ask", "what is the capital of France?"]) == 3
    stdout, stderr = capture()
    assert stdout == "Not found in the indexed sources.\n"
    assert "docs/a.md:3 (0.31, the floor needs 0.35)" in stderr
    assert "Warning: two readings" in stderr


@pytest.mark.parametrize(("events", "code"), [(ANSWER, 0), (NOT_FOUND, 3)])
def test_an_answer_as_json(
    work: Path, monkeypatch: pytest.MonkeyPatch, capture: Any, events: list[AnswerEvent], code: int
) -> None:
    install(monkeypatch, FakeSession([*events]))
    assert cli.run(["ask", "--json", "q"]) == code
    stdout, stderr = capture()
    body = json.loads(stdout)
    assert stdout.count("\n") == 1
    assert body["done"]["outcome"] == ("not_found" if code else "answered")
    assert body["sources"] == ([] if code else [{**body["sources"][0], "score": 0.7123, "filePath": "src/app.py"}])
    assert stderr == ""


def test_a_failure_in_the_middle_is_told_and_shows_no_sources(
    work: Path, monkeypatch: pytest.MonkeyPatch, capture: Any
) -> None:
    install(monkeypatch, FakeSession([Token("It"), Failed("model_error", "The model left.", "r")]))
    assert cli.run(["ask", "q"]) == 1
    assert capture() == ("It\n", "Error: The model left.\n")


def test_an_answer_that_breaks_off(work: Path, monkeypatch: pytest.MonkeyPatch, capture: Any) -> None:
    install(monkeypatch, FakeSession([Token("It")]))
    assert cli.run(["ask", "q"]) == 1
    assert "before it was complete" in capture()[1]


def test_what_a_terminal_would_obey_is_stripped(work: Path, monkeypatch: pytest.MonkeyPatch, capture: Any) -> None:
    evil = "\x1b]52;c;ZXZpbA==\x07\x1b[2J\u202e"
    source = Source(f"a\n{evil}.py", evil, 0.5, "i", "t", 1, 1, "c", "code-python", stale=True)
    done = Done(Outcome.ANSWERED, "r", extract=True, warnings=(evil,), unsupported=(7,))
    install(monkeypatch, FakeSession([Token(f"x{evil}y"), Sources((source,)), done]))
    assert cli.run(["ask", "q"]) == 0
    stdout, stderr = capture()
    assert all(char.isprintable() or char == "\n" for char in stdout + stderr)
    assert "[1] a ]52;c;ZXZpbA==[2J.py:1 " in stdout
    assert "changed since it was indexed" in stdout
    assert "An extract" in stderr
    assert "[7], which is no source" in stderr


def test_nothing_indexed_says_how_and_makes_no_folder(work: Path, capture: Any) -> None:
    assert cli.run(["ask", "q"]) == 3
    stdout, stderr = capture()
    assert stdout == "Not found in the indexed sources.\n"
    assert str(work) in stderr
    assert "`ragpilot index`" in stderr
    assert cli.run(["ask", "q", "--json"]) == 3
    body = json.loads(capture()[0])
    assert (body["answer"], body["sources"]) == ("Not found in the indexed sources.", [])
    assert cli.run(["search", "q", "--json"]) == 0
    assert json.loads(capture()[0])["hits"] == []
    assert cli.run(["status"]) == 0
    assert not Path(os.environ["RAGPILOT_HOME"]).exists()


def test_a_folder_above_that_is_indexed_is_named(work: Path, monkeypatch: pytest.MonkeyPatch, capture: Any) -> None:
    inner = work / "it's inner"
    inner.mkdir()
    state = load(config=None, directory=work, environ=os.environ).state
    state.mkdir(parents=True)
    (state / MANIFEST_NAME).touch()
    monkeypatch.chdir(inner)
    told = (
        f"Nothing is indexed yet for {inner}. `ragpilot index` there indexes it.\n"
        f"{work}, above it, is indexed: `ragpilot -C {work} ask …` asks about that.\n"
    )
    assert cli.run(["ask", "q"]) == 3
    assert capture() == ("Not found in the indexed sources.\n", told)
    assert cli.run(["search", "q"]) == 0
    assert capture() == ("", told)


def test_a_search_for_nothing_says_so(work: Path, monkeypatch: pytest.MonkeyPatch, capture: Any) -> None:
    found = {"hits": [], "floor": 0.35, "gate": 0.3, "plan": {"intent": "small_talk"}, "warnings": []}
    install(monkeypatch, FakeSession(found=found))
    assert cli.run(["search", "hello"]) == 0
    assert capture() == ("", "There is nothing to search for in that.\n")


def test_a_search(work: Path, monkeypatch: pytest.MonkeyPatch, capture: Any) -> None:
    hit = {"filePath": "a.py", "startLine": 1, "endLine": 2, "symbol": "f", "score": 0.5}
    found = {
        "hits": [{**hit, "stale": False}, {**hit, "stale": True}],
        "floor": 0.35,
        "gate": 0.6,
        "nearMisses": [],
        "warnings": ["late"],
    }
    session = install(monkeypatch, FakeSession(found=found))
    assert cli.run(["search", "q", "-k", "200"]) == 0
    changed = "2. a.py:1-2 f (0.50)  changed since it was indexed\n"
    assert capture() == ("1. a.py:1-2 f (0.50)\n" + changed, "Warning: late\n")
    assert session.asked == [("q", 200, None)]
    assert cli.run(["search", "q", "--json"]) == 0
    assert json.loads(capture()[0]) == found


def test_a_search_that_finds_nothing(work: Path, monkeypatch: pytest.MonkeyPatch, capture: Any) -> None:
    miss = {"path": "a.py", "startLine": 1, "endLine": 2, "symbol": None, "score": 0.7, "bound": "gate", "needed": 0.6}
    found = {"hits": [], "floor": 0.35, "gate": 0.6, "evidence": 0.5, "nearMisses": [miss, {**miss, "score": 0.65}]}
    install(monkeypatch, FakeSession(found=found))
    assert cli.run(["search", "q"]) == 0
    stdout, stderr = capture()
    assert stdout == ""
    assert "Nothing passes the floor 0.35 and gate 0.60." in stderr
    assert stderr.count("Not enough for an answer: evidence 0.50, the gate needs 0.60.\n") == 1
    assert "Close, but not close enough: a.py:1-2 (0.70)\nClose, but not close enough: a.py:1-2 (0.65)\n" in stderr
