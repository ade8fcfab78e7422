"""A disk that is soon full: a file system in memory, mounted where nobody else sees it, which takes no privilege."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

_MOUNT = 'mount -t tmpfs -o "size=$1" ragpilot "$2" && echo mounted && exec cat'
_FILLER = ".filler"


@dataclass(frozen=True)
class SmallDisk:
    """Where it is for this process, where it is for those that ``enter``, and the words that make a command enter."""

    path: Path
    inside: Path
    enter: tuple[str, ...]

    @property
    def free(self) -> int:
        return shutil.disk_usage(self.path).free

    def fill(self, leaving: int = 0) -> None:
        """Have no more than so many bytes free."""
        size = self._filled() + self.free - leaving
        with (self.path / _FILLER).open("ab") as filler:
            os.posix_fallocate(filler.fileno(), 0, size)
        assert self.free <= leaving

    def make_room(self) -> None:
        """Take back what ``fill`` has taken."""
        (self.path / _FILLER).unlink()

    def _filled(self) -> int:
        file = self.path / _FILLER
        return file.stat().st_size if file.exists() else 0


@contextmanager
def small_disk(megabytes: int, folder: Path) -> Iterator[SmallDisk]:
    """A disk of that size, mounted at ``folder``. Skips the test where a user may not mount anything."""
    tools = [shutil.which(name) for name in ("unshare", "nsenter")]
    if None in tools:
        pytest.skip("a small disk needs unshare and nsenter, which are Linux's")
    spaces = ["unshare", "--user", "--map-root-user", "--mount"]
    command = [*spaces, "sh", "-c", _MOUNT, "sh", f"{megabytes}m", str(folder)]
    with subprocess.Popen(  # noqa: S603 - our own command
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        assert holder.stderr is not None
        try:
            if holder.stdout.readline() != b"mounted\n":
                pytest.skip(f"this system lets no user mount a file system: {holder.stderr.read().decode()}")
            enter = ("nsenter", f"--target={holder.pid}", "--user", "--mount", "--preserve-credentials")
            yield SmallDisk(Path(f"/proc/{holder.pid}/root{folder}"), folder, enter)
        finally:
            holder.stdin.close()  # it ends, and the disk with it
            holder.wait(10)
