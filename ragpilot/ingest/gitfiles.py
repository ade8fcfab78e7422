# File names are bytes here, which pathlib does not know.
# ruff: noqa: PTH117
"""Asking git itself which files are a repository's own, without letting the repository run anything.

A repository's configuration may name programs (``core.fsmonitor``, hooks, transports of lazily fetched objects).
It may have come with someone else's archive, so all of these are switched off on the command line.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass

_SAFE = (
    "--no-optional-locks",
    "-c",
    "core.fsmonitor=false",
    "-c",
    f"core.hooksPath={os.devnull}",
    "-c",
    "safe.bareRepository=explicit",
    "-c",
    "core.quotePath=false",
)
_SECONDS = 120.0
SOON_SECONDS = 1.0
"""Git is asked to answer so soon; then it is looked whether it waits for something that will not come."""
_USERS_OWN = frozenset({"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"})
_SETTINGS = ("GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_")
"""Settings of the user's in the environment; those above, given on the command line, hold before them."""
_UNREADABLE = b"could not open directory"


@dataclass(frozen=True, slots=True)
class GitListing:
    """Paths relative to the folder that was asked about; a nested repository's own top ends with a slash."""

    kept: list[bytes]
    ignored: list[bytes]
    """Files and, with a slash at the end, whole folders that ignore rules exclude."""
    folder_ignored: bool
    """The folder itself is ignored by the repository around it."""


def git_program(*, outside: bytes) -> str | None:
    """The git to run; None where there is none, or only one that lies in the folder it would be asked about."""
    found = shutil.which("git")
    if found is None or not os.path.isabs(found):
        return None
    inside = os.path.realpath(os.fsencode(found)).startswith(outside.rstrip(b"/") + b"/")
    return None if inside else found


def list_files(program: str, folder: bytes, waits: Callable[[], bool]) -> GitListing | None:
    """``git ls-files -co --exclude-standard`` in ``folder``; None where git refuses, fails or takes too long.

    None as well where git could not look into some folder: it would not say which. ``waits`` says whether there is
    anything that git would wait for without an end; it is asked only when git is slow.
    """
    kept = _run(program, folder, waits, "ls-files", "-c", "-o", "--exclude-standard", "-z")
    if kept is None:
        return None
    ignored = _run(program, folder, waits, "ls-files", "-o", "-i", "--exclude-standard", "--directory", "-z")
    if ignored is None:
        return None
    paths = list(dict.fromkeys(path for path in kept.split(b"\0") if path))
    left: list[bytes] = []
    for path in sorted(path for path in ignored.split(b"\0") if path):
        if not (left and left[-1].endswith(b"/") and path.startswith(left[-1])):
            left.append(path)
    folder_ignored = not paths and _run(program, folder, waits, "check-ignore", "-q", ".") is not None
    return GitListing(paths, left, folder_ignored)


def _run(program: str, folder: bytes, waits: Callable[[], bool], *arguments: str) -> bytes | None:
    """Standard output; None for a failure of any kind."""
    try:
        with subprocess.Popen(  # noqa: S603 - a fixed command; the folder is no option, it follows -C
            [program, "-C", os.fsdecode(folder), *_SAFE, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=_environment(),
        ) as process:
            try:
                output, problems = _communicate(process, waits)
            finally:
                process.kill()
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return None if process.returncode or _UNREADABLE in problems else output


def _communicate(process: subprocess.Popen[bytes], waits: Callable[[], bool]) -> tuple[bytes, bytes]:
    """What the process says. Raises SubprocessError when it takes too long."""
    try:
        return process.communicate(timeout=SOON_SECONDS)
    except subprocess.TimeoutExpired:
        if waits():
            raise
    return process.communicate(timeout=_SECONDS)


def _environment() -> dict[str, str]:
    """The environment without git's own variables, which could point at another repository or index.

    Those that say where the user's configuration lies stay, and those that hold some: its excludes count.
    """
    own = {name for name in os.environ if name in _USERS_OWN or name.startswith(_SETTINGS)}
    kept = {name: value for name, value in os.environ.items() if name in own or not name.startswith("GIT_")}
    return kept | {"LC_ALL": "C", "GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "none", "GIT_TERMINAL_PROMPT": "0"}
