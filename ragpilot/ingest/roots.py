"""A corpus's root folders, and the way from a path in the index to the file on this machine."""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ragpilot.config import CorpusSettings
from ragpilot.errors import RootError
from ragpilot.ingest.paths import raw_path, shown_path
from ragpilot.ingest.repository import enclosing_repository, head_commit


@dataclass(frozen=True, slots=True)
class Root:
    """A folder of a corpus, resolved. ``prefix`` stands before its paths: empty for the only one, else ``name/``."""

    folder: Path
    prefix: str = ""
    commit: str | None = None
    """What its repository has checked out."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What a run covers of one root: everything (``b""``), or a folder or file given relative to it."""

    root: Root
    relative: bytes

    @property
    def shown(self) -> str:
        """The scope's path in the index, without a slash at its end; empty for all of an only root."""
        return (self.root.prefix + shown_path(self.relative)).rstrip("/")


def resolve_roots(corpus: CorpusSettings, *, allow_broad: bool = False) -> tuple[Root, ...]:
    """The corpus's roots, resolved, each once, with names to tell them apart where there are several.

    Raises RootError for one that is missing or no folder, and, without ``allow_broad``, for the home folder and
    whatever holds it.
    """
    folders = list(dict.fromkeys(_folder(text, allow_broad=allow_broad) for text in corpus.roots))
    if len(folders) == 1:
        return (Root(folders[0], "", commit_of(folders[0])),)
    names = _names(folders)
    return tuple(Root(folder, name + "/", commit_of(folder)) for folder, name in zip(folders, names, strict=True))


def known_roots(corpus: CorpusSettings) -> tuple[Root, ...]:
    """Like ``resolve_roots`` for looking files up: nothing is checked, and a missing root holds nothing."""
    folders = list(dict.fromkeys(Path(os.path.realpath(text)) for text in corpus.roots))
    names = [""] if len(folders) == 1 else [name + "/" for name in _names(folders)]
    return tuple(Root(folder, name) for folder, name in zip(folders, names, strict=True))


def scopes(roots: Sequence[Root], path: Path | None) -> tuple[Scope, ...]:
    """What a run over ``path`` covers; None: all roots whole. Raises RootError for a path outside all of them."""
    if path is None:
        return tuple(Scope(root, b"") for root in roots)
    # The last part is not resolved at first: a link is left out by name, not indexed under the name it leads to.
    given = Path(os.path.realpath(path.parent)) / path.name if path.name not in ("", "..") else path.resolve()
    holders = [root for root in roots if given.is_relative_to(root.folder)]
    if not holders:
        given = path.resolve()
        holders = [root for root in roots if given.is_relative_to(root.folder)]
    if not holders:
        listed = ", ".join(str(root.folder) for root in roots)
        raise RootError(f"{path} lies outside the corpus.", hint=f"Its roots: {listed}.")
    root = max(holders, key=lambda holder: len(holder.folder.parts))
    relative = given.relative_to(root.folder).as_posix()
    inner = (Scope(other, b"") for other in roots if other is not root and other.folder.is_relative_to(given))
    return (Scope(root, b"" if relative == "." else os.fsencode(relative)), *inner)


def nested_roots(root: Root, roots: Sequence[Root]) -> frozenset[bytes]:
    """Roots that lie inside ``root``: their files are theirs alone, so a walk of ``root`` passes over them."""
    inner = (other.folder for other in roots if other is not root and other.folder.is_relative_to(root.folder))
    return frozenset(os.fsencode(folder) for folder in inner)


def place_of(roots: Sequence[Root], path: str) -> Path | None:
    """Where the file of a path in the index lies, or lay; None where its root is not on this machine."""
    for root in roots:
        if path.startswith(root.prefix):
            file = root.folder / os.fsdecode(raw_path(path[len(root.prefix) :]))
            inside = file.is_relative_to(root.folder) and ".." not in file.parts
            return file if inside and root.folder.is_dir() else None
    return None


def locate(roots: Sequence[Root], path: str) -> Path | None:
    """The regular file that a path in the index stands for; None where it is gone or reached through a link."""
    file = place_of(roots, path)
    try:
        if file and os.path.realpath(file) == os.fspath(file) and stat.S_ISREG(file.lstat().st_mode):
            return file
    except (OSError, ValueError):  # gone meanwhile, or no name that the system can hold
        return None
    return None


def commit_of(folder: Path) -> str | None:
    """The commit checked out in the repository around ``folder``, if there is one."""
    repository = enclosing_repository(os.fsencode(folder))
    return head_commit(repository) if repository else None


def _folder(text: str, *, allow_broad: bool) -> Path:
    try:
        folder = Path(text).expanduser().resolve()
        is_folder, exists = folder.is_dir(), folder.exists()
    except (OSError, RuntimeError, ValueError) as error:
        raise RootError(f"The root {text!r} cannot be resolved: {error}.") from None
    if not exists:
        raise RootError(f"The root {folder} does not exist.", hint="Correct `roots` of the corpus, or create it.")
    if not is_folder:
        raise RootError(f"The root {folder} is no folder.", hint=f"Name the folder that holds it: {folder.parent}")
    if not os.access(folder, os.R_OK | os.X_OK):
        raise RootError(f"The root {folder} may not be read by this user.")
    if not allow_broad and _is_broad(folder):
        raise RootError(
            f"{folder} is a home folder, or holds one: too much to index by accident.",
            hint="Name a project's folder, or say --yes.",
        )
    return folder


def _is_broad(folder: Path) -> bool:
    try:
        home = Path.home().resolve()
    except (OSError, RuntimeError):
        home = Path(folder.anchor)
    return folder == Path(folder.anchor) or home.is_relative_to(folder)


def _names(folders: Sequence[Path]) -> list[str]:
    """A printable name for each root: its own, its parent's before it where two share one, else a number behind."""
    own = [shown_path(os.fsencode(folder.name)) or "root" for folder in folders]
    parents = [shown_path(os.fsencode(folder.parent.name)) for folder in folders]
    counted = Counter(own)
    names = [
        f"{parent}-{name}" if counted[name] > 1 and parent else name for name, parent in zip(own, parents, strict=True)
    ]
    unique: list[str] = []
    for name in names:
        number = 1
        while (numbered := name if number == 1 else f"{name}-{number}") in unique:
            number += 1
        unique.append(numbered)
    return unique
