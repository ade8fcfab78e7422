"""Which ``config.toml`` of a working folder may set everything: those whose exact bytes ``ragpilot trust`` recorded.

Such a file may have come with a repository that someone cloned. Until it is trusted it may tune retrieval and
prompt and name corpora inside its own folder; nothing in it is expanded, and nothing of it reaches a service.
A change that RagPilot itself writes into a trusted file, because its user said so, keeps it trusted.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePath
from typing import Any

from ragpilot.config import Settings
from ragpilot.config_file import ConfigFile, KeyPath
from ragpilot.config_words import dotted
from ragpilot.errors import StateError, UntrustedConfigError
from ragpilot.files import read_private, write_private

FREE_SECTIONS = frozenset({"schema", "retrieval", "prompt"})
RECORDS = "trusted.json"


@dataclass(frozen=True, slots=True)
class Wish:
    """Something that only a trusted file may set."""

    key: KeyPath
    why: str = ""

    def __str__(self) -> str:
        return dotted(self.key) + (f" ({self.why})" if self.why else "")


def wishes(file: ConfigFile, settings: Settings) -> list[Wish]:
    """What ``file`` sets beyond what a file of its kind may; ``settings`` are its own, already validated."""
    found = []
    standard = Settings()
    for name, table in file.data.items():
        if name in FREE_SECTIONS:
            continue
        if name == "corpora":
            found += _outside_roots(file.path.parent, settings)
        elif isinstance(table, Mapping):
            ours, theirs = getattr(standard, name), getattr(settings, name)
            found += [Wish((name, key)) for key in table if getattr(ours, key) != getattr(theirs, key)]
        elif getattr(standard, name) != getattr(settings, name):
            found.append(Wish((name,)))
    return found


def refuse(file: ConfigFile, found: list[Wish]) -> UntrustedConfigError:
    """The error that names every key and what to do."""
    named = ", ".join(f"{wish} at line {line}" if (line := file.line(wish.key)) else str(wish) for wish in found)
    return UntrustedConfigError(
        f"{file.path} was found in the working folder and is not trusted. It may set only [retrieval], [prompt] and "
        f"corpora inside its folder, but it also sets: {named}.",
        hint="Read it. If you want what it says, run `ragpilot trust` there; else remove those keys.",
    )


def is_trusted(home: Path, file: ConfigFile) -> bool:
    """Whether these very bytes at this very path were trusted."""
    record = _records(home).get(_key(file.path))
    recorded = record.get("sha256") if isinstance(record, dict) else None
    return isinstance(recorded, str) and hmac.compare_digest(recorded.encode(), _digest(file).encode())


def record(home: Path, file: ConfigFile) -> str:
    """Trust these very bytes at this very path; gives their SHA-256. Raises StateError."""
    digest = _digest(file)
    entry = {"sha256": digest, "trusted": datetime.now(UTC).isoformat(timespec="seconds")}
    content = json.dumps({**_records(home), _key(file.path): entry}, indent=2, sort_keys=True)
    write_private(home / RECORDS, content.encode())
    return digest


def _outside_roots(folder: Path, settings: Settings) -> list[Wish]:
    found = []
    inside = os.path.realpath(folder)
    for place, corpus in enumerate(settings.corpora):
        for number, root in enumerate(corpus.roots):
            key = ("corpora", place, "roots", number)
            if PurePath(root).is_absolute() or PurePath(root).drive:
                found.append(Wish(key, "an absolute path"))
            elif ".." in PurePath(root).parts:
                found.append(Wish(key, "a path with '..'"))
            elif not PurePath(os.path.realpath(folder / root)).is_relative_to(inside):
                found.append(Wish(key, "a link that leaves the folder"))
    return found


def _records(home: Path) -> dict[str, Any]:
    """What was trusted so far; a record that is damaged or that another may have written trusts nothing."""
    try:
        records = json.loads(read_private(home / RECORDS, limit=10_000_000) or b"{}")
    except (StateError, ValueError):
        return {}
    return records if isinstance(records, dict) else {}


def _key(path: Path) -> str:
    return os.path.realpath(path)


def _digest(file: ConfigFile) -> str:
    return hashlib.sha256(file.content).hexdigest()
