"""`ragpilot index --watch` as a process: real notifications, a real server behind it, questions meanwhile."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.end_to_end.command import COMMAND, SECONDS, environ_of, open_to_ctrl_c, search


@contextmanager
def watching(folder: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], Iterator[str]]]:
    """The process and its reports; its server is ended with the block, whatever happens in it."""
    base = folder.parent
    with open_to_ctrl_c():
        process = subprocess.Popen(  # noqa: S603 - our own command
            [*COMMAND, "index", "--watch", "--json", *arguments],
            cwd=folder,
            env=environ_of(base),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
    with process:
        try:
            assert process.stdout is not None
            yield process, iter(process.stdout)
        finally:
            process.kill()
            for record in (base / "home").glob("*/server.json"):
                pid = json.loads(record.read_text())["pid"]
                os.kill(pid, signal.SIGTERM)
                deadline = time.monotonic() + SECONDS
                while record.exists() and time.monotonic() < deadline:
                    time.sleep(0.05)


def test_what_is_saved_is_found_and_what_is_deleted_is_not(tmp_path: Path) -> None:
    # The user's own configuration has corpora, so the folder becomes one beside them.
    config = tmp_path / ".config/ragpilot/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('schema = "ragpilot/1"\n[[corpora]]\nname = "other"\nroots = ["other"]\n')
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "orders.py").write_text('def total(order):\n    """The sum of an order."""\n    return sum(order)\n')
    with watching(folder, str(folder)) as (process, reports):
        first = json.loads(next(reports))
        assert (first["corpus"], first["added"]) == ("shop", 1)
        (folder / "zebra.py").write_text('def rotate_zebra_keys():\n    """Rotate the zebra keys every night."""\n')
        assert json.loads(next(reports))["added"] == 1
        assert search(folder, "who rotates the zebra keys?", "--corpus", "shop")[0] == "zebra.py"
        (folder / "zebra.py").unlink()
        assert json.loads(next(reports))["removed"] == 1
        assert "zebra.py" not in search(folder, "who rotates the zebra keys?", "--corpus", "shop")

        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=SECONDS) == 130
        assert process.stderr is not None
        assert process.stderr.read().strip() == "No longer watching; what is indexed stays."
