"""Private files: written whole or not at all, readable by their owner alone."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path

from ragpilot.disk import free_bytes, in_words, is_full
from ragpilot.errors import StateError, StateFullError

ELSEWHERE = "Name another folder in RAGPILOT_HOME."
REMOVE = "Remove it; it is made anew."
MAKE_ROOM = "Make room on that disk, or name a folder on another one in RAGPILOT_HOME."


def file_state(path: Path) -> str:
    """What tells one state of the file at ``path`` from another, its content unread; empty where there is none."""
    try:
        found = path.stat()
    except (OSError, ValueError):
        return ""
    return f"{found.st_dev}-{found.st_ino}-{found.st_size}-{found.st_mtime_ns}-{found.st_ctime_ns}"


def make_folder(path: Path) -> None:
    """Make ``path`` and what is missing above it, for the owner alone (0700); what exists stays as it is.

    Raises StateError.
    """
    try:
        missing = [folder for folder in (path, *path.parents) if not folder.exists()]
        for folder in reversed(missing):
            folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise _failed(f"The folder {path} cannot be made", path.parent, error) from None


def private_folder(path: Path) -> Path:
    """Like ``make_folder``, for a folder that is RagPilot's alone: one that lets others in is closed to them.

    Raises StateError, also for a folder that belongs to another user.
    """
    make_folder(path)
    try:
        status = path.stat()
        if not stat.S_ISDIR(status.st_mode):
            raise StateError(f"{path} is no folder.", hint=ELSEWHERE)
        if hasattr(os, "getuid") and status.st_uid != os.getuid():
            raise StateError(f"The folder {path} belongs to another user.", hint=ELSEWHERE)
        if os.name == "posix" and stat.S_IMODE(status.st_mode) & 0o077:
            path.chmod(0o700)
    except OSError as error:
        raise StateError(f"The folder {path} cannot be used: {_reason(error)}.", hint=ELSEWHERE) from None
    return path


def write_private(path: Path, content: bytes) -> None:
    """Replace ``path`` by ``content`` in one step, mode 0600; its folder is made where it is missing.

    Raises StateError; the old content is then still there.
    """
    with _temporary(path, content) as written:
        written.replace(path)


def replace_file(path: Path, content: bytes) -> None:
    """Replace the file at ``path`` by ``content`` in one step, its mode kept; links are followed.

    Raises StateError; the old content is then still there.
    """
    path = Path(os.path.realpath(path))
    with _temporary(path, content) as written:
        written.chmod(stat.S_IMODE(path.stat().st_mode))
        written.replace(path)


def create_private(path: Path, content: bytes) -> bool:
    """Like ``write_private``, but never replaces: False where ``path`` is there already.

    The file appears with all of its content, so that a reader never sees half of it.
    """
    with _temporary(path, content) as written:
        try:
            # A link fails where the name is taken, as O_EXCL does, but the content is there from the first moment.
            os.link(written, path)
        except FileExistsError:
            return False
    return True


def read_private(path: Path, *, limit: int = 65_536) -> bytes | None:
    """At most ``limit`` bytes of a file that is ours and that nobody else may read; None where there is none.

    Follows no link. Raises StateError for a file of another user, one that others may read, or no regular file.
    """
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise StateError(f"{path} cannot be read: {_reason(error)}.", hint=REMOVE) from None
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise StateError(f"{path} is no regular file.", hint=REMOVE)
        if hasattr(os, "getuid") and (status.st_uid != os.getuid() or stat.S_IMODE(status.st_mode) & 0o077):
            raise StateError(f"{path} can be read by others, or belongs to one.", hint=REMOVE)
        return os.read(handle, limit)
    finally:
        os.close(handle)


@contextlib.contextmanager
def _temporary(path: Path, content: bytes) -> Iterator[Path]:
    """``content`` on disk under a name of its own beside ``path``; gone again afterwards."""
    make_folder(path.parent)
    written = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        handle = os.open(written, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        yield written
    except OSError as error:
        raise _failed(f"{path} cannot be written", path.parent, error) from None
    finally:
        written.unlink(missing_ok=True)


def full(what: str, folder: Path) -> StateFullError:
    """The error of what failed for want of room; ``what`` is the beginning of its sentence."""
    left = in_words(free_bytes(folder))
    return StateFullError(f"{what}: the disk of {folder} is full, {left} are free.", hint=MAKE_ROOM)


def _failed(what: str, folder: Path, error: OSError) -> StateError:
    return full(what, folder) if is_full(error) else StateError(f"{what}: {_reason(error)}.", hint=ELSEWHERE)


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
