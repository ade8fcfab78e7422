# File names are bytes here, which pathlib does not know.
# ruff: noqa: PTH113, PTH118, PTH119, PTH120
"""What is left out of a walk beside git's rules: ``.ragpilotignore``, and what no folder of sources means to show."""

from __future__ import annotations

import os
from collections.abc import Callable

from ragpilot.ingest.ignore import IgnoreFile, ignored, load

OWN_IGNORE_FILE = b".ragpilotignore"

_FOLDERS = frozenset(
    b"""
    .git .hg .svn .bzr .jj CVS _darcs node_modules bower_components jspm_packages .venv __pycache__ __pypackages__
    .tox .nox .eggs .mypy_cache .ruff_cache .pytest_cache .hypothesis .ipynb_checkpoints .import_linter_cache
    .gradle .terraform .next .nuxt .svelte-kit .angular .parcel-cache .turbo .yarn .pnpm-store .dart_tool DerivedData
    """.split()
)
_SUFFIXES = (b".egg-info", b".dist-info")
_MARKS = (b"pyvenv.cfg", b"CACHEDIR.TAG")
"""Files that make a folder an environment or a cache, whatever its name."""


def excluded_by_default(folder: bytes) -> bool:
    """Whether a folder outside every repository holds tools' files: version control, dependencies, caches."""
    name = os.path.basename(folder)
    if name in _FOLDERS or name.endswith(_SUFFIXES):
        return True
    return any(os.path.isfile(os.path.join(folder, mark)) for mark in _MARKS)


class OwnRules:
    """``.ragpilotignore`` at every level between ``start`` and a path; the root itself is never ignored."""

    def __init__(self, root: bytes, start: bytes, on_folder: Callable[[bytes], None]) -> None:
        self._start = start
        self._on_folder = on_folder
        """Called once for each folder that is excluded while its parent is not."""
        self._files: dict[bytes, tuple[IgnoreFile, ...]] = {}
        self._excluded: dict[bytes, bool] = {root: False}

    def folder_excluded(self, folder: bytes) -> bool:
        """Whether a folder, or one above it, is ignored."""
        known = self._excluded.get(folder)
        if known is not None:
            return known
        parent = os.path.dirname(folder)
        verdict = self.folder_excluded(parent)
        if not verdict:
            verdict = ignored(self._rules(parent), folder, folder=True)
            if verdict:
                self._on_folder(folder)
        self._excluded[folder] = verdict
        return verdict

    def file_excluded(self, file: bytes) -> bool:
        """Whether a file is ignored by itself; its folder is not."""
        return ignored(self._rules(os.path.dirname(file)), file, folder=False)

    def _rules(self, folder: bytes) -> tuple[IgnoreFile, ...]:
        """The ignore files that hold in a folder, nearest first."""
        known = self._files.get(folder)
        if known is not None:
            return known
        above = () if folder in (self._start, os.path.dirname(folder)) else self._rules(os.path.dirname(folder))
        own = load(folder, os.path.join(folder, OWN_IGNORE_FILE))
        found = above if own is None else (own, *above)
        self._files[folder] = found
        return found
