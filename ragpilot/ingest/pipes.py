# File names are bytes here, which pathlib does not know.
# ruff: noqa: PTH110, PTH120
"""Pipes, sockets and devices in a work tree: git opens what has the name of its own files, and waits for them."""

from __future__ import annotations

import os

from ragpilot.ingest.repository import Repository


def holds_special_files(folder: bytes, repository: Repository) -> bool:
    """Whether one lies in ``folder``, in the git folders of its repository, or beside an ignore file above it.

    Any name counts: git's configuration may name any file as one to be read.
    """
    at = folder
    while at not in (repository.top, os.path.dirname(at)):
        at = os.path.dirname(at)
        if any(_special(entry) for entry in _entries(at)):
            return True
    waiting = [folder, repository.git, repository.common]
    while waiting:
        for entry in _entries(waiting.pop()):
            if _special(entry):
                return True
            if entry.is_dir(follow_symlinks=False):
                waiting.append(entry.path)
    return False


def _entries(folder: bytes) -> list[os.DirEntry[bytes]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:  # gone meanwhile, or not ours to read: git is no better off
        return []


def _special(entry: os.DirEntry[bytes]) -> bool:
    """Whether an entry is neither a file nor a folder nor a link; a link to such a thing counts with git's own."""
    if entry.is_symlink():
        return b"/.git" in entry.path and os.path.exists(entry.path) and not (entry.is_file() or entry.is_dir())
    return not (entry.is_file(follow_symlinks=False) or entry.is_dir(follow_symlinks=False))
