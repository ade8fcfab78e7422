# File names may hold bytes that are no text, and need not exist: pathlib would only be in the way.
# ruff: noqa: PTH119, PTH120
"""What changes of files ask for: whether they count at all, and how narrow a run may be that takes them in.

Pure: paths are absolute texts, and what a walk has seen of the folders comes as a ``Tree``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from dataclasses import dataclass

_RULES = frozenset({".gitignore", ".ragpilotignore", ".git", "pyvenv.cfg", "CACHEDIR.TAG"})
"""Entries whose coming, change or going decides over all that lies in their folder."""


@dataclass(frozen=True, slots=True)
class Tree:
    """Folders and files of a corpus as the last walk saw them."""

    tops: frozenset[str]
    """Where it begins: root folders, or the one folder or file that is watched."""
    folders: frozenset[str]
    """Folders whose entries count; the ignored ones and what lies in them are missing."""
    files: frozenset[str]
    """Files that were listed."""
    ignored: frozenset[str]
    """Files and folders that ignore rules or default excludes leave out."""
    signals: frozenset[str] = frozenset()
    """Files beside the tree that decide over it: git's index and excludes, ignore files above a root."""

    def concerns(self, path: str) -> bool:
        """Whether a change of ``path`` may change what is indexed."""
        if path in self.signals:
            return True
        if not any(_within(path, top) or _within(top, path) for top in self.tops):
            return False
        at = path
        while at not in self.folders:
            above = os.path.dirname(at)
            # Inside ``.git`` nothing is a source; that there is one at all is a rule of its folder.
            if at in self.ignored or above == at or os.path.basename(above) == ".git":
                return False
            at = above
        return True

    def is_known(self, path: str) -> bool:
        """Whether ``path`` was a listed file: a change of it changes neither folders nor rules."""
        return path in self.files and os.path.basename(path) not in _RULES


def place_of(tree: Tree, changes: Collection[str], *, stands: Callable[[str], bool]) -> str | None:
    """The narrowest file or folder that a run must cover to take in ``changes``; None: everything.

    ``stands`` says whether a run can be asked for a path: that it is there, and no link. Where it is not, the folder
    above is covered, from which what is gone is missed.
    """
    if not changes or not tree.signals.isdisjoint(changes):
        return None
    widened = [os.path.dirname(path) if os.path.basename(path) in _RULES else path for path in changes]
    place = os.path.commonpath(widened)
    inside = [top for top in tree.tops if _within(place, top) and place != top]
    while inside and not stands(place):
        place = os.path.dirname(place)
        inside = [top for top in inside if place != top]
    return place if inside else None


def _within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")
