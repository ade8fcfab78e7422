"""What a command says, and how it ends, where its streams cannot be written, and where Ctrl-C comes at the start."""

from __future__ import annotations

import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

needs_full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
INTERRUPTED_WHILE_LOADING = """
import os, signal, sys

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == "ragpilot.cli":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupt())
sys.argv = ["ragpilot", "--version"]
from ragpilot.__main__ import main
main()
"""


def ended(*arguments: str, ignoring: bool = False) -> subprocess.CompletedProcess[str]:
    """What a command came to; ``ignoring``: one that was started deaf to Ctrl-C, as these tests may be too."""
    handler = signal.SIG_IGN if ignoring else signal.SIG_DFL
    return subprocess.run(  # noqa: S603 - what this file says
        arguments,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        preexec_fn=lambda: signal.signal(signal.SIGINT, handler),
    )


def shell(command: str) -> subprocess.CompletedProcess[str]:
    """The same of a command with redirections."""
    return ended("/bin/sh", "-c", command.replace("ragpilot", f"{shlex.quote(sys.executable)} -m ragpilot", 1))


@needs_full
@pytest.mark.parametrize(
    "command", ["status", "status --json", "ask 'what is it?'", "--help", "--version", "index --help", "actor --help"]
)
def test_a_result_that_finds_no_room_is_told(work: Path, command: str) -> None:
    run = shell(f"ragpilot {command} > /dev/full")
    assert run.stderr.splitlines()[-1] == "Error: The output cannot be written: No space left on device."
    assert run.returncode == 1
    assert not (work.parent / "home" / "error.log").exists()


def test_a_closed_stdout_is_told(work: Path) -> None:
    run = shell("ragpilot status >&-")
    assert run.stderr == "Error: The output cannot be written: Bad file descriptor.\n"
    assert run.returncode == 1


@needs_full
def test_wrong_use_that_cannot_be_told_is_wrong_use(work: Path) -> None:
    run = shell("ragpilot --no-such-option 2> /dev/full")
    assert (run.returncode, run.stdout) == (2, "")
    assert not (work.parent / "home" / "error.log").exists()


@pytest.mark.parametrize("redirection", ["2>&-", pytest.param("2>/dev/full", marks=needs_full), "<&-"])
def test_an_answer_needs_neither_stdin_nor_stderr(work: Path, redirection: str) -> None:
    run = shell(f"ragpilot ask 'what is it?' {redirection}")
    assert run.stdout == "Not found in the indexed sources.\n"
    assert run.returncode == 3


def test_ctrl_c_while_it_loads_leaves_no_traceback() -> None:
    run = ended(sys.executable, "-c", INTERRUPTED_WHILE_LOADING)
    assert run.returncode == -signal.SIGINT
    assert (run.stdout, run.stderr) == ("", "")


def test_an_ignored_ctrl_c_stays_ignored() -> None:
    run = ended(sys.executable, "-c", INTERRUPTED_WHILE_LOADING, ignoring=True)
    assert run.returncode == 0
    assert run.stdout.startswith("ragpilot ")
