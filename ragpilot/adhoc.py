"""Corpora made by `ragpilot index FOLDER`: no file names them, their state folder remembers what they are.

The state folder is the one that a command started in FOLDER would use, so that asking there finds them; and since
each has a name of its own, `ragpilot ask --corpus NAME` finds them from anywhere.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path, PurePath

from ragpilot.config import CorpusSettings, Environment
from ragpilot.errors import StateError
from ragpilot.files import private_folder, read_private, write_private
from ragpilot.runtime import owner

MARKER = "corpus.json"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True, slots=True)
class AdHoc:
    """A corpus that no configuration lists: its name, its one root, and where its state lies."""

    name: str
    folder: str
    state: Path


@dataclass(frozen=True, slots=True)
class Part:
    """A corpus, and the path in it that a run is narrowed to; None: all of it."""

    corpus: CorpusSettings
    path: Path | None


def locate(environment: Environment, path: Path) -> Part | None:
    """The corpus of ``environment`` that ``path`` (resolved) lies in, by its innermost root; None outside all."""
    depths = {
        (len(PurePath(root).parts), root): corpus
        for corpus in reversed(environment.settings.corpora)
        for root in corpus.roots
        if path.is_relative_to(root)
    }
    if not depths:
        return None
    innermost = max(depths)
    corpus = depths[innermost]
    whole = len(corpus.roots) == 1 and path == Path(innermost[1])
    return Part(corpus, None if whole else path)


def remembered(state: Path) -> AdHoc | None:
    """What a state folder remembers of its ad-hoc corpus; None where it is none's, or what it says is damaged."""
    try:
        data = json.loads(read_private(state / MARKER) or b"{}")
    except (StateError, ValueError):
        return None
    name, folder = (data.get("name"), data.get("folder")) if isinstance(data, dict) else (None, None)
    if not isinstance(name, str) or not isinstance(folder, str) or not _NAME.fullmatch(name):
        return None
    return AdHoc(name, folder, state)


def known(home: Path) -> list[AdHoc]:
    """All ad-hoc corpora of this user whose folder is still there, by name."""
    try:
        states = [entry for entry in home.iterdir() if entry.is_dir()]
    except OSError:
        return []
    found = [corpus for corpus in map(remembered, states) if corpus is not None and Path(corpus.folder).is_dir()]
    return sorted(found, key=lambda corpus: corpus.name)


def environment_of(corpus: AdHoc, environment: Environment) -> Environment:
    """The settings in force, but for the corpora: this one is the only one."""
    only = CorpusSettings(name=corpus.name, roots=[corpus.folder])
    settings = environment.settings.model_copy(update={"corpora": [only]})
    return environment.model_copy(
        update={"settings": settings, "state": corpus.state, "directory": Path(corpus.folder)}
    )


def choose(folder: Path, state: Path, taken: set[str]) -> AdHoc:
    """The ad-hoc corpus of ``folder``: the one that is remembered, else one named after the folder."""
    if (existing := remembered(state)) is not None:
        return existing
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", folder.name).strip(".-_")[:50] or "root"
    lowered = {other.casefold() for other in taken}
    candidates = [name, *(f"{name}-{number}" for number in range(2, len(taken) + 3))]
    return AdHoc(next(name for name in candidates if name.casefold() not in lowered), os.fspath(folder), state)


def remember(corpus: AdHoc) -> None:
    """Write down what the corpus is, in its state folder. Raises StateError."""
    private_folder(corpus.state)
    write_private(corpus.state / MARKER, json.dumps({"name": corpus.name, "folder": corpus.folder}).encode())


def forget(corpus: AdHoc) -> None:
    """Remove what a first run that came to nothing has left in the corpus's state folder, unless somebody is in it.

    What cannot be removed stays: it is not remembered as a corpus.
    """
    with contextlib.suppress(OSError):
        (corpus.state / MARKER).unlink(missing_ok=True)
    with contextlib.suppress(StateError):
        if owner(corpus.state) is None:
            shutil.rmtree(corpus.state, ignore_errors=True)
