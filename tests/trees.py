"""Trees of files on disk, and what git and the walk say of them."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from ragpilot.ingest.paths import shown_path
from ragpilot.ingest.walk import Listing

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
both_ways = pytest.mark.parametrize("use_git", [pytest.param(True, marks=needs_git), False], ids=["git", "by-hand"])


def write(root: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, encoding="utf-8")
    return root


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "protocol.file.allow=always"]
    command = ["git", "-C", str(folder), *identity, *arguments]
    done = subprocess.run(command, check=True, capture_output=True, timeout=60)  # noqa: S603 - the tests' own commands
    return done.stdout.decode("utf-8", "surrogateescape")


def of_git(folder: Path) -> list[str]:
    listed = git(folder, "ls-files", "-co", "--exclude-standard", "-z").split("\0")
    return sorted({shown_path(os.fsencode(name)) for name in listed if name and not name.endswith("/")})


def paths(listing: Listing) -> list[str]:
    return sorted(entry.path for entry in listing.files)


def reasons(listing: Listing) -> dict[str, str]:
    return {item.path: item.reason for item in listing.left_out}
