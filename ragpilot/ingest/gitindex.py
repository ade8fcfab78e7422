# File names are bytes here, which pathlib does not know.
# ruff: noqa: PTH118
"""The paths that a git index holds, read from its file (git's Documentation/gitformat-index)."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator

from ragpilot.ingest.repository import Repository
from ragpilot.ingest.small import read_small

_MOST_BYTES = 1 << 30
_ENTRY = struct.Struct(">10I")
_WORD_BITS = 64


def tracked_paths(repository: Repository) -> frozenset[bytes]:
    """Paths in the index, relative to the top, folders of submodules among them. Empty where it cannot be read."""
    data = read_small(os.path.join(repository.git, b"index"), follow=True, limit=_MOST_BYTES) or b""
    try:
        return frozenset(_paths(data, repository))
    except (struct.error, IndexError, ValueError):  # cut short, or a format that is newer than this
        return frozenset()


def _paths(data: bytes, repository: Repository) -> Iterator[bytes]:
    own, behind, digest = _index_entries(data)
    yield from filter(None, own)
    for name, content in _extensions(data[behind : len(data) - digest]):
        if name == b"link" and any(content[:digest]):
            yield from _shared(repository, content[:digest], content[digest:])


def _shared(repository: Repository, name: bytes, bitmaps: bytes) -> Iterator[bytes]:
    """What a split index takes over from the one it shares: all but the entries that it has deleted."""
    file = os.path.join(repository.git, b"sharedindex." + name.hex().encode())
    data = read_small(file, follow=True, limit=_MOST_BYTES) or b""
    paths, _, _ = _index_entries(data)
    deleted = set(_bits(bitmaps)) if bitmaps else set()
    yield from (path for at, path in enumerate(paths) if at not in deleted)


def _index_entries(data: bytes) -> tuple[list[bytes], int, int]:
    """The entries' paths, where they end, and the length of a hash; versions 2 to 4.

    A path is empty where a split index says that it has changed an entry of the shared one.
    """
    if data[:4] != b"DIRC":
        return [], len(data), 0
    version, count = struct.unpack_from(">II", data, 4)
    if version not in (2, 3, 4):
        return [], len(data), 0
    paths: list[bytes] = []
    at, previous = 12, b""
    # Hashes are 20 or 32 bytes long; only the right length makes the first entry's flags and name agree.
    digest = 20 if count == 0 or _plausible(data, 20) else 32
    for _ in range(count):
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
        paths.append(path)
    return paths, at, digest


def _extensions(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = 0
    while at + 8 <= len(data):
        size: int = struct.unpack_from(">I", data, at + 4)[0]
        yield data[at : at + 4], data[at + 8 : at + 8 + size]
        at += 8 + size


def _bits(data: bytes) -> Iterator[int]:
    """The bits that a bitmap in EWAH form has set: runs of equal words, each with words of its own behind it."""
    _, count = struct.unpack_from(">II", data)
    words = struct.unpack_from(f">{count}Q", data, 8)
    at, word = 0, 0
    while word < count:
        run, literals = words[word] >> 1 & 0xFFFFFFFF, words[word] >> 33
        if words[word] & 1:
            yield from range(at * _WORD_BITS, (at + run) * _WORD_BITS)
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
    return value, at + 1
