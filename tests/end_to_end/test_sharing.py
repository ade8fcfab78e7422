"""`ragpilot index` as a process that others ask meanwhile."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

COMMAND = [str(Path(sys.executable).with_name("ragpilot"))]
SECONDS = 60
FILES = 1_500
"""Whose vectors take longer to make than the questions below to be answered."""


def environ(base: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("RAGPILOT_", "XDG_"))}
    return kept | {"HOME": str(base), "RAGPILOT_HOME": str(base / "home"), "RAGPILOT_CHAT__KIND": "extractive"}


def ragpilot(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 - our own command
        [*COMMAND, *arguments],
        cwd=folder,
        env=environ(folder.parent),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def search(folder: Path) -> list[str]:
    done = ragpilot(folder, "search", "rotate_zebra_keys", "--json")
    return [hit["filePath"] for hit in json.loads(done.stdout)["hits"]]


def test_a_run_answers_until_it_ends_and_who_would_index_too_is_told_who_does(tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "zebra.py").write_text('def rotate_zebra_keys():\n    """Rotate the zebra keys every night."""\n')
    for number in range(FILES):
        (folder / f"order_{number}.py").write_text(f"def total_{number}(order):\n    return sum(order) + {number}\n")
    # Where tests run in the background Ctrl-C may be ignored, and who is begun then ignores it as well.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with subprocess.Popen(  # noqa: S603 - our own command
        [*COMMAND, "index", "--quiet"], cwd=folder, env=environ(tmp_path), stderr=subprocess.PIPE, text=True
    ) as process:
        signal.signal(signal.SIGINT, before)
        try:
            owner = tmp_path / "home"
            while not list(owner.glob("*/owner.json")):
                assert process.poll() is None

            found: list[str] = []
            while not found:  # it can be asked before it has read all files
                found = search(folder)
                assert process.poll() is None, "the run ended before it was asked"
            status = json.loads(ragpilot(folder, "status", "--json").stdout)
            second = ragpilot(folder, "index")

            assert found[0] == "zebra.py"
            assert status["server"].startswith("http://127.0.0.1:")
            assert second.returncode == 1
            assert f"in use by `ragpilot index` (process {process.pid}," in second.stderr
            process.send_signal(signal.SIGINT)
            assert process.wait(SECONDS) == 130
        finally:
            process.kill()
    assert not list(owner.glob("*/server.json"))
    assert search(folder)[0] == "zebra.py"
