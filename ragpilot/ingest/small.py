"""Reading the small files that decide over others: ignore files, what git keeps about a repository."""

from __future__ import annotations

import os
import stat


def read_small(file: bytes, *, follow: bool, limit: int) -> bytes | None:
    """At most ``limit`` bytes of a regular file; None for anything else of that name, and where it cannot be read.

    ``follow``: whether a link is one as well.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        handle = os.open(file, flags if follow else flags | getattr(os, "O_NOFOLLOW", 0))
    except (OSError, ValueError):
        return None
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return None
        with open(handle, "rb", closefd=False) as opened:
            return opened.read(limit)
    except OSError:
        return None
    finally:
        os.close(handle)
