# File names are bytes here, which pathlib does not know.
# ruff: noqa: PTH111, PTH112, PTH113, PTH118, PTH119, PTH120
"""What a git repository says of itself, read from its files: where it lies, its commit, its index, its excludes.

Works without git, and runs nothing that a repository brings along.
"""

from __future__ import annotations

import os
import re
import struct
from dataclasses import dataclass
from pathlib import Path

from ragpilot.ingest.small import read_small

_SMALL = 65_536
_HASH = re.compile(rb"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_ENTRY = struct.Struct(">10I")
_MODE_LINK_TO_COMMIT = 0o160000


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


def exclude_files(repository: Repository | None) -> list[bytes]:
    """The excludes that lie outside the work tree, nearest first: the repository's own, then the user's."""
    own = [os.path.join(repository.common, b"info", b"exclude")] if repository else []
    return [*own, _user_excludes(repository)]


def tracked_paths(repository: Repository) -> frozenset[bytes]:
    """Paths in the index, relative to the top; submodules are left out. Empty where it cannot be read."""
    data = _read(os.path.join(repository.git, b"index"), limit=1 << 30)
    if data is None or data[:4] != b"DIRC" or len(data) < 12:
        return frozenset()
    try:
        return frozenset(_index_entries(data))
    except (struct.error, IndexError, ValueError):  # cut short, or a format that is newer than this
        return frozenset()


def _index_entries(data: bytes) -> list[bytes]:
    """The entries of an index, versions 2 to 4 (git's Documentation/gitformat-index)."""
    version, count = struct.unpack_from(">II", data, 4)
    if version not in (2, 3, 4):
        return []
    paths: list[bytes] = []
    at, previous = 12, b""
    # Hashes are 20 or 32 bytes long; only the right length makes the first entry's flags and name agree.
    digest = 20 if count == 0 or _plausible(data, 20) else 32
    for _ in range(count):
        mode = _ENTRY.unpack_from(data, at)[6]
        name_at = at + 40 + digest + 2
        flags = struct.unpack_from(">H", data, name_at - 2)[0]
        if flags & 0x4000:
            name_at += 2
        if version == 4:
            cut, name_at = _varint(data, name_at)
            end = data.index(b"\0", name_at)
            path = previous[: len(previous) - cut] + data[name_at:end]
            at, previous = end + 1, path
        else:
            end = data.index(b"\0", name_at)
            path = data[name_at:end]
            at += (end - at + 8) & ~7
        if path and mode != _MODE_LINK_TO_COMMIT:
            paths.append(path)
    return paths


def _plausible(data: bytes, digest: int) -> bool:
    flags_at = 12 + 40 + digest
    version: int = struct.unpack_from(">I", data, 4)[0]
    flags: int = struct.unpack_from(">H", data, flags_at)[0]
    name_at = flags_at + (4 if flags & 0x4000 else 2) + (version == 4)
    return flags & 0x0FFF in (0x0FFF, data.find(b"\0", name_at) - name_at)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    byte = data[at]
    value = byte & 0x7F
    while byte & 0x80:
        at += 1
        byte = data[at]
        value = ((value + 1) << 7) | (byte & 0x7F)
    return value, at + 1


def _user_excludes(repository: Repository | None) -> bytes:
    """``core.excludesFile`` of the repository or the user, else git's default place; includes do not count."""
    home = Path.home()
    settings = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config") / "git"
    named = os.environ.get("GIT_CONFIG_GLOBAL")
    users = [named] if named is not None else [str(home / ".gitconfig"), str(settings / "config")]
    system = [] if os.environ.get("GIT_CONFIG_NOSYSTEM") else [os.environ.get("GIT_CONFIG_SYSTEM") or "/etc/gitconfig"]
    configs = [os.path.join(repository.common, b"config")] if repository else []
    for config in (*configs, *map(os.fsencode, (*users, *system))):
        value = _excludes_setting(_read(config) or b"")
        if value is not None:
            return os.path.join(os.fsencode(home), os.path.expanduser(value))
    return os.fsencode(settings / "ignore")


def _excludes_setting(config: bytes) -> bytes | None:
    section, found = b"", None
    for line in config.splitlines():
        text = line.strip()
        if text.startswith(b"["):
            section = text.lower().split(b"]")[0].strip(b"[ ")
        elif section == b"core":
            name, _, value = text.partition(b"=")
            if name.strip().lower() == b"excludesfile":
                found = value.strip().strip(b'"').replace(b"\\\\", b"\\")
    return found


def _hash(content: bytes) -> str | None:
    text = content.strip()
    return text.decode("ascii") if _HASH.fullmatch(text) else None


def _read(path: bytes, *, limit: int = _SMALL) -> bytes | None:
    return read_small(path, follow=True, limit=limit)
