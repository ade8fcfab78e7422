from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("RAGPILOT_HOME", str(tmp_path / "home"))
    return folder


@pytest.fixture
def capture(capfd: pytest.CaptureFixture[str]) -> Callable[[], tuple[str, str]]:
    """What has come out since the last look, on stdout and on stderr."""
    return capfd.readouterr
