# File names are bytes here, which pathlib does not know.
# ruff: noqa: PTH118
"""The paths that a git index holds, read from its file (git's Documentation/gitformat-index).

An index may be damaged, or made to do harm: nothing is taken from one that does not hold together.
"""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from ragpilot.ingest.repository import Repository
from ragpilot.ingest.small import read_small

_MOST_BYTES = 1 << 30
_LONGEST_PATH = 4096
_HASHES = {20: hashlib.sha1, 32: hashlib.sha256}
"""By the length of what they make."""
_LONG_NAME = 0x0FFF
_FOLDER_TYPE = 0o04
_TYPES = (_FOLDER_TYPE, 0o10, 0o12, 0o16)
"""What an entry may be, by the upper bits of its mode: a folder of a sparse index, a file, a link, a submodule."""
_WORD_BITS = 64


class DamagedIndexError(ValueError):
    """An index that cannot be read; the message says why, to follow "which"."""


@dataclass(frozen=True, slots=True)
class _Entries:
    paths: list[bytes]
    """A path is empty where a split index says that it has changed an entry of the shared one."""
    folders: frozenset[bytes]
    """Those that stand for all of a folder which is not checked out."""
    digest: int
    """The length of a hash."""
    extensions: bytes


def tracked_paths(repository: Repository) -> frozenset[bytes]:
    """Paths in the index, relative to the top, folders of submodules among them; as they stand there, unchecked.

    Raises DamagedIndexError where there is an index that cannot be read.
    """
    file = os.path.join(repository.git, b"index")
    if not os.path.lexists(file):
        return frozenset()
    try:
        return frozenset(_paths(_content(file), repository))
    except (struct.error, IndexError):
        raise DamagedIndexError("is cut short") from None


def _content(file: bytes) -> bytes:
    data = read_small(file, follow=True, limit=_MOST_BYTES)
    if data is None:
        raise DamagedIndexError("cannot be opened")
    return data


def _paths(data: bytes, repository: Repository) -> Iterator[bytes]:
    own = _entries(data)
    shared = b""
    for name, content in _extensions(own.extensions):
        if name == b"link":
            shared = content if any(content[: own.digest]) else b""
        elif name[:1].islower() and name != b"sdir":
            raise DamagedIndexError("has a form that is not known here")
    if b"" in own.paths and not shared:
        raise DamagedIndexError("has an entry without a name")
    yield from (path for path in own.paths if path and path not in own.folders)
    if shared:
        yield from _shared(repository, shared[: own.digest], shared[own.digest :])


def _shared(repository: Repository, name: bytes, bitmaps: bytes) -> Iterator[bytes]:
    """What a split index takes over from the one it shares: all but the entries that it has deleted."""
    entries = _entries(_content(os.path.join(repository.git, b"sharedindex." + name.hex().encode())))
    if b"" in entries.paths:
        raise DamagedIndexError("has an entry without a name")
    deleted = set(_bits(bitmaps, len(entries.paths))) if bitmaps else set()
    taken = (path for at, path in enumerate(entries.paths) if at not in deleted)
    yield from (path for path in taken if path not in entries.folders)


def _entries(data: bytes) -> _Entries:
    """The entries of an index of version 2 to 4, and what stands behind them."""
    if data[:4] != b"DIRC":
        raise DamagedIndexError("is none of git's")
    version, count = struct.unpack_from(">II", data, 4)
    if version not in (2, 3, 4):
        raise DamagedIndexError(f"has version {version}, which is not known here")
    digest = _checked(data, count)
    content = data[: len(data) - digest]
    paths: list[bytes] = []
    folders: set[bytes] = set()
    at, previous = 12, b""
    for _ in range(count):
        name_at = at + 40 + digest + 2
        flags = struct.unpack_from(">H", content, name_at - 2)[0]
        kind = struct.unpack_from(">I", content, at + 24)[0] >> 12
        if flags & 0x4000:
            name_at += 2
        cut = 0
        if version == 4:
            cut, name_at = _varint(content, name_at)
        end = content.find(b"\0", name_at)
        if end < 0 or kind not in _TYPES or cut > len(previous):
            raise DamagedIndexError("has entries that are none")
        path = previous[: len(previous) - cut] + content[name_at:end] if version == 4 else content[name_at:end]
        if len(path) > _LONGEST_PATH or (version < 4 and flags & _LONG_NAME != min(len(path), _LONG_NAME)):
            raise DamagedIndexError("has names of the wrong length")
        at = end + 1 if version == 4 else at + ((end - at + 8) & ~7)
        previous = path
        paths.append(path)
        if kind == _FOLDER_TYPE:
            folders.add(path)
    return _Entries(paths, frozenset(folders), digest, content[at:])


def _checked(data: bytes, count: int) -> int:
    """The length of the hash that an index ends with, and is right about what stands before it.

    Git may be told to write none (``index.skipHash``): then it is zeros, and of the length that makes the first
    entry's flags and name agree.
    """
    for length, make in _HASHES.items():
        if make(data[:-length], usedforsecurity=False).digest() == data[-length:]:
            return length
    length = 20 if count == 0 or _plausible(data, 20) else 32
    if any(data[-length:]):
        raise DamagedIndexError("has a checksum that is wrong")
    return length


def _extensions(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = 0
    while at < len(data):
        size: int = struct.unpack_from(">I", data, at + 4)[0]
        if at + 8 + size > len(data):
            raise DamagedIndexError("is cut short")
        yield data[at : at + 4], data[at + 8 : at + 8 + size]
        at += 8 + size


def _bits(data: bytes, most: int) -> Iterator[int]:
    """The bits, fewer than ``most``, that a bitmap in EWAH form has set: runs of equal words, others behind each."""
    _, count = struct.unpack_from(">II", data)
    words = struct.unpack_from(f">{count}Q", data, 8)
    at, word = 0, 0
    while word < count:
        run, literals = words[word] >> 1 & 0xFFFFFFFF, words[word] >> 33
        if words[word] & 1:
            yield from range(at * _WORD_BITS, min(most, (at + run) * _WORD_BITS))
        at += run
        for literal in words[word + 1 : word + 1 + literals]:
            yield from (at * _WORD_BITS + bit for bit in range(_WORD_BITS) if literal >> bit & 1)
            at += 1
        word += 1 + literals


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
        if value > _LONGEST_PATH:
            raise DamagedIndexError("has names of the wrong length")
    return value, at + 1
