"""The `ragpilot` command as a process: the real embedded store, the real embedder, no network."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.end_to_end.command import COMMAND, SECONDS
from tests.end_to_end.project import Project, make_project

QUESTION = "Where is the context budget enforced?"
# Modules that an interpreter started in the folder must not pick up.
TRAPS = ("multiprocessing", "server", "signal", "socket", "ragpilot", "tui", "pickle")


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    project = make_project(tmp_path_factory.mktemp("cli"))
    for trap in TRAPS:
        (project.folder / f"{trap}.py").write_text(f"open({str(project.folder / 'SPRUNG')!r}, 'a').write({trap!r})\n")
    done = project.run("index")
    assert done.returncode == 0, done.stderr
    assert "default: 11 new" in done.stdout
    assert "Embedding" in done.stderr
    yield project
    assert not (project.folder / "SPRUNG").exists(), "a module of the folder was imported"


def test_an_answer_names_the_right_file_first(indexed: Project) -> None:
    done = indexed.run("ask", QUESTION)
    assert done.returncode == 0, done.stderr
    answer, _, sources = done.stdout.partition("\nSources:\n")
    assert "[1]" in answer
    assert sources.startswith("[1] src/budget.py:")
    assert "An extract" in done.stderr


def test_answer_and_search_name_the_same_sources_with_the_same_scores(indexed: Project) -> None:
    asked = indexed.run("ask", QUESTION, "--json", "--top-k", "4")
    found = indexed.run("search", QUESTION, "--json", "-k", "4")
    body, hits = json.loads(asked.stdout), json.loads(found.stdout)
    assert body["done"]["outcome"] == "answered"
    assert [(item["id"], item["score"]) for item in body["sources"]] == [
        (item["id"], item["score"]) for item in hits["hits"]
    ]
    assert hits["floor"] == body["done"]["plan"]["floor"]


def test_an_off_corpus_question(indexed: Project) -> None:
    done = indexed.run("ask", "what is the capital of France?")
    assert (done.returncode, done.stdout) == (3, "Not found in the indexed sources.\n")


@pytest.mark.parametrize(
    "variables",
    [{"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, {"PYTHONIOENCODING": "cp1252"}],
)
def test_poor_encodings_do_not_crash(indexed: Project, variables: dict[str, str]) -> None:
    done = indexed.run("search", "how does the warehouse scale weigh pallets?", **variables)
    assert done.returncode == 0, done.stderr
    assert "docs/gr" in done.stdout
    assert "Traceback" not in done.stderr


def test_no_escape_sequence_of_a_document_comes_out(indexed: Project) -> None:
    done = indexed.run("ask", "what does the clipboard bridge write?")
    assert "docs/evil.md" in done.stdout
    assert not set(done.stdout + done.stderr) & set("\x1b\x07\u202e\u202c")


def test_a_second_run_changes_nothing_and_a_narrowed_one_sees_its_part(indexed: Project) -> None:
    again = indexed.run("index", "--json")
    report = json.loads(again.stdout)
    assert (again.returncode, report["added"], report["unchanged"], report["embedded"]) == (0, 0, 11, 0)
    part = json.loads(indexed.run("index", "docs", "--json").stdout)
    assert part["corpus"] == "default"
    assert part["unchanged"] == 2


def test_status_tells_what_is_indexed(indexed: Project) -> None:
    body = json.loads(indexed.run("status", "--json").stdout)
    assert body["server"] is None
    assert body["corpora"][0]["documents"] == 11
    assert body["health"]["store"]["ok"] is True
    assert body["state"] == str(indexed.state())
    assert indexed.state().stat().st_mode & 0o777 == 0o700


def test_a_reader_that_leaves_ends_it_quietly(indexed: Project) -> None:
    with subprocess.Popen(  # noqa: S603 - our own command
        [*COMMAND, "ask", QUESTION],
        cwd=indexed.folder,
        env=indexed.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=SECONDS) == 141


@contextmanager
def serving(project: Project) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """`ragpilot serve` on a free port: its address and process; ended with the block, whatever happens in it."""
    with subprocess.Popen(  # noqa: S603 - our own command
        [*COMMAND, "serve", "--port", "0"], cwd=project.folder, env=project.environ, stderr=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stderr is not None
            yield next(line for line in server.stderr if "RagPilot answers at" in line).split()[3].rstrip(";"), server
        finally:
            server.terminate()
            try:
                server.wait(timeout=10)
            except subprocess.TimeoutExpired:
                server.kill()


def test_commands_go_through_a_running_server(indexed: Project) -> None:
    direct = json.loads(indexed.run("ask", QUESTION, "--json").stdout)
    with serving(indexed) as (address, server):
        assert json.loads(indexed.run("status", "--json").stdout)["server"] == address
        through = json.loads(indexed.run("ask", QUESTION, "--json").stdout)
        assert (through["answer"], through["sources"]) == (direct["answer"], direct["sources"])

        second = indexed.run("serve", "--port", "0")
        assert second.returncode == 1
        assert f"`ragpilot serve` at {address} (process {server.pid}, since" in second.stderr

        new = indexed.folder / "src" / "fresh.py"
        new.write_text('def rotate_zebra_keys() -> None:\n    """Rotate the zebra keys every night."""\n')
        assert json.loads(indexed.run("index", "--json").stdout)["added"] == 1
        asked = indexed.run("ask", "who rotates the zebra keys?")
        assert "[1] src/fresh.py:" in asked.stdout
        new.unlink()
        assert json.loads(indexed.run("index", "--json").stdout)["removed"] == 1

        server.send_signal(signal.SIGINT)
        assert server.wait(timeout=SECONDS) == 0
    assert not (indexed.state() / "server.json").exists()


def test_a_folder_elsewhere_becomes_a_corpus_of_its_own(indexed: Project, tmp_path: Path) -> None:
    shop = tmp_path / "shop"
    shop.mkdir()
    (shop / "refund.py").write_text('def book_refund(order: str) -> None:\n    """Book the refund of an order."""\n')
    done = indexed.run("index", str(shop), RAGPILOT_HOME=str(tmp_path / "home"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("shop: 1 new")
    asked = indexed.run("ask", "--corpus", "shop", "how is a refund booked?", RAGPILOT_HOME=str(tmp_path / "home"))
    assert asked.returncode == 0, asked.stderr
    assert "[1] refund.py:" in asked.stdout


def test_a_run_that_comes_to_nothing_leaves_no_corpus_behind(indexed: Project, tmp_path: Path) -> None:
    empty = tmp_path / "manuals"
    empty.mkdir()
    before = set(Path(indexed.environ["RAGPILOT_HOME"]).iterdir())
    assert indexed.run("index", str(empty)).returncode == 1
    away = {"RAGPILOT_EMBEDDER__KIND": "ollama", "RAGPILOT_EMBEDDER__URL": "http://127.0.0.1:9"}
    assert indexed.run("index", str(empty), **away).returncode == 1
    assert set(Path(indexed.environ["RAGPILOT_HOME"]).iterdir()) == before
    (empty / "a.md").write_text("# Pumps\n\nThe pump is primed by hand before it is started.\n", encoding="utf-8")
    done = indexed.run("index", str(empty))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("manuals: 1 new; 1 chunk; ")


def test_a_home_folder_needs_yes(indexed: Project, tmp_path: Path) -> None:
    done = indexed.run("index", str(tmp_path), HOME=str(tmp_path), RAGPILOT_HOME=str(tmp_path / "home"))
    assert done.returncode == 1
    assert "--yes" in done.stderr


def test_a_hostile_configuration_reaches_nothing(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    (project.folder / "config.toml").write_text(
        'schema = "ragpilot/1"\n[chat]\nkind = "openai"\nurl = "http://192.0.2.1"\n[[corpora]]\nroots = ["/etc"]\n'
    )
    for command in (["ask", "q"], ["serve", "--port", "0"]):
        done = project.run(*command)
        assert done.returncode == 2
        assert "chat.url" in done.stderr
        assert "corpora[0].roots[0] (an absolute path)" in done.stderr
    assert not Path(project.environ["RAGPILOT_HOME"]).exists()
