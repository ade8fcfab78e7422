"""A user's folders in a temporary place, for tests of where settings come from."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragpilot.config import Environment
from ragpilot.errors import ConfigError
from ragpilot.settings_loader import load

FILE = 'schema = "ragpilot/1"\n'


class Machine:
    """A user's folders, and a working folder, in a temporary place."""

    def __init__(self, base: Path) -> None:
        self.work = base / "work"
        self.config = base / "config" / "ragpilot" / "config.toml"
        self.home = base / "state"
        self.work.mkdir()
        self.config.parent.mkdir(parents=True)
        self.environ = {"HOME": str(base), "XDG_CONFIG_HOME": str(base / "config"), "RAGPILOT_HOME": str(self.home)}

    def load(self, config: str | None = None, /, *, at: Path | None = None, **variables: str) -> Environment:
        return load(config=config, directory=at or self.work, environ={**self.environ, **variables})

    def refused(self, config: str | None = None, /, **variables: str) -> str:
        with pytest.raises(ConfigError) as caught:
            load(config=config, directory=self.work, environ={**self.environ, **variables})
        return str(caught.value)
