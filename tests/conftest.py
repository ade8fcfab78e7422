"""What holds for every test: an environment of its own, and no network beyond loopback (pytest's options)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

# A busy machine fails no example for its time; pytest's own limit bounds each test.
settings.register_profile("ragpilot", deadline=None)
settings.load_profile("ragpilot")


@pytest.fixture(autouse=True)
def own_environment(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No setting of the machine reaches a test: neither variables, nor proxies, nor a configuration in the home."""
    home = tmp_path_factory.mktemp("home")
    for name in list(os.environ):
        leaks = name.startswith("RAGPILOT_") and not name.startswith("RAGPILOT_TEST_")
        if leaks or name.lower().endswith("_proxy") or name in {"OLLAMA_HOST", "PYTHONASYNCIODEBUG"}:
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(home / ".local" / "share"))
    monkeypatch.setenv("RAGPILOT_HOME", str(home / "ragpilot"))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    return home
