"""The Makefile hands a question over as it was given: no shell reads it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
STUB = """#!{python}
import json, os, sys
with open({record!r}, "a") as record:
    record.write(json.dumps(sys.argv[1:]) + "\\n")
sys.exit({code} if "ask" in sys.argv else 0)
"""


def make(base: Path, *arguments: str, code: int = 0) -> tuple[int, list[list[str]]]:
    """Run make with a stub instead of the installed command; gives its exit code and what the stub was called with."""
    program = shutil.which("make")
    assert program, "these tests need make"
    environment, record = base / "venv", base / "calls"
    (environment / "bin").mkdir(parents=True, exist_ok=True)
    for name in ("python", "ragpilot"):
        stub = environment / "bin" / name
        stub.write_text(STUB.format(python=sys.executable, record=str(record), code=code), encoding="utf-8")
        stub.chmod(0o755)
    marker = environment / ".main"
    marker.touch()
    os.utime(marker, (2**32, 2**32))
    done = subprocess.run(  # noqa: S603 - our own Makefile
        [program, "-s", "-C", str(REPOSITORY), f"VENV={environment}", *arguments],
        capture_output=True,
        timeout=30,
        check=False,
    )
    return done.returncode, [json.loads(line) for line in record.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize(
    "question",
    ['say "hi"', "what does `touch PWNED` do", "$HOME and $(shell touch PWNED)", "it's; true", "--help", "a\\b $$ #c"],
)
def test_a_question_reaches_the_command_as_it_was_given(tmp_path: Path, question: str) -> None:
    status, calls = make(tmp_path, "ask", f"Q={question}")
    assert status == 0
    assert calls == [["--directory", ".", "index", "--no-bodies"], ["--directory", ".", "ask", "--", question]]
    assert not (REPOSITORY / "PWNED").exists()


def test_a_root_with_blanks_is_one_folder(tmp_path: Path) -> None:
    assert make(tmp_path, "run", "ROOT=/some folder/$x") == (0, [["--directory", "/some folder/$x"]])


def test_not_found_is_no_failure_of_make_and_a_failure_is(tmp_path: Path) -> None:
    assert make(tmp_path, "ask", "Q=x", code=3)[0] == 0
    assert make(tmp_path, "ask", "Q=x", code=1)[0] != 0
