"""`ragpilot index --plan`: says what a run would do, and writes nothing at all."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from ragpilot import cli
from ragpilot.ingest import pipeline

TOKEN = "ghp_" + "aB3dE6gH9" * 4


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "shop"
    monkeypatch.setenv("RAGPILOT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    monkeypatch.delenv("RAGPILOT_TOKEN", raising=False)
    for name, text in {
        "src/orders.py": "def total(order):\n    return sum(order)\n",
        "src/keys.py": f'key = "{TOKEN}"\n',
        "docs/guide.md": "# Guide\n\nHow to order.\n",
        ".env": f"TOKEN={TOKEN}\n",
        "yarn.lock": "a\n",
        "pnpm-lock.yaml": "a\n",
        "\x1b]52;c;x\x07.svg": "<svg/>\n",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def contents(folder: Path) -> dict[str, int]:
    return {str(file): file.stat().st_mtime_ns for file in folder.rglob("*")}


def test_a_plan_in_words(root: Path, capfd: pytest.CaptureFixture[str]) -> None:
    before = contents(root)
    assert cli.run(["-C", str(root), "index", "--plan"]) == 0
    stdout, stderr = capfd.readouterr()
    lines = stdout.splitlines()
    assert lines[0].startswith("default: 3 documents (0.1 kB), ")
    assert "code-python 2 documents 2 chunks" in " ".join(stdout.split())
    left_out = lines[lines.index("Left out:") + 1 : lines.index("Suspected secrets:")]
    assert [line.split(maxsplit=1) for line in left_out] == [
        ["2", "lock file         pnpm-lock.yaml, yarn.lock"],
        ["1", "data              \\x1b]52;c;x\\x07.svg"],
        ["1", "secret file       .env"],
    ]
    assert "  .env: left out by its name" in lines
    assert "  src/keys.py: replaced (github-token)" in lines
    assert lines[-1].startswith("About 1 s until it can be asked about, ")
    assert "MB on disk" in lines[-1] or "kB on disk" in lines[-1]
    assert TOKEN not in stdout + stderr
    assert stderr == f"Reading {root} …\n"
    assert contents(root) == before
    assert not Path(os.environ["RAGPILOT_HOME"]).exists()


def test_a_plan_of_a_part_as_json(root: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["-C", str(root), "index", str(root / "src"), "--plan", "--json"]) == 0
    stdout, stderr = capfd.readouterr()
    plan = json.loads(stdout)
    assert (plan["corpus"], plan["documents"], plan["documentsByType"]) == ("default", 2, {"code-python": 2})
    assert plan["redacted"] == [{"path": "src/keys.py", "reason": "github-token", "detail": ""}]
    assert plan["leftOut"] == []
    assert 0 < plan["secondsToSearchable"] < plan["seconds"]
    assert plan["diskBytes"] > 0
    assert stderr == ""


def test_a_plan_tells_of_an_index_that_would_be_cut_anew(
    root: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["-C", str(root), "index", "--no-bodies", "--quiet"]) == 0
    assert cli.run(["-C", str(root), "index", "--plan"]) == 0
    assert "cut anew" not in capfd.readouterr().err
    monkeypatch.setattr(pipeline, "CHUNKER_VERSION", "1000")
    before = contents(root)
    assert cli.run(["-C", str(root), "index", "--plan"]) == 0
    assert capfd.readouterr().err.splitlines()[-1] == (
        "This index was cut by an earlier version of RagPilot: the next run cuts it anew; "
        "vectors of texts that did not change are kept."
    )
    assert contents(root) == before


def test_a_folder_outside_every_corpus_is_planned_and_not_remembered(
    root: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["-C", str(root / "docs"), "index", str(root / "src"), "--plan", "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["corpus"] == "src"
    assert not Path(os.environ["RAGPILOT_HOME"]).exists()


def test_nothing_to_index_is_loud(root: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for file in (*root.glob("*/*"), root / ".env"):
        file.unlink()
    assert cli.run(["-C", str(root), "index", "--plan"]) == 1
    stdout, stderr = capfd.readouterr()
    assert stdout.startswith("default: 0 documents")
    assert "Nothing would be indexed in default." in stderr


@pytest.mark.parametrize("other", ["--watch", "--rebuild"])
def test_a_plan_does_nothing_else(root: Path, other: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["-C", str(root), "index", "--plan", other]) == 2
    assert "--plan does nothing" in capfd.readouterr().err


def test_an_actor_who_may_not_ingest_may_not_plan(
    root: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    config = tmp_path / "c.toml"
    config.write_text(f"""
[[corpora]]
roots = ["{root}"]
[[actors]]
name = "ann"
principals = ["team:everyone"]
tokens = ["env:ANN"]
""")
    monkeypatch.setenv("ANN", "anns-own-long-token")
    monkeypatch.setenv("RAGPILOT_TOKEN", "anns-own-long-token")
    assert cli.run(["--config", str(config), "index", "--plan"]) == 1
    assert "may not index" in capfd.readouterr().err
