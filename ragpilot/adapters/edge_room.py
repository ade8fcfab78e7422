"""Room for the engine on the disk. In the owner process.

The engine maps its files, which have holes until something is written into them: on a full disk a write is no error
but a signal that ends the process, and the log of what was under way is replayed, by further writes, whenever the
shard is opened again. So two things are seen to here. Nothing is written while the disk is short of room. And a file
holds some of the disk as long as the log may have something in it: where others have filled the disk meanwhile, that
file is given up, and the shard can be opened and answer.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from ragpilot.disk import NEEDED, free_bytes, in_words, is_full
from ragpilot.errors import StoreFullError

HELD_WRITING = NEEDED // 2
"""The reserve while there may be something in the engine's log; replaying a run's last batch takes some 2 MB.

The other half is for one operation, some 5 MB, and the flush behind it.
"""
HELD = 1_000_000
"""The reserve otherwise: opening a shard writes its configuration anew, a file of 400 bytes."""

_FILE = ".reserve"
_ZEROS = bytes(1024 * 1024)

_MAKE_ROOM = "Make room on that disk, or keep the index on another one (`path` in [store], or RAGPILOT_HOME)"


def shortage(root: Path) -> StoreFullError | None:
    """``Room.shortage`` for who is not the owner of the store in ``root``; also before there is one."""
    return Room(root).shortage()


def full(root: Path, left: int | None) -> StoreFullError:
    """The error of a write for which there is no room."""
    why = f"{in_words(left)} are free, and nothing is written to the index with less than {in_words(NEEDED)}"
    if left is None or left >= NEEDED:
        why = "the system takes no more for this user, who may have a quota, or have too many files"
    return StoreFullError(
        f"The disk of {root} is full: {why}. What is indexed stays, and is answered from.",
        hint=f"{_MAKE_ROOM}; then run `ragpilot index` again: it goes on where it stopped.",
    )


def unreadable(root: Path, left: int | None) -> StoreFullError:
    """The error of an index that cannot even be opened: a write was cut off, and is to be finished first."""
    return StoreFullError(
        f"The disk of {root} is full: {in_words(left)} are free, too little to open the index. Nothing of it is lost.",
        hint=f"{_MAKE_ROOM}; it answers as soon as {in_words(NEEDED)} are free.",
    )


def held_in(root: Path) -> int:
    """How much of the disk the store in ``root`` holds in reserve."""
    try:
        return (root / _FILE).stat().st_size
    except OSError:
        return 0


def fills_when_read(folder: Path) -> bool:
    """Whether the holes of files in ``folder`` are filled by reading them through a map, as in memory.

    There must be some room: otherwise reading ends the process.
    """
    with tempfile.TemporaryFile(dir=folder) as file:
        file.truncate(mmap.PAGESIZE)
        with mmap.mmap(file.fileno(), mmap.PAGESIZE, access=mmap.ACCESS_READ) as mapped:
            mapped.read(1)
        return getattr(os.fstat(file.fileno()), "st_blocks", 0) > 0


class Room:
    """The room of the store in ``root``, whose owner this process is."""

    def __init__(self, root: Path, free: Callable[[Path], int | None] = free_bytes) -> None:
        self._root = root
        self._free = free
        self._file = root / _FILE
        self._held: int | None = None

    def require(self) -> None:
        """Before anything is written. Raises StoreFullError where there is not enough room for it."""
        if problem := self.shortage():
            raise problem
        if self._size() < HELD_WRITING:
            try:
                self._hold(HELD_WRITING)
            except OSError as error:
                if not is_full(error):
                    raise
                # More than the user may have is free.
                raise full(self._root, self._size()) from error

    def shortage(self, coming: int = 0) -> StoreFullError | None:
        """Why nothing can be written, even with ``coming`` more bytes free; None where something can."""
        held = self._size()
        left = self._free(self._root)
        return None if left is None or left + held + coming >= NEEDED else full(self._root, left + held)

    def give_up(self) -> bool:
        """Have everything that is held free; whether there was anything."""
        held, self._held = self._size(), 0
        self._file.unlink(missing_ok=True)
        return held > 0

    def settle(self) -> None:
        """Hold only what opening needs, as far as there is that much: the log is empty."""
        if self._size() == HELD:
            return
        with contextlib.suppress(OSError):
            self._hold(HELD)

    def _size(self) -> int:
        if self._held is None:
            self._held = held_in(self._root)
        return self._held

    def _hold(self, size: int) -> None:
        handle = os.open(self._file, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o600)
        try:
            _allocate(handle, self._size(), size)
        except OSError:
            os.ftruncate(handle, self._size())
            raise
        finally:
            os.close(handle)
        self._held = size


def _allocate(handle: int, now: int, size: int) -> None:
    """Make a file of ``now`` bytes ``size`` bytes long, all of them really on the disk."""
    if size <= now:
        os.ftruncate(handle, size)
        return
    if hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(handle, 0, size)
        except OSError as error:
            if is_full(error):
                raise
        else:
            return
    os.lseek(handle, now, os.SEEK_SET)
    while now < size:
        now += os.write(handle, _ZEROS[: size - now])
