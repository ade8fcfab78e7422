"""`ragpilot index` as a process that others ask meanwhile."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

from tests.end_to_end.command import COMMAND, SECONDS, environ_of, open_to_ctrl_c, run, search

QUESTION = "rotate_zebra_keys"
FILES = 1_500
"""Whose vectors take longer to make than the questions below to be answered."""


def test_a_run_answers_until_it_ends_and_who_would_index_too_is_told_who_does(tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "zebra.py").write_text('def rotate_zebra_keys():\n    """Rotate the zebra keys every night."""\n')
    for number in range(FILES):
        (folder / f"order_{number}.py").write_text(f"def total_{number}(order):\n    return sum(order) + {number}\n")
    with open_to_ctrl_c():
        process = subprocess.Popen(  # noqa: S603 - our own command
            [*COMMAND, "index", "--quiet"], cwd=folder, env=environ_of(tmp_path), stderr=subprocess.PIPE, text=True
        )
    with process:
        try:
            owner = tmp_path / "home"
            while not list(owner.glob("*/owner.json")):
                assert process.poll() is None

            found: list[str] = []
            while not found:  # it can be asked before it has read all files
                found = search(folder, QUESTION)
                assert process.poll() is None, "the run ended before it was asked"
            status = json.loads(run(folder, "status", "--json").stdout)
            second = run(folder, "index")

            assert found[0] == "zebra.py"
            assert status["server"].startswith("http://127.0.0.1:")
            assert second.returncode == 1
            assert f"in use by `ragpilot index` (process {process.pid}," in second.stderr
            process.send_signal(signal.SIGINT)
            assert process.wait(SECONDS) == 130
        finally:
            process.kill()
    assert not list(owner.glob("*/server.json"))
    assert search(folder, QUESTION)[0] == "zebra.py"
