"""Why a file is not indexed: short fixed words, counted in reports."""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """All but the last four leave a file out on purpose; the last four are failures of one file."""

    IGNORED = "ignored"
    """By git's ignore rules, ``.ragpilotignore`` or the default excludes; a whole folder counts once."""
    IGNORE_FILE = "ignore file"
    SECRET_FILE = "secret file"  # noqa: S105 - a reason, not a secret
    ACCESS_FILE = "access configuration"
    """Of RagPilot itself: actors, the hashes of their tokens, grants."""
    SYMLINK = "symlink"
    SPECIAL = "special file"
    LINKED_WORKTREE = "linked worktree"
    BINARY = "binary"
    EMPTY = "empty"
    TOO_LARGE = "too large"
    MINIFIED = "minified"
    GENERATED = "generated"
    LOCK_FILE = "lock file"
    DATA = "data"
    VANISHED = "vanished"
    """There when the folder was listed, gone when it was read."""
    NO_PERMISSION = "no permission"

    UNREADABLE = "unreadable"
    CHUNKING_FAILED = "chunking failed"
    EMBEDDING_FAILED = "embedding failed"
    STORING_FAILED = "storing failed"
