# File names are bytes here, which pathlib does not know.
# ruff: noqa: PTH113, PTH118, PTH119, PTH120
"""What is left out of a walk beside git's rules, and what ignore files ask for that would be left out by default.

``.ragpilotignore`` leaves out more. A negated pattern that names what it is about, ``!debug.log``, ``!*.min.js`` or
``!.venv/``, asks for it: it is indexed although RagPilot would not index its kind. ``!src/*`` or ``!*.c`` only take
back what another pattern said.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Container

from ragpilot.ingest.filters import names_a_kind, refused_by_name
from ragpilot.ingest.ignore import IgnoreFile, ignored, load, readmitting
from ragpilot.ingest.paths import shown_path
from ragpilot.ingest.reasons import Reason

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


class IgnoreRules:
    """The ignore files of one name at every level between ``start`` and a path, and ``outer`` ones behind them."""

    def __init__(
        self, start: bytes, name: bytes, outer: tuple[IgnoreFile, ...] = (), *, ignore_case: bool = False
    ) -> None:
        self._name = name
        self._ignore_case = ignore_case
        self._files = {start: self._with_own(start, outer)}
        """Folder -> the ignore files that hold in it, nearest first."""

    def ignores(self, path: bytes, *, folder: bool) -> bool:
        """Whether an entry is ignored by itself, whatever becomes of the folders above it."""
        return ignored(self._of(os.path.dirname(path)), path, folder=folder)

    def asks_for_file(self, file: bytes) -> bool:
        """Whether a negated pattern names the file, or its kind, which would be left out by default."""
        pattern = readmitting(self._of(os.path.dirname(file)), file, folder=False)
        if pattern is None:
            return False
        name = shown_path(pattern.name)
        refusal = refused_by_name(name)
        if refusal is not None and refusal.reason == Reason.IGNORE_FILE:
            # In a .gitignore it keeps a folder in git that is empty otherwise, and says nothing of an index.
            return self._name == OWN_IGNORE_FILE
        return pattern.is_literal or names_a_kind(name)

    def asks_for_folder(self, folder: bytes) -> bool:
        """Whether a negated pattern names the folder, or its kind, which would be left out by default."""
        pattern = readmitting(self._of(os.path.dirname(folder)), folder, folder=True)
        return pattern is not None and (pattern.is_literal or _is_tools_name(pattern.name))

    def _of(self, folder: bytes) -> tuple[IgnoreFile, ...]:
        known = self._files.get(folder)
        if known is not None:
            return known
        for unknown in unknown_above(folder, self._files):
            self._files[unknown] = self._with_own(unknown, self._files[os.path.dirname(unknown)])
        return self._files[folder]

    def _with_own(self, folder: bytes, above: tuple[IgnoreFile, ...]) -> tuple[IgnoreFile, ...]:
        own = load(folder, os.path.join(folder, self._name), ignore_case=self._ignore_case)
        return above if own is None else (own, *above)


class OwnRules:
    """``.ragpilotignore`` at every level between ``start`` and a path; the root itself is never ignored."""

    def __init__(self, root: bytes, start: bytes, on_folder: Callable[[bytes], None]) -> None:
        self.files = IgnoreRules(start, OWN_IGNORE_FILE)
        self._on_folder = on_folder
        """Called once for each folder that is excluded while its parent is not."""
        self._excluded: dict[bytes, bool] = {root: False}

    def folder_excluded(self, folder: bytes) -> bool:
        """Whether a folder, or one above it, is ignored."""
        for unknown in unknown_above(folder, self._excluded):
            verdict = self._excluded[os.path.dirname(unknown)]
            if not verdict and self.files.ignores(unknown, folder=True):
                verdict = True
                self._on_folder(unknown)
            self._excluded[unknown] = verdict
        return self._excluded[folder]


def unknown_above(folder: bytes, known: Container[bytes]) -> list[bytes]:
    """The folder and those above it up to one that is known, the highest first: trees may be thousands deep.

    Raises ValueError where none is.
    """
    unknown: list[bytes] = []
    while folder not in known:
        unknown.append(folder)
        above = os.path.dirname(folder)
        if above == folder:
            raise ValueError("the folder lies outside of what is walked")
        folder = above
    return unknown[::-1]


def excluded_by_default(folder: bytes) -> bool:
    """Whether a folder outside every repository holds tools' files: version control, dependencies, caches."""
    if _is_tools_name(os.path.basename(folder)):
        return True
    return any(os.path.isfile(os.path.join(folder, mark)) for mark in _MARKS)


def _is_tools_name(name: bytes) -> bool:
    return name in _FOLDERS or name.endswith(_SUFFIXES)
