"""Who may read a document, and who may hear of its file: the corpus's grants, by its path.

Whatever is in doubt is readable by nobody.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pathspec import PathSpec

from ragpilot.config import CorpusSettings, GrantSettings
from ragpilot.ingest.paths import raw_path
from ragpilot.types import Actor, LeftOut

NOBODY: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Decision:
    """Who may read a document, and by what."""

    readers: frozenset[str]
    grant: int | None
    """Which of the corpus's grants decides, counted from 0; None: none matches, the corpus's own readers count."""
    glob: str | None = None
    """Its glob that matches; None beside a ``grant`` that cannot be parsed."""


@dataclass(frozen=True, slots=True)
class _Grant:
    place: int
    paths: tuple[str, ...]
    spec: PathSpec[Any] | None
    """None: its globs cannot be parsed, so it may have meant any document."""
    readers: frozenset[str]


class Grants:
    """The grants of one corpus. Globs are gitignore's, matched against paths as the index shows them.

    The last grant that matches decides, and the corpus's own readers where none does. A grant that cannot be parsed
    might have matched: what no later grant decides is readable by nobody.
    """

    def __init__(self, corpus: CorpusSettings) -> None:
        self._default = frozenset(corpus.readers)
        grants = [_compiled(place, grant) for place, grant in enumerate(corpus.grants)]
        self._grants = grants[::-1]
        broken = [grant.paths for grant in grants if grant.spec is None]
        self.problems = tuple(f"The grant for {', '.join(map(repr, paths))} cannot be read." for paths in broken)
        """One line for each grant that cannot be parsed."""

    def readers(self, path: str) -> frozenset[str]:
        """The principals that may read the document at ``path``; empty: nobody."""
        return self.decide(path).readers

    def decide(self, path: str) -> Decision:
        """As ``readers``, with what decides it."""
        for grant in self._grants:
            if grant.spec is None:
                return Decision(NOBODY, grant.place)
            matched = _match(grant.spec, path)
            if matched is not None:
                return Decision(grant.readers, grant.place, grant.paths[matched])
        return Decision(self._default, None)

    def unmatched(self, paths: Iterable[str]) -> list[int]:
        """Which of the corpus's grants, counted from 0, match none of ``paths``: they do nothing, and may be slips."""
        left = {grant.place: grant.spec for grant in self._grants if grant.spec is not None}
        for path in paths:
            for place in [place for place, spec in left.items() if _match(spec, path) is not None]:
                del left[place]
            if not left:
                break
        return sorted(left)


class Sight:
    """Which files an actor may hear of: by name, and as one of a number, in whatever is told of an index's making.

    With the permission ``admin`` these are all. Otherwise they are those that the grants let the actor read, were they
    indexed: who may write an index need not be allowed to know what is in it. Without ``grants`` they are none.
    """

    def __init__(self, actor: Actor, grants: Grants | None) -> None:
        self.grants = grants
        self.whole = actor.may("admin")
        """Whether nothing is hidden."""
        self._principals = actor.principals

    def sees(self, path: str) -> bool:
        """Whether the actor may hear of what is at ``path``, a file or a folder.

        A folder goes by the name of a file in it too: grants name files, as ``hr/**`` does, and it gives those away.
        """
        if self.whole or self.grants is None:
            return self.whole
        return all(self.grants.readers(at) & self._principals for at in (path, f"{path.rstrip('/')}/-"))

    def seen(self, items: Iterable[LeftOut]) -> list[LeftOut]:
        """Those of ``items`` that the actor may hear of."""
        return [item for item in items if self.sees(item.path)]


def _compiled(place: int, grant: GrantSettings) -> _Grant:
    paths, readers = tuple(grant.paths), frozenset(grant.readers)
    try:
        if any(not _says_something(glob) for glob in paths):
            return _Grant(place, paths, None, readers)
        return _Grant(place, paths, PathSpec.from_lines("gitignore", paths), readers)
    except (ValueError, re.error):
        return _Grant(place, paths, None, readers)


def _says_something(glob: str) -> bool:
    """Blank globs and comments match nothing in an ignore file; in a grant they are a mistake. So is an open class."""
    text = glob.strip()
    return bool(text.strip("!/")) and not text.startswith("#") and text.count("[") <= text.count("]")


def _match(spec: PathSpec[Any], path: str) -> int | None:
    """Which of the globs makes the path one of the grant's; None where it is none."""
    found = spec.check_file(path)
    if not found.include and "\\" in path:
        # A name with escapes is also matched as it is on disk.
        found = spec.check_file(raw_path(path).decode("utf-8", "surrogateescape"))
    return found.index if found.include else None
