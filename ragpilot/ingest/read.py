"""A file from disk: its bytes within limits, its identity, and its text."""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass

from ragpilot.ingest.encodings import HEAD, decode, is_binary
from ragpilot.ingest.opening import LINK_ABOVE, LinkedFolderError, open_inside
from ragpilot.ingest.reasons import Reason

_HASH_BYTES = 16


@dataclass(frozen=True, slots=True)
class RawFile:
    """All bytes of a file that may be text, and what tells whether it has changed."""

    data: bytes
    content_hash: str
    mtime_ns: int
    size: int


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a file is not read any further."""

    reason: Reason
    detail: str = ""


def read_file(file: bytes, *, inside: bytes, max_bytes: int) -> RawFile | Refusal:
    """Read a regular file of at most ``max_bytes``. What is binary or too large is told from its first bytes.

    A link, a pipe or a device that has taken the file's place, or the place of a folder between ``inside`` and it, is
    refused without being followed or waited for. Raises OSError for anything else that the system reports.

    Args:
        file: Its absolute path.
        inside: The folder that it must really lie in, absolute; what is above that may be links.
        max_bytes: The most that is read.
    """
    try:
        handle = open_inside(inside, file)
    except LinkedFolderError:
        return Refusal(Reason.SYMLINK, LINK_ABOVE)
    except (FileNotFoundError, NotADirectoryError):
        return Refusal(Reason.VANISHED)
    except PermissionError:
        return Refusal(Reason.NO_PERMISSION)
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode):
        os.close(handle)
        return Refusal(Reason.SPECIAL)
    with os.fdopen(handle, "rb", buffering=0) as opened:
        head = opened.read(HEAD)
        if is_binary(head):
            return Refusal(Reason.BINARY)
        if status.st_size > max_bytes:
            return Refusal(Reason.TOO_LARGE, f"{status.st_size} bytes, limit {max_bytes}")
        parts = [head]
        total = len(head)
        # Never more than the limit, however fast something appends.
        while total <= max_bytes and (part := opened.read(min(1 << 20, max_bytes + 1 - total))):
            parts.append(part)
            total += len(part)
    if total > max_bytes:
        return Refusal(Reason.TOO_LARGE, f"grew past the limit of {max_bytes} bytes")
    data = b"".join(parts)
    if not data.strip():
        return Refusal(Reason.EMPTY)
    return RawFile(data, content_hash(data), status.st_mtime_ns, len(data))


def content_hash(data: bytes) -> str:
    """The identity of a file's bytes, in hexadecimal."""
    return hashlib.blake2b(data, digest_size=_HASH_BYTES).hexdigest()


def text_of(raw: RawFile) -> str | Refusal:
    """The file's text, as ``encodings.decode`` makes it."""
    decoded = decode(raw.data)
    if decoded is None:
        return Refusal(Reason.BINARY)
    text = decoded[0]
    return text if text.strip() else Refusal(Reason.EMPTY)
