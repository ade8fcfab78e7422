# File names are bytes here, which pathlib does not know.
# ruff: noqa: PTH110, PTH114, PTH118, PTH120
"""A root folder to the files that may be indexed: what git would list, less ``.ragpilotignore``.

In a repository git itself is asked; without git, or where it refuses, the same rules are applied here. Repositories
inside the folder (submodules, clones) are walked by their own rules; a linked worktree is left out where the worktree
it was made from is walked too, since it would say everything twice. Links are never followed: what they lead to
inside the root is listed under its own name, and nothing outside the root is ours. What an index names is not taken on
trust, whoever reads it: only a path that git itself would let in is looked at.
"""

from __future__ import annotations

import os
import stat
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from functools import partial

from ragpilot.ingest.excludes import IgnoreRules, OwnRules, excluded_by_default, unknown_above
from ragpilot.ingest.gitconfig import git_settings
from ragpilot.ingest.gitfiles import git_program, list_files
from ragpilot.ingest.gitindex import DamagedIndexError, tracked_paths
from ragpilot.ingest.gitpaths import is_sound
from ragpilot.ingest.ignore import load
from ragpilot.ingest.opening import LINK_ABOVE
from ragpilot.ingest.paths import shown_path
from ragpilot.ingest.pipes import holds_special_files
from ragpilot.ingest.reasons import Reason
from ragpilot.ingest.repository import Repository, enclosing_repository, main_worktree, repository_at
from ragpilot.ingest.roots import Root
from ragpilot.types import LeftOut

_GIT_IGNORE_FILE = b".gitignore"
_LOG = b".log"
_SHOWN = 100
"""Characters of a path that a note shows."""


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A regular file inside the root."""

    path: str
    """As the index shows it."""
    file: bytes
    """Absolute, as the system wants it."""
    root: bytes
    """The root that it must still lie in when it is opened."""
    mtime_ns: int
    size: int
    ctime_ns: int = 0
    """When the system last noted a change of the file, which nobody can set back; 0: not known."""
    kept_log: bool = False
    """A log that git tracks: somebody wants it there."""
    asked_for: bool = False
    """An ignore file asks for it by name, whatever it is."""


@dataclass(slots=True)
class Listing:
    """What a walk found."""

    files: list[FileEntry] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    unlisted: list[LeftOut] = field(default_factory=list)
    """Folders that could not be looked into: what was indexed from there must not count as gone."""
    notes: list[str] = field(default_factory=list)


def walk(root: Root, *, scope: bytes = b"", skip: Set[bytes] = frozenset(), use_git: bool = True) -> Listing:
    """List the files of ``root``, or of ``scope`` (relative to it), as a walk of the whole root would list them.

    ``skip`` holds absolute folders that are passed over in silence. Never raises for anything that lies in the root.
    """
    return _Walk(root, scope, skip, use_git=use_git).run()


class _Walk:
    def __init__(self, root: Root, scope: bytes, skip: Set[bytes], *, use_git: bool) -> None:
        self._root = os.fsencode(root.folder)
        self._inside = self._root.rstrip(b"/") + b"/"
        self._prefix = root.prefix
        self._scope = scope
        self._skip = skip
        self._git = git_program(outside=self._root) if use_git else None
        self._listing = Listing()
        self._pending: list[tuple[bytes, Repository | None]] = []
        self._real_folders: dict[bytes, bool] = {self._root: True}
        self._kept_logs: set[bytes] = set()
        self._seen: set[bytes] = set()
        repository = enclosing_repository(self._root)
        self._pending.append((self._root, repository))
        start = repository.top if repository else self._root
        self._rules = OwnRules(self._root, start, lambda folder: self._ignore(folder + b"/", ".ragpilotignore"))
        self._git_rules = IgnoreRules(start, _GIT_IGNORE_FILE)
        """Of the repository, or the folder in none, that is being walked."""

    def run(self) -> Listing:
        while self._pending:
            folder, repository = self._pending.pop()
            if repository is None or not self._by_git(folder, repository):
                self._by_hand(folder, repository)
        if self._scope and not self._listing.files and not self._listing.left_out:
            self._explain_scope()
        return self._listing

    def _explain_scope(self) -> None:
        """Nothing was found where the walk was sent to: git passes over what it could never hold."""
        path = self._inside + self._scope
        try:
            mode = os.lstat(path).st_mode
        except OSError:
            return
        if not stat.S_ISDIR(mode) and not stat.S_ISREG(mode) and self._is_real_folder(os.path.dirname(path)):
            self._leave_out(path, Reason.SYMLINK if stat.S_ISLNK(mode) else Reason.SPECIAL)

    # --- by git

    def _by_git(self, folder: bytes, repository: Repository) -> bool:
        waits = partial(holds_special_files, folder, repository)
        listing = list_files(self._git, folder, waits) if self._git else None
        if listing is None:
            return False
        if listing.folder_ignored and folder == self._root:
            self._note_ignored_root()
            self._by_hand(folder, None)
            return True
        self._git_rules = _rules_of(repository, repository.top)
        if any(name.endswith(_LOG) for name in listing.kept):
            self._note_logs(self._tracked(repository, folder))
        for name in self._sound((name.removesuffix(b"/") for name in listing.kept), folder):
            self._entry(os.path.join(folder, name))
        for name in listing.ignored:
            if is_sound(name.removesuffix(b"/")):
                self._ignore(os.path.join(folder, name), "git")
        return True

    # --- by hand

    def _by_hand(self, start: bytes, repository: Repository | None) -> None:
        top = repository.top if repository else start
        self._git_rules = _rules_of(repository, top)
        tracked = self._tracked(repository, start, tell=True)
        if not self._is_ignored(start, top):
            self._descend(start, tracked, in_repository=repository is not None)
        elif not tracked:
            self._note_ignored_root()
            self._by_hand(start, None)
        self._note_logs(tracked)
        for path in tracked:
            self._entry(path)

    def _is_ignored(self, start: bytes, top: bytes) -> bool:
        """Whether ``start``, or a folder between it and a work tree's top, is ignored."""
        folder = top
        for part in start[len(top) :].strip(b"/").split(b"/"):
            folder = os.path.join(folder, part)
            if part and self._git_rules.ignores(folder, folder=True):
                return True
        return False

    def _descend(self, start: bytes, tracked: Sequence[bytes], *, in_repository: bool) -> None:
        stack = [start]
        while stack:
            for path, is_folder in self._scan(stack.pop()):
                if self._git_rules.ignores(path, folder=is_folder):
                    self._ignore(path + b"/" if is_folder else path, "git")
                elif not is_folder or (repository_at(path) is not None and not _any_within(path, tracked)):
                    self._entry(path)
                elif not in_repository and excluded_by_default(path) and not self._is_asked_for(path, folder=True):
                    self._ignore(path + b"/", "default")
                elif self._reaches(path) and not self._is_skipped(path) and not self._rules.folder_excluded(path):
                    stack.append(path)

    def _scan(self, folder: bytes) -> Iterator[tuple[bytes, bool]]:
        try:
            with os.scandir(folder) as entries:
                found = sorted(
                    (entry.path, entry.is_dir(follow_symlinks=False)) for entry in entries if entry.name != b".git"
                )
        except (FileNotFoundError, NotADirectoryError):
            return
        except PermissionError:
            self._leave_out(folder + b"/", Reason.NO_PERMISSION)
            return
        except OSError as error:
            detail = error.strerror or ""
            self._listing.unlisted.append(LeftOut(self._shown(folder + b"/"), Reason.UNREADABLE, detail))
            return
        yield from found

    def _tracked(self, repository: Repository | None, start: bytes, *, tell: bool = False) -> list[bytes]:
        """What is in the index counts even where ignore rules match it. ``tell``: what is wrong with it is noted."""
        if repository is None:
            return []
        try:
            named = tracked_paths(repository)
        except DamagedIndexError as error:
            if tell:
                self._listing.notes.append(
                    f"The git index of {shown_path(repository.top)} {error}: what git tracks is not known, "
                    "and files were listed by the ignore rules alone."
                )
            return []
        sound = self._sound(named, repository.top, tell=tell)
        paths = (os.path.join(repository.top, path) for path in sound)
        return sorted(path for path in paths if path.startswith(start.rstrip(b"/") + b"/"))

    def _sound(self, named: Iterable[bytes], folder: bytes, *, tell: bool = True) -> list[bytes]:
        """Those of the paths below ``folder`` that may be followed; ``tell``: that there are others is noted."""
        paths = list(named)
        sound = [path for path in paths if is_sound(path)]
        if tell and len(sound) < len(paths):
            odd = sorted(shown_path(path) for path in paths if not is_sound(path))
            self._listing.notes.append(
                f"The git index of {shown_path(folder)} names what cannot lie in it, such as {odd[0][:_SHOWN]!r}: "
                f"passed over ({len(odd)})."
            )
        return sound

    def _note_logs(self, tracked: Iterable[bytes]) -> None:
        self._kept_logs.update(path for path in tracked if path.endswith(_LOG))

    # --- both

    def _entry(self, path: bytes) -> None:
        """Take a listed path in, if it is a regular file that really lies here."""
        if not path.startswith(self._inside) or not is_sound(path[len(self._inside) :]):
            return  # whoever listed it: nothing outside, and nothing by another name than its own
        if path in self._seen or not self._reaches(path) or self._is_skipped(path):
            return
        self._seen.add(path)
        folder = os.path.dirname(path)
        if not self._is_real_folder(folder):
            self._leave_out(path, Reason.SYMLINK, LINK_ABOVE)
            return
        try:
            status = os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):  # in git's index, but deleted, or its folder is now a file
            return
        except OSError as error:
            denied = isinstance(error, PermissionError)
            self._leave_out(path, Reason.NO_PERMISSION if denied else Reason.UNREADABLE, error.strerror or "")
            return
        if stat.S_ISDIR(status.st_mode):
            self._nested(path)
        elif not self._in_scope(path) or self._rules.folder_excluded(folder):
            return
        elif self._rules.files.ignores(path, folder=False):
            self._ignore(path, ".ragpilotignore")
        elif stat.S_ISLNK(status.st_mode):
            self._leave_out(path, Reason.SYMLINK, self._destination(path))
        elif not stat.S_ISREG(status.st_mode):
            self._leave_out(path, Reason.SPECIAL)
        else:
            entry = FileEntry(
                path=self._shown(path),
                file=path,
                root=self._root,
                mtime_ns=status.st_mtime_ns,
                size=status.st_size,
                ctime_ns=status.st_ctime_ns,
                kept_log=path in self._kept_logs,
                asked_for=self._is_asked_for(path, folder=False),
            )
            self._listing.files.append(entry)

    def _is_asked_for(self, path: bytes, *, folder: bool) -> bool:
        rules = (self._rules.files, self._git_rules)
        return any(one.asks_for_folder(path) if folder else one.asks_for_file(path) for one in rules)

    def _nested(self, folder: bytes) -> None:
        """A submodule or a clone inside the root: walked by its own rules."""
        repository = repository_at(folder)
        if repository is None or self._is_skipped(folder) or not self._reaches(folder):
            return
        if not self._is_real_folder(folder) or self._rules.folder_excluded(folder):
            return
        main = main_worktree(repository) if repository.linked else None
        if main is not None and (_within(main, self._root) or _within(self._root, main)):
            self._leave_out(folder + b"/", Reason.LINKED_WORKTREE)
            return
        self._pending.append((folder, repository))

    def _is_skipped(self, path: bytes) -> bool:
        return any(_within(path, skipped) for skipped in self._skip)

    def _is_real_folder(self, folder: bytes) -> bool:
        """Whether no part of the way from the root to ``folder`` is a link."""
        for unknown in unknown_above(folder, self._real_folders):
            above = self._real_folders[os.path.dirname(unknown)]
            self._real_folders[unknown] = above and not os.path.islink(unknown)
        return self._real_folders[folder]

    def _destination(self, link: bytes) -> str:
        target = os.path.realpath(link)
        if not os.path.exists(target):
            return "leads nowhere"
        return "leads inside the root" if _within(target, self._root) else "leads outside the root"

    def _in_scope(self, path: bytes) -> bool:
        return not self._scope or _within(path, self._inside + self._scope)

    def _reaches(self, folder: bytes) -> bool:
        """Whether something in scope may lie in ``folder``."""
        return self._in_scope(folder) or _within(self._inside + self._scope, folder)

    def _ignore(self, path: bytes, by: str) -> None:
        self._leave_out(path, Reason.IGNORED, by)

    def _leave_out(self, path: bytes, reason: Reason, detail: str = "") -> None:
        if self._reaches(path.rstrip(b"/")):
            self._listing.left_out.append(LeftOut(self._shown(path), reason, detail))

    def _note_ignored_root(self) -> None:
        self._listing.notes.append(
            f"{shown_path(self._root)} is ignored by the repository around it; it was indexed as a folder of its own."
        )

    def _shown(self, path: bytes) -> str:
        return self._prefix + shown_path(path[len(self._inside) :])


def _rules_of(repository: Repository | None, top: bytes) -> IgnoreRules:
    """Git's ignore rules of a work tree, or of a folder that lies in none."""
    settings = git_settings(repository)
    case = settings.ignore_case
    outer = (load(top, file, follow=True, ignore_case=case) for file in settings.exclude_files)
    return IgnoreRules(top, _GIT_IGNORE_FILE, tuple(found for found in outer if found is not None), ignore_case=case)


def _any_within(folder: bytes, paths: Sequence[bytes]) -> bool:
    """Whether one of the paths, which are sorted, lies in ``folder``."""
    at = bisect_left(paths, folder + b"/")
    return at < len(paths) and paths[at].startswith(folder + b"/")


def _within(path: bytes, folder: bytes) -> bool:
    return path == folder or path.startswith(folder.rstrip(b"/") + b"/")
