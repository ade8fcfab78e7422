"""Which files a run must look at: what was listed against what is known."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ragpilot.errors import RootError
from ragpilot.ingest.grants import Grants
from ragpilot.ingest.manifest import Row
from ragpilot.ingest.prepare import Task, rules_for
from ragpilot.ingest.reasons import Reason
from ragpilot.ingest.roots import Root, Scope, nested_roots
from ragpilot.ingest.walk import FileEntry, Listing, walk
from ragpilot.types import LeftOut

_PASSING = frozenset({Reason.NO_PERMISSION, Reason.VANISHED, Reason.SYMLINK, Reason.SPECIAL})


@dataclass(slots=True)
class Scan:
    """What a run covers, sorted by what is to be done."""

    tasks: list[Task] = field(default_factory=list)
    """Files that are new, changed, or not known well enough; newest first."""
    unchanged: list[Row] = field(default_factory=list)
    """Rows that a stat has confirmed."""
    gone: list[Row] = field(default_factory=list)
    """Rows whose file is not listed any more."""
    left_out: list[LeftOut] = field(default_factory=list)
    """What the walk left out."""
    failed: list[LeftOut] = field(default_factory=list)
    """Folders that could not be listed."""
    notes: list[str] = field(default_factory=list)


def scan(
    scopes: Sequence[Scope],
    roots: Sequence[Root],
    rows: Mapping[str, Row],
    grants: Grants,
    *,
    rules: str,
    state: Path,
    use_git: bool = True,
) -> Scan:
    """Walk every scope and compare. Blocking; raises RootError for a scope that never was there."""
    found = Scan()
    listed: set[str] = set()
    for scope in scopes:
        skip = nested_roots(scope.root, roots) | {os.fsencode(state.resolve())}
        listing = walk(scope.root, scope=scope.relative, skip=skip, use_git=use_git)
        listed.update(entry.path for entry in listing.files)
        _compare(found, listing, scope, rows, grants, rules)
        gone = [row for path, row in rows.items() if path not in listed and covers(scope, path)]
        _sort_gone(found, listing, scope, gone)
    if len(scopes) == len(roots) and not any(scope.relative for scope in scopes):
        # A run over everything: what no root of today covers is from a root of yesterday.
        seen = listed | {row.path for row in found.gone}
        found.gone += [
            row for path, row in rows.items() if not any(covers(s, path) for s in scopes) and path not in seen
        ]
    found.tasks.sort(key=lambda task: (-task.entry.mtime_ns, task.entry.path))
    return found


def covers(scope: Scope, path: str) -> bool:
    """Whether a path of the index lies in a scope."""
    shown = scope.shown
    return not shown or path == shown or path.startswith(shown + "/")


def _compare(found: Scan, listing: Listing, scope: Scope, rows: Mapping[str, Row], grants: Grants, rules: str) -> None:
    for entry in listing.files:
        row = rows.get(entry.path)
        if row is not None and _is_known(row, entry, rules_for(entry, rules)):
            found.unchanged.append(row)
        else:
            found.tasks.append(Task(entry, grants.readers(entry.path), scope.root.commit, row))
    found.left_out += listing.left_out
    found.failed += listing.unlisted
    found.notes += listing.notes


def _is_known(row: Row, entry: FileEntry, rules: str) -> bool:
    as_it_was = row.unchanged(entry.mtime_ns, entry.size, entry.ctime_ns)
    return as_it_was and row.rules == rules and _settled(row)


def _settled(row: Row) -> bool:
    """Whether only the file's content could change the outcome.

    Permissions change without a trace in a stat's time, and a file that something else had taken the place of may be
    back as it was.
    """
    return row.outcome not in _PASSING


def _sort_gone(found: Scan, listing: Listing, scope: Scope, gone: list[Row]) -> None:
    """Take rows as gone, unless it is the looking that failed."""
    unseen = tuple(folder.path for folder in listing.unlisted)
    gone = [row for row in gone if not (unseen and row.path.startswith(unseen))]
    if not scope.relative and gone and not listing.files and not any(scope.root.folder.iterdir()):
        found.notes.append(
            f"{scope.root.folder} is empty, as if it were not mounted: what was indexed from it is kept. "
            "If it is meant to be empty: `ragpilot index --rebuild`."
        )
        return
    if scope.relative and not gone and not listing.files and not _exists(scope):
        raise RootError(f"{scope.root.folder / os.fsdecode(scope.relative)} does not exist.")
    found.gone += gone


def _exists(scope: Scope) -> bool:
    return os.path.lexists(scope.root.folder / os.fsdecode(scope.relative))


def summary(left_out: Iterable[LeftOut]) -> str:
    """``3 binary, 1 empty``; empty where nothing was left out."""
    counted = Counter(item.reason for item in left_out)
    return ", ".join(f"{number} {reason}" for reason, number in counted.most_common())
