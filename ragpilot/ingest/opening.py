# File names are bytes here, which pathlib does not know.
# ruff: noqa: PTH118
"""Opening a file below a folder so that no link on the way is followed, whatever is swapped meanwhile.

That a path held no link when it was looked at says nothing of the moment at which it is opened. So every folder is
opened from the one above it, and none of them may be a link.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import Final

LINK_ABOVE: Final = "a folder above it is a link"

_FILE: Final = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
# O_PATH: a folder that may be entered and not listed has files that can be opened all the same.
_START: Final = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0)
_FOLDER: Final = _START | getattr(os, "O_NOFOLLOW", 0)
_BY_FOLDERS: Final = os.open in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW") and hasattr(os, "O_DIRECTORY")


class LinkedFolderError(OSError):
    """A folder on the way to a file is a link."""


def open_inside(folder: bytes, file: bytes) -> int:
    """A descriptor of ``file``, to be read, which lies below ``folder``; both absolute. The caller closes it.

    Raises LinkedFolderError, and OSError as ``os.open`` does: also where the file itself is a link.
    """
    above = folder.rstrip(b"/") + b"/"
    parts = file.removeprefix(above).split(b"/")
    if not file.startswith(above) or b".." in parts:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), file)
    if not _BY_FOLDERS:
        return _open_and_compare(folder, file)
    here = os.open(above, _START)
    try:
        for part in parts[:-1]:
            below = _enter(here, part)
            os.close(here)
            here = below
        return os.open(parts[-1], _FILE, dir_fd=here)
    finally:
        os.close(here)


def _enter(above: int, name: bytes) -> int:
    try:
        return os.open(name, _FOLDER, dir_fd=above)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR) and _is_link(above, name):
            raise LinkedFolderError(error.errno, LINK_ABOVE, name) from None
        raise


def _is_link(above: int, name: bytes) -> bool:
    try:
        return stat.S_ISLNK(os.lstat(name, dir_fd=above).st_mode)
    except OSError:
        return False


def _open_and_compare(folder: bytes, file: bytes) -> int:
    """Where folders cannot be opened: what was opened must be what lies below the folder once links are followed."""
    handle = os.open(file, _FILE)
    try:
        real = os.path.realpath(file)
        if real != os.path.join(os.path.realpath(folder), os.path.relpath(file, folder)):
            raise LinkedFolderError(errno.ELOOP, LINK_ABOVE, file)
        if not os.path.samestat(os.fstat(handle), os.lstat(real)):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), file)
    except BaseException:
        os.close(handle)
        raise
    return handle
