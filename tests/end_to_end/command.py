"""The `ragpilot` command as a process of its own, with a home folder of its own and nothing of this user's settings."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

COMMAND = [str(Path(sys.executable).with_name("ragpilot"))]
SECONDS = 90


def environ_of(base: Path) -> dict[str, str]:
    """For a process whose home folder is ``base``."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("RAGPILOT_", "XDG_"))}
    return kept | {"HOME": str(base), "RAGPILOT_HOME": str(base / "home"), "RAGPILOT_CHAT__KIND": "extractive"}


def run(folder: Path, *arguments: str, environ: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """The command in ``folder``, to its end; without ``environ`` its home is the folder above."""
    return subprocess.run(  # noqa: S603 - our own command
        [*COMMAND, *arguments],
        cwd=folder,
        env=environ or environ_of(folder.parent),
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        timeout=SECONDS,
        check=False,
    )


def search(folder: Path, question: str, *arguments: str) -> list[str]:
    """The paths of the hits, best first."""
    done = run(folder, "search", question, "--json", *arguments)
    assert done.stdout, done.stderr
    return [hit["filePath"] for hit in json.loads(done.stdout)["hits"]]


@contextmanager
def open_to_ctrl_c() -> Iterator[None]:
    """For the start of a process: where tests run in the background, it would ignore Ctrl-C as they do."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
