"""The commands in this process, over a session that answers as it is told."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ragpilot import cli, cli_commands, cli_index, cli_output
from ragpilot.cli_session import IngestEvent, Session
from ragpilot.config import Environment
from ragpilot.errors import (
    AuthenticationError,
    ChatModelUnavailableError,
    EmbedderUnavailableError,
    IndexMismatchError,
    IngestRunningError,
    RagPilotError,
    RootError,
    StoreInUseError,
    StoreUnavailableError,
    UnknownCorpusError,
)
from ragpilot.events import AnswerEvent, Done, Failed, Sources, Token
from ragpilot.ingest.manifest import Manifest, Row
from ragpilot.settings_loader import load
from ragpilot.types import (
    Bounds,
    CorpusInfo,
    EmbedderIdentity,
    Health,
    IndexStats,
    IngestProgress,
    IngestReport,
    LeftOut,
    NearMiss,
    Outcome,
    Source,
)

SOURCE = Source("src/app.py", "App.run", 0.7123, "id-1", "run", 10, 42, "src/app.py:10-42", "code-python")
ANSWER: list[AnswerEvent] = [
    Token("It runs "),
    Token("at start [1]."),
    Sources((SOURCE,)),
    Done(Outcome.ANSWERED, "r1", model="m"),
]
NOT_FOUND: list[AnswerEvent] = [
    Token("Not found in the indexed sources."),
    Sources(()),
    Done(
        Outcome.NOT_FOUND,
        "r2",
        near_misses=(NearMiss("docs/a.md", None, 3, 3, 0.31, "floor", 0.35),),
        warnings=("two readings",),
    ),
]
BOUNDS = Bounds(0.35, "embedder", None, "settings")
STATS = IndexStats(
    "default", 12, datetime(2026, 1, 2, tzinfo=UTC), 3, {"docs-markdown": 2, "code-python": 10}, 1.0, 0.5,
    EmbedderIdentity("minilm", 384), BOUNDS, {"ignored": 1200, "binary": 3},
)  # fmt: skip


def report(outcome: Any = "complete", *, failed: int = 0, left_out: int = 0) -> IngestReport:
    lost = tuple(LeftOut(f"bad{n}.py", "unreadable", "why") for n in range(failed))
    left = tuple(LeftOut(f"x{n}.png", "binary") for n in range(left_out))
    hidden = (LeftOut("c.py", "github-token, jwt"),) * left_out
    return IngestReport("default", outcome, 2, 1, 1000, 0, 5432, 30, left, lost, 1.25, 0.5, ("careful",), hidden)


class FakeSession:
    """Gives what it was made with; an error instead of an event is raised."""

    def __init__(
        self,
        events: list[AnswerEvent | RagPilotError] | None = None,
        *,
        found: dict[str, Any] | None = None,
        runs: list[list[IngestEvent | RagPilotError]] | None = None,
        address: str | None = None,
    ) -> None:
        self.address = address
        self.events = events or []
        self.found = found or {}
        self.runs = runs or []
        self.asked: list[Any] = []
        self.opened: list[tuple[Environment, str]] = []

    async def ask(self, question: str, *, top_k: int | None, corpus: str | None) -> AsyncGenerator[AnswerEvent, None]:
        self.asked.append((question, top_k, corpus))
        for event in self.events:
            if isinstance(event, RagPilotError):
                raise event
            yield event

    async def search(self, question: str, *, k: int, corpus: str | None) -> dict[str, Any]:
        self.asked.append((question, k, corpus))
        return self.found

    async def index(
        self, corpus: str, *, path: Path | None, rebuild: bool, bodies: bool, broad: bool
    ) -> AsyncGenerator[IngestEvent, None]:
        self.asked.append((corpus, path, rebuild, bodies, broad))
        for event in self.runs.pop(0):
            if isinstance(event, RagPilotError):
                raise event
            yield event

    async def stats(self, corpus: str | None) -> IndexStats:
        return STATS

    async def corpora(self) -> list[CorpusInfo]:
        return [CorpusInfo("default", True, 12, None, 384, "minilm")]

    async def health(self) -> dict[str, Health]:
        return {"store": Health(True, "open"), "model": Health(False, "away\x1b[31m")}


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("RAGPILOT_HOME", str(tmp_path / "home"))
    return folder


def install(monkeypatch: pytest.MonkeyPatch, session: FakeSession, *, touched: bool = True) -> FakeSession:
    @asynccontextmanager
    async def opened(environment: Environment, role: str, environ: Mapping[str, str]) -> AsyncIterator[Session]:
        session.opened.append((environment, role))
        yield session

    monkeypatch.setattr(cli_commands, "open_session", opened)
    monkeypatch.setattr(cli_index, "open_session", opened)
    if touched:
        monkeypatch.setattr(cli_commands, "_untouched", lambda *_: False)
    return session


@pytest.fixture
def capture(capfd: pytest.CaptureFixture[str]) -> Any:
    def read() -> tuple[str, str]:
        captured = capfd.readouterr()
        return captured.out, captured.err

    return read


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


def test_index_reports_every_corpus(work: Path, monkeypatch: pytest.MonkeyPatch, capture: Any, tmp_path: Path) -> None:
    config = tmp_path / "c.toml"
    config.write_text('[[corpora]]\nname = "a"\nroots = ["x"]\n[[corpora]]\nname = "b"\nroots = ["y"]\n')
    step = IngestProgress("headers", 5, 10, 3, 10, 420.4, 65.0)
    session = install(monkeypatch, FakeSession(runs=[[step, report(left_out=3)], [report("partial", failed=12)]]))
    assert cli.run(["--config", str(config), "index", "--rebuild", "--no-bodies"]) == 4
    assert session.asked == [("a", None, True, False, False), ("b", None, True, False, False)]
    stdout, stderr = capture()
    assert stdout.splitlines()[0] == "default: 2 new, 1 changed, 1,000 unchanged; 5,432 chunks; 1.2 s."
    assert "Left out: 3 binary." in stdout
    assert stderr.count("Secret replaced: c.py (github-token, jwt)") == 3
    assert "Embedding names: 5 of 10; 3 files, 10 chunks, 420 chunks/s, 1 min 5 s left" in stderr
    assert "Failed: bad0.py: unreadable (why)" in stderr
    assert "Failed: 2 more; --json lists them all." in stderr


def test_a_path_is_that_of_the_directory_the_command_works_in(
    work: Path, monkeypatch: pytest.MonkeyPatch, capture: Any, tmp_path: Path
) -> None:
    (tmp_path / "elsewhere" / "lib").mkdir(parents=True)
    session = install(monkeypatch, FakeSession(runs=[[report()]]))
    assert cli.run(["-C", str(tmp_path / "elsewhere"), "index", "lib"]) == 0
    assert session.asked[0][1] == tmp_path / "elsewhere" / "lib"
    assert cli.run(["-C", str(work), "index", "lib"]) == 2
    assert "does not exist" in capture()[1]


def test_a_path_that_is_gone_is_indexed_while_something_of_it_is_in_the_index(
    work: Path, monkeypatch: pytest.MonkeyPatch, capture: Any
) -> None:
    session = install(monkeypatch, FakeSession(runs=[[report()]] * 2))
    with Manifest(load(config=None, directory=work, environ=os.environ).state) as manifest:
        manifest.record("default", 1, rows=[Row("src/a.py", "d1", 1, 1, 1)])
    for path in ("src/a.py", "src"):
        assert cli.run(["index", path]) == 0
        assert session.asked.pop()[1] == work / path
    capture()
    for path in ("src/b.py", "sr", str(work.parent / "src/a.py")):
        assert cli.run(["index", path]) == 2
        assert f"Path '{path}' does not exist." in capture()[1]
    for wish in ("--plan", "--watch"):
        assert cli.run(["index", "src", wish]) == 2
        assert "does not exist" in capture()[1]


def test_index_follows_the_run_that_the_server_is_at(work: Path, monkeypatch: pytest.MonkeyPatch, capture: Any) -> None:
    monkeypatch.setattr(cli_index, "TURN_SECONDS", 0.0)
    busy = IngestRunningError("A run of ingestion is under way.")
    session = FakeSession(runs=[[busy], [busy], [report()]], address="http://127.0.0.1:5200")
    install(monkeypatch, session)
    assert cli.run(["index"]) == 0
    out, err = capture()
    assert "2 new" in out
    assert err.count("is indexing; this run follows") == 1
    install(monkeypatch, FakeSession(runs=[[busy]]))
    assert cli.run(["index"]) == 1
    assert "under way" in capture()[1]


def test_index_quietly_and_as_json(work: Path, monkeypatch: pytest.MonkeyPatch, capture: Any) -> None:
    install(monkeypatch, FakeSession(runs=[[report()], [report()]]))
    assert cli.run(["index", "--quiet"]) == 0
    assert capture() == ("", "Warning: careful\n")
    assert cli.run(["index", "--json"]) == 0
    stdout, stderr = capture()
    assert json.loads(stdout)["chunks"] == 5432
    assert stderr == ""


def test_an_empty_result_is_loud(work: Path, monkeypatch: pytest.MonkeyPatch, capture: Any) -> None:
    install(monkeypatch, FakeSession(runs=[[report("nothing")]]))
    assert cli.run(["index", "--quiet"]) == 1
    assert "Nothing was indexed in default" in capture()[1]


def test_a_folder_outside_becomes_a_corpus_of_its_own(
    work: Path, monkeypatch: pytest.MonkeyPatch, capture: Any, tmp_path: Path
) -> None:
    outside = tmp_path / "my shop"
    outside.mkdir()
    session = install(monkeypatch, FakeSession(runs=[[report()], [report()], [report()]]))
    assert cli.run(["index", str(outside)]) == 0
    environment, role = session.opened[0]
    assert (role, environment.directory) == ("index", outside)
    assert session.asked[-1] == ("my-shop", None, False, True, False)

    assert cli.run(["index", str(outside / "..") + "/my shop"]) == 0
    assert session.asked[-1][0] == "my-shop"
    (outside / "sub").mkdir()
    assert cli.run(["-C", str(outside), "index", "sub"]) == 0
    assert session.asked[-1][:2] == ("my-shop", outside / "sub")
    assert session.opened[-1][0].state == environment.state

    install(monkeypatch, session)
    session.events = [*ANSWER]
    assert cli.run(["ask", "q", "--corpus", "my-shop"]) == 0
    assert session.opened[-1][0].state == environment.state
    capture()
    monkeypatch.undo()


def test_a_refused_run_is_not_remembered(
    work: Path, monkeypatch: pytest.MonkeyPatch, capture: Any, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    session = install(monkeypatch, FakeSession(runs=[[RootError("Too much.", hint="say --yes")], [report()]]))
    assert cli.run(["index", str(outside)]) == 1
    assert "say --yes" in capture()[1]
    assert not session.opened[0][0].state.exists()
    assert cli.run(["index", "--yes", str(outside)]) == 0
    assert session.asked[-1] == ("outside", None, False, True, True)


def test_a_folder_indexed_from_inside_keeps_its_name(
    work: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    session = install(monkeypatch, FakeSession(runs=[[report()], [report()]]))
    assert cli.run(["-C", str(outside), "index"]) == 0
    session.opened[0][0].state.mkdir(parents=True)
    assert cli.run(["index", str(outside)]) == 0
    assert [asked[0] for asked in session.asked] == ["default", "default"]
    assert session.opened[0][0].state == session.opened[1][0].state


def test_a_file_outside_every_corpus(work: Path, capture: Any, tmp_path: Path) -> None:
    (tmp_path / "file.py").write_text("x = 1")
    assert cli.run(["index", str(tmp_path / "file.py")]) == 2
    assert "lies in no corpus" in capture()[1]


def test_status(work: Path, monkeypatch: pytest.MonkeyPatch, capture: Any) -> None:
    install(monkeypatch, FakeSession(address="http://127.0.0.1:5200"))
    assert cli.run(["status"]) == 0
    stdout, _ = capture()
    assert "Server: http://127.0.0.1:5200" in stdout
    assert "Model: NOT WELL; away[31m" in stdout
    assert "3 documents, 12 chunks, last indexed 2026-01-02T00:00:00Z" in stdout
    assert "10 code-python, 2 docs-markdown" in stdout
    assert "floor 0.35 (embedder), gate off (settings)" in stdout
    assert "left out: 1,200 ignored, 3 binary" in stdout
    assert cli.run(["status", "--json"]) == 0
    body = json.loads(capture()[0])
    assert body["corpora"][0]["pointCount"] == 12
    assert body["corpora"][0]["roots"] == [str(work)]
    assert body["health"]["store"]["ok"] is True
    assert body["directory"] == str(work)


def test_status_tells_of_an_index_that_does_not_fit(work: Path, monkeypatch: pytest.MonkeyPatch, capture: Any) -> None:
    class Misfit(FakeSession):
        async def stats(self, corpus: str | None) -> IndexStats:
            return replace(STATS, misfit="the index was built with a, configured is b: `ragpilot index --rebuild`")

    install(monkeypatch, Misfit())
    assert cli.run(["status"]) == 0
    assert "  NOT WELL; the index was built with a, configured is b: `ragpilot index --rebuild`" in capture()[0]


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (StoreUnavailableError("Qdrant is away.", hint="Start it."), "Store: NOT WELL; Qdrant is away. Start it."),
        (EmbedderUnavailableError("Ollama is away."), "Embedder: NOT WELL; Ollama is away."),
        (IndexMismatchError("Other embedder."), "Index: NOT WELL; Other embedder."),
    ],
)
def test_status_prints_its_lines_whatever_is_away(
    work: Path, monkeypatch: pytest.MonkeyPatch, capture: Any, error: RagPilotError, line: str
) -> None:
    class Away(FakeSession):
        async def corpora(self) -> list[CorpusInfo]:
            raise error

    install(monkeypatch, Away())
    assert cli.run(["status"]) == 0
    stdout, stderr = capture()
    assert line in stdout.splitlines()
    assert f"Corpus default: {work}" in stdout
    assert stderr == ""


def test_status_while_a_command_holds_the_index(work: Path, monkeypatch: pytest.MonkeyPatch, capture: Any) -> None:
    class Held(FakeSession):
        async def health(self) -> dict[str, Health]:
            raise StoreInUseError("held")

    install(monkeypatch, Held())
    assert cli.run(["status"]) == 0
    assert "Corpus default" in capture()[0]


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
