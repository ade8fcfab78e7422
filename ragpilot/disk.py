"""Room on a disk: how much there is, and which errors say that there is none."""

from __future__ import annotations

import errno
import re
import shutil
from pathlib import Path

NEEDED = 64_000_000
"""What must be free for the index to be written."""

_FULL = frozenset({errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)})
_SAID = re.compile(r"no space left on device|quota exceeded|\(os error (?:28|122|112)\)", re.IGNORECASE)
"""How libraries in another language say it: Linux, its quotas, Windows."""
_UNITS = ("bytes", "kB", "MB", "GB", "TB")


def free_bytes(folder: Path) -> int | None:
    """What this user may still write to the disk of ``folder``, or of the nearest folder above it that exists.

    None where that cannot be told: some network and memory file systems give no numbers.
    """
    for existing in (folder, *folder.parents):
        try:
            usage = shutil.disk_usage(existing)
        except FileNotFoundError:
            continue
        except OSError:
            return None
        return usage.free if usage.total else None
    return None


def is_full(error: BaseException) -> bool:
    """Whether ``error`` says that a disk, or what a user may have of it, is full."""
    if isinstance(error, OSError):
        return error.errno in _FULL
    return _SAID.search(str(error)) is not None


def in_words(size: int | None) -> str:
    """A number of bytes for a reader: ``12.3 MB``."""
    if size is None:
        return "an unknown number of bytes"
    value = float(size)
    for unit in _UNITS:
        if value < 1000 or unit == _UNITS[-1]:
            break
        value /= 1000
    return f"{value:.0f} {unit}" if unit == "bytes" or value >= 100 else f"{value:.1f} {unit}"
