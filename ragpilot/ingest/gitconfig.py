# File names are bytes here, which pathlib does not know.
# ruff: noqa: PTH111, PTH118, PTH120
"""What git's configuration says of ignore rules, read from its files for where git itself cannot be asked.

Includes count, those on condition of the git folder too; conditions of branches and remotes do not.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ragpilot.ingest.ignore import parse
from ragpilot.ingest.repository import Repository
from ragpilot.ingest.small import read_small

_MOST_BYTES = 1 << 20
_MOST_FILES = 50
"""That are read for one answer, includes among them."""
_SECTION = re.compile(rb'\[\s*([\w.-]+)(?:\s+"((?:[^"\\\n]|\\.)*)")?\s*\]')
_KEY = re.compile(rb"([A-Za-z][\w-]*)[ \t]*(=?)[ \t]*")
_BLANK = re.compile(rb"(?:\s|[#;][^\n]*)+")
_VALUE = re.compile(rb'\\\r?\n|\\[ntb"\\]|"|[#;][^\n]*|\r?\n|[ \t]+|[^\\"#;\s]+|\s')
_ESCAPES = {b"\\n": b"\n", b"\\t": b"\t", b"\\b": b"\b", b'\\"': b'"', b"\\\\": b"\\"}


@dataclass(frozen=True, slots=True)
class GitSettings:
    """What decides over ignore rules beside the ignore files of a work tree."""

    exclude_files: tuple[bytes, ...]
    """The excludes that lie outside the work tree, nearest first: the repository's own, then the user's."""
    ignore_case: bool


def git_settings(repository: Repository | None) -> GitSettings:
    """The settings that hold in a repository; without one those of the user."""
    reader = _Reader(repository)
    core = dict(reader.settings())
    named = core.get(b"core.excludesfile")
    if named is None:
        users = os.fsencode(_own_folder() / "ignore")
    else:
        users = os.path.join(repository.top if repository else os.fsencode(Path.home()), os.path.expanduser(named))
    own = (os.path.join(repository.common, b"info", b"exclude"),) if repository else ()
    return GitSettings((*own, users), _is_true(core.get(b"core.ignorecase", b"false")))


def _own_folder() -> Path:
    """Where the user's configuration of git lies, beside ``~/.gitconfig``."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "git"


class _Reader:
    def __init__(self, repository: Repository | None) -> None:
        self._repository = repository
        self._left = _MOST_FILES

    def settings(self) -> Iterator[tuple[bytes, bytes]]:
        """Names and values; what comes later holds."""
        if not os.environ.get("GIT_CONFIG_NOSYSTEM"):
            yield from self._file(os.fsencode(os.environ.get("GIT_CONFIG_SYSTEM") or "/etc/gitconfig"))
        named = os.environ.get("GIT_CONFIG_GLOBAL")
        users = [named] if named is not None else [str(_own_folder() / "config"), str(Path.home() / ".gitconfig")]
        for file in users:
            yield from self._file(os.fsencode(file))
        if self._repository is not None:
            yield from self._repositorys(self._repository)
        yield from _of_environment()

    def _repositorys(self, repository: Repository) -> Iterator[tuple[bytes, bytes]]:
        by_worktree = False
        for name, value in self._file(os.path.join(repository.common, b"config")):
            by_worktree = _is_true(value) if name == b"extensions.worktreeconfig" else by_worktree
            yield name, value
        if by_worktree:
            yield from self._file(os.path.join(repository.git, b"config.worktree"))

    def _file(self, file: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Those of a file in their order, and those of the files that it includes in their place."""
        if not self._left:
            return
        self._left -= 1
        for name, value in _entries(read_small(file, follow=True, limit=_MOST_BYTES) or b""):
            yield name, value
            if self._includes(name, file):
                yield from self._file(os.path.join(os.path.dirname(file), os.path.expanduser(value)))

    def _includes(self, name: bytes, file: bytes) -> bool:
        """Whether a setting names another file to read: ``include.path``, ``includeif.gitdir:~/work/.path``."""
        if name == b"include.path":
            return True
        kind, _, rest = name.partition(b".")
        condition, _, key = rest.rpartition(b".")
        which, _, pattern = condition.partition(b":")
        if kind != b"includeif" or key != b"path" or which not in (b"gitdir", b"gitdir/i") or not self._repository:
            return False
        pattern = os.path.expanduser(pattern)
        if pattern.startswith(b"./"):
            pattern = os.path.dirname(os.path.realpath(file)) + pattern[1:]
        if not pattern.startswith(b"/"):
            pattern = b"**/" + pattern
        found = parse(b"/", pattern + b"**" if pattern.endswith(b"/") else pattern, ignore_case=which != b"gitdir")
        return found is not None and found.deciding(self._repository.git, folder=True) is not None


def _of_environment() -> Iterator[tuple[bytes, bytes]]:
    """What ``GIT_CONFIG_COUNT`` and the variables that it counts set, up to one that is missing."""
    count = os.environ.get("GIT_CONFIG_COUNT", "")
    if not re.fullmatch("[0-9]{1,3}", count):
        return
    for number in range(int(count)):
        name = os.environ.get(f"GIT_CONFIG_KEY_{number}")
        value = os.environ.get(f"GIT_CONFIG_VALUE_{number}")
        if name is None or value is None:
            return
        yield os.fsencode(name).lower(), os.fsencode(value)


def _is_true(value: bytes) -> bool:
    return value.lower() in (b"true", b"yes", b"on", b"1")


def _entries(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    """``section.sub.name`` and value; sections and names in lower case. Ends where the syntax is broken."""
    at = 3 if content.startswith(b"\xef\xbb\xbf") else 0
    section = b""
    while at < len(content):
        blank = _BLANK.match(content, at)
        if blank:
            at = blank.end()
            continue
        head = _SECTION.match(content, at)
        if head:
            section = head[1].lower() + b"."
            if head[2] is not None:
                section += re.sub(rb"\\(.)", rb"\1", head[2]) + b"."
            at = head.end()
            continue
        key = _KEY.match(content, at)
        if not key or not section:
            return
        at = key.end()
        value: bytes | None = b"true"
        if key[2]:
            value, at = _value(content, at)
        if value is None:
            return
        yield section + key[1].lower(), value


def _value(content: bytes, at: int) -> tuple[bytes | None, int]:
    """The value that begins at a place, and the place behind it; None where its syntax is broken."""
    parts: list[bytes] = []
    blanks = b""
    quoted = False
    while at < len(content):
        found = _VALUE.match(content, at)
        if found is None or (quoted and found[0] in (b"\n", b"\r\n")):
            return None, at
        token = found[0]
        comment = token[:1] in (b"#", b";")
        if not quoted and (comment or token in (b"\n", b"\r\n")):
            break
        if comment:  # within quotes it is none
            token = token[:1]
        at += len(token)
        if token == b'"':
            quoted = not quoted
        elif not quoted and token.isspace():
            blanks += token if parts else b""
        elif token not in (b"\\\n", b"\\\r\n"):
            parts += [blanks, _ESCAPES.get(token, token)]
            blanks = b""
    return (None if quoted else b"".join(parts)), at
