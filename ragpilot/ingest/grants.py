"""Who may read a document: the corpus's grants, by its path. Whatever is in doubt is readable by nobody."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from pathspec import PathSpec

from ragpilot.config import CorpusSettings, GrantSettings
from ragpilot.ingest.paths import raw_path

NOBODY: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class _Grant:
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
        self._grants = [_compiled(grant) for grant in reversed(corpus.grants)]
        broken = [grant.paths for grant in corpus.grants if _compiled(grant).spec is None]
        self.problems = tuple(f"The grant for {', '.join(map(repr, paths))} cannot be read." for paths in broken)
        """One line for each grant that cannot be parsed."""

    def readers(self, path: str) -> frozenset[str]:
        """The principals that may read the document at ``path``; empty: nobody."""
        for grant in self._grants:
            if grant.spec is None:
                return NOBODY
            if _matches(grant.spec, path):
                return grant.readers
        return self._default


def _compiled(grant: GrantSettings) -> _Grant:
    readers = frozenset(grant.readers)
    try:
        if any(not _says_something(glob) for glob in grant.paths):
            return _Grant(None, readers)
        return _Grant(PathSpec.from_lines("gitignore", grant.paths), readers)
    except (ValueError, re.error):
        return _Grant(None, readers)


def _says_something(glob: str) -> bool:
    """Blank globs and comments match nothing in an ignore file; in a grant they are a mistake. So is an open class."""
    text = glob.strip()
    return bool(text.strip("!/")) and not text.startswith("#") and text.count("[") <= text.count("]")


def _matches(spec: PathSpec[Any], path: str) -> bool:
    if spec.match_file(path):
        return True
    if "\\" not in path:
        return False
    # A name with escapes is also matched as it is on disk.
    return spec.match_file(raw_path(path).decode("utf-8", "surrogateescape"))
