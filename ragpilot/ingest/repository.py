# File names are bytes here, which pathlib does not know.
# ruff: noqa: PTH112, PTH113, PTH118, PTH119, PTH120
"""What a git repository says of itself, read from its files: where it lies, its commit.

Works without git, and runs nothing that a repository brings along.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from ragpilot.ingest.small import read_small

_SMALL = 65_536
_HASH = re.compile(rb"[0-9a-f]{40}(?:[0-9a-f]{24})?")


@dataclass(frozen=True, slots=True)
class Repository:
    """A work tree and its git folders, all absolute. ``common`` differs from ``git`` in a linked worktree."""

    top: bytes
    git: bytes
    common: bytes

    @property
    def linked(self) -> bool:
        """Whether this is a worktree that ``git worktree add`` made."""
        return self.git != self.common


def repository_at(folder: bytes) -> Repository | None:
    """The repository whose work tree's top is ``folder``; None where its ``.git`` is missing or leads nowhere."""
    place = os.path.join(folder, b".git")
    if os.path.isdir(place):
        git = place
    else:
        content = _read(place)
        if content is None or not content.startswith(b"gitdir:"):
            return None
        git = os.path.normpath(os.path.join(folder, content[7:].strip(b" \r\n")))
    git = os.path.realpath(git)
    if not os.path.isfile(os.path.join(git, b"HEAD")):
        return None
    pointer = _read(os.path.join(git, b"commondir"))
    common = os.path.realpath(os.path.join(git, pointer.strip())) if pointer else git
    if not os.path.isdir(os.path.join(common, b"objects")):
        return None
    return Repository(folder, git, common)


def enclosing_repository(folder: bytes) -> Repository | None:
    """The repository that ``folder`` lies in, ``folder`` itself first."""
    at = folder
    while True:
        found = repository_at(at)
        if found is not None:
            return found
        parent = os.path.dirname(at)
        if parent == at:
            return None
        at = parent


def main_worktree(repository: Repository) -> bytes | None:
    """The top of the worktree that the repository was made with; None for a bare one."""
    if os.path.basename(repository.common) != b".git":
        return None
    config = _read(os.path.join(repository.common, b"config")) or b""
    if re.search(rb"^\s*bare\s*=\s*true\s*$", config, re.MULTILINE | re.IGNORECASE):
        return None
    return os.path.dirname(repository.common)


def head_commit(repository: Repository) -> str | None:
    """The commit that is checked out; None on a branch without one, or where refs are kept in another format."""
    head = _read(os.path.join(repository.git, b"HEAD")) or b""
    if not head.startswith(b"ref:"):
        return _hash(head)
    name = head[4:].strip()
    if not name.startswith(b"refs/") or b".." in name:
        return None
    for folder in (repository.git, repository.common):
        loose = _read(os.path.join(folder, name))
        if loose is not None:
            return _hash(loose)
    packed = _read(os.path.join(repository.common, b"packed-refs"), limit=1 << 26) or b""
    found = re.search(rb"^([0-9a-f]{40,64}) " + re.escape(name) + rb"$", packed, re.MULTILINE)
    return found[1].decode("ascii") if found else None


def _hash(content: bytes) -> str | None:
    text = content.strip()
    return text.decode("ascii") if _HASH.fullmatch(text) else None


def _read(path: bytes, *, limit: int = _SMALL) -> bytes | None:
    return read_small(path, follow=True, limit=limit)
