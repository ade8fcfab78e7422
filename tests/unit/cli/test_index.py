"""`ragpilot index` in this process."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ragpilot import cli, cli_index
from ragpilot.errors import IngestRunningError, RootError
from ragpilot.ingest.manifest import Manifest, Row
from ragpilot.settings_loader import load
from ragpilot.types import IngestProgress
from tests.unit.cli.sessions import ANSWER, FakeSession, install, report


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


def test_what_a_run_says_of_itself_is_printed_once(work: Path, monkeypatch: pytest.MonkeyPatch, capture: Any) -> None:
    steps = [IngestProgress(stage, 0, 3, 1, 3, 0.0, None, "It is cut anew.") for stage in ("chunks", "headers")]
    end = replace(report(), notes=("It is cut anew.",))
    install(monkeypatch, FakeSession(runs=[[*steps, end], [end], [end], [end]]))
    assert cli.run(["index"]) == 0
    assert capture()[1].startswith("It is cut anew.\nIndexing words: 0 of 3")
    assert cli.run(["index"]) == 0
    assert capture()[1].splitlines()[0] == "It is cut anew."
    assert cli.run(["index", "--quiet"]) == 0
    assert "cut anew" not in "".join(capture())
    assert cli.run(["index", "--json"]) == 0
    stdout, stderr = capture()
    assert (json.loads(stdout)["notes"], stderr) == (["It is cut anew."], "")


def test_secrets_that_stay_replaced_are_counted_where_nothing_was_read(
    work: Path, monkeypatch: pytest.MonkeyPatch, capture: Any
) -> None:
    unchanged = replace(report(left_out=2), added=0, changed=0)
    install(monkeypatch, FakeSession(runs=[[unchanged], [unchanged]]))
    assert cli.run(["index"]) == 0
    stderr = capture()[1]
    assert "Secrets stay replaced in 2 files; `ragpilot index --plan` names what is found." in stderr
    assert "Secret replaced" not in stderr
    assert cli.run(["index", "--quiet"]) == 0
    assert capture()[1] == "Warning: careful\n"


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
