from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
BOUND = 60.0
CONTROLS = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[PX^_][^\x1b]*\x1b\\|[ -~])")


class Terminal:
    """A program in a pseudo-terminal of 100 by 30."""

    def __init__(self, *command: str) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        environment = {**os.environ, "TERM": "xterm-256color", "PYTHONPATH": str(ROOT)}
        self.process = subprocess.Popen(  # noqa: S603 - the interpreter and a file of these tests
            command, stdin=slave, stdout=slave, stderr=slave, env=environment, cwd=ROOT, start_new_session=True
        )
        os.close(slave)
        self.raw = b""
        self._until = time.monotonic() + BOUND

    def type(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def read_until(self, words: bytes) -> None:
        """Read what the program writes until ``words`` stand in it, its controls taken out."""
        while words not in CONTROLS.sub(b"", self.raw):
            assert self._read(), f"{words!r} did not come: {CONTROLS.sub(b'', self.raw)[-500:]!r}"

    def wait(self) -> int:
        while self._read():
            continue
        return self.process.wait(timeout=10)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(timeout=10)
        os.close(self._master)

    def _read(self) -> bool:
        left = self._until - time.monotonic()
        assert left > 0, "the program took too long"
        if not select.select([self._master], [], [], left)[0]:
            return False
        try:
            data = os.read(self._master, 65536)
        except OSError:  # Linux says so when the last program at the other end has gone
            return False
        self.raw += data
        return bool(data)


def test_a_question_is_asked_and_answered_in_a_terminal() -> None:
    terminal = Terminal(sys.executable, "tests/tui/pty_program.py")
    try:
        terminal.read_until(b"1,204 points")
        terminal.type("where is it?")
        terminal.read_until(b"where is it?")
        terminal.type("\r")
        terminal.read_until(b"regulates it")
        terminal.read_until(b"app/budget.py:10-18")
        terminal.type("\x11")
        assert terminal.wait() == 0
    finally:
        terminal.close()
    assert b"\x1b]52" not in terminal.raw, "an answer cannot reach the clipboard"
    assert b"\x1b[?1049l" in terminal.raw, "the terminal is given back as it was"
