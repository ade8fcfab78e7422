# File names are bytes here, which pathlib does not know.
# ruff: noqa: PTH112, PTH114, PTH118, PTH120
"""A look at a corpus's folders for whoever watches them: what counts, what to listen to, and what decides over it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass, field
from pathlib import Path

from ragpilot.config import CorpusSettings
from ragpilot.ingest.excludes import OWN_IGNORE_FILE
from ragpilot.ingest.paths import raw_path
from ragpilot.ingest.reasons import Reason
from ragpilot.ingest.repository import Repository, enclosing_repository, repository_at
from ragpilot.ingest.roots import Root, Scope, nested_roots, resolve_roots, scopes
from ragpilot.ingest.walk import walk
from ragpilot.ingest.watch import Tree

_LEFT_ALONE = (Reason.IGNORED, Reason.LINKED_WORKTREE)
_LONGEST_PATH = 4_000


@dataclass(frozen=True, slots=True)
class Look:
    """What a look has found."""

    tree: Tree
    beside: frozenset[str]
    """Folders to listen to beside the tree's: git's own, those above a root with ignore files."""
    roots: dict[Path, tuple[int, int]] = field(default_factory=dict)
    """Root -> device and inode."""
    locks: tuple[Path, ...] = ()
    """What git holds while it checks out."""

    def folders_to_watch(self, *, one_by_one: bool) -> list[str]:
        """The folders to name to the system: each by itself, or the highest ones."""
        wanted = sorted(self.tree.folders | self.beside)
        if one_by_one:
            return wanted
        highest: list[str] = []
        for folder in wanted:
            if not (highest and folder.startswith(highest[-1].rstrip("/") + "/")):
                highest.append(folder)
        return highest

    def is_outdated(self) -> bool:
        """Whether a root is gone, or another folder than it was. Blocking."""
        return any(_identity(root) != known for root, known in self.roots.items())

    def is_locked(self) -> bool:
        """Whether git is at work on the files. Blocking."""
        return any(lock.exists() for lock in self.locks)


def look(corpus: CorpusSettings, state: Path, path: Path | None) -> Look:
    """Walk the corpus, or ``path`` in it. Blocking; raises RootError."""
    roots = resolve_roots(corpus, allow_broad=True)
    found = _Found()
    for scope in scopes(roots, path):
        found.add(scope, nested_roots(scope.root, roots) | {os.fsencode(state.resolve())})
    return Look(
        tree=Tree(
            tops=_texts(found.tops),
            folders=_texts(found.folders),
            files=_texts(found.files),
            ignored=_texts(found.ignored),
            signals=_texts(found.signals),
        ),
        beside=frozenset(os.fsdecode(folder) for folder in found.beside if os.path.isdir(folder)),
        roots={root.folder: _identity(root.folder) for root in roots},
        locks=tuple(Path(os.fsdecode(lock)) for lock in found.locks),
    )


def can_be_asked_for(path: str) -> bool:
    """Whether a run can be narrowed to ``path``: it is there, no link, and a text that any client can send."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return len(path) < _LONGEST_PATH and os.path.lexists(path) and not os.path.islink(path)


@dataclass(slots=True)
class _Found:
    tops: set[bytes] = field(default_factory=set)
    folders: set[bytes] = field(default_factory=set)
    files: set[bytes] = field(default_factory=set)
    ignored: set[bytes] = field(default_factory=set)
    signals: set[bytes] = field(default_factory=set)
    beside: set[bytes] = field(default_factory=set)
    locks: set[bytes] = field(default_factory=set)

    def add(self, scope: Scope, skip: Set[bytes]) -> None:
        root = os.fsencode(scope.root.folder)
        top = os.path.join(root, scope.relative) if scope.relative else root
        listing = walk(scope.root, scope=scope.relative, skip=skip)
        self.tops.add(top)
        self.files.update(entry.file for entry in listing.files)
        self.ignored |= skip
        self.ignored.update(_raw(scope.root, item.path) for item in listing.left_out if item.reason in _LEFT_ALONE)
        start = top
        while not os.path.isdir(start) and start != root:
            start = os.path.dirname(start)
        self._above(start)
        for folder in self._descend(start, deep=start == top):
            self.folders.add(folder)

    def _above(self, start: bytes) -> None:
        """The repository around the tree, and the ignore files between its top and ``start``."""
        repository = enclosing_repository(start)
        if repository is None:
            return
        self._repository(repository)
        folder = start
        while folder != repository.top:
            folder = os.path.dirname(folder)
            self.beside.add(folder)
            self.signals |= {os.path.join(folder, name) for name in (b".gitignore", OWN_IGNORE_FILE)}

    def _repository(self, repository: Repository) -> None:
        information = os.path.join(repository.common, b"info")
        self.beside |= {repository.git, information}
        self.signals |= {os.path.join(repository.git, b"index"), os.path.join(information, b"exclude")}
        self.locks.add(os.path.join(repository.git, b"index.lock"))

    def _descend(self, start: bytes, *, deep: bool) -> Iterator[bytes]:
        """The folders from ``start`` on that are no one else's; links are not followed."""
        waiting = [start]
        while waiting:
            folder = waiting.pop()
            try:
                with os.scandir(folder) as entries:
                    found = [entry for entry in entries if entry.name == b".git" or entry.is_dir(follow_symlinks=False)]
            except OSError:  # gone meanwhile, or not ours to read
                continue
            yield folder
            for entry in found:
                if entry.name == b".git":
                    repository = repository_at(folder)
                    if repository is not None:
                        self._repository(repository)
                elif deep and entry.path not in self.ignored:
                    waiting.append(entry.path)


def _raw(root: Root, shown: str) -> bytes:
    return os.path.join(os.fsencode(root.folder), raw_path(shown[len(root.prefix) :].rstrip("/")))


def _texts(names: Iterable[bytes]) -> frozenset[str]:
    return frozenset(map(os.fsdecode, names))


def _identity(folder: Path) -> tuple[int, int]:
    try:
        status = folder.stat()
    except OSError:
        return (0, 0)
    return (status.st_dev, status.st_ino)
