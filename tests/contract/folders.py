"""Where the stores of the contract suites stand."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_MEMORY = Path("/dev/shm")  # noqa: S108 - made anew, for this user alone, by mkdtemp
_ENOUGH = 2**30


@contextmanager
def quick_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder in memory where the system has one with room, else one on disk.

    A store flushes to disk at every write, which on a busy disk takes a hundred times as long as all the rest.
    """
    if not _MEMORY.is_dir() or shutil.disk_usage(_MEMORY).free < _ENOUGH:
        yield tmp_path_factory.mktemp("store")
        return
    folder = Path(tempfile.mkdtemp(prefix="ragpilot-", dir=_MEMORY))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)
