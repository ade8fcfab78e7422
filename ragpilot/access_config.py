"""The part of the configuration that counts while a server runs: who may ask, and who may read what.

Everything else is read when a server starts. These are read again when a file that decides on them has changed, so that
a revoked token stops working, and a grant counts, with the next request.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ragpilot.config import CorpusSettings, Environment, Settings
from ragpilot.files import file_state
from ragpilot.settings_loader import load


class AccessConfiguration:
    """Actors and grants as the files say them now, over everything else as it was at the start."""

    def __init__(self, environment: Environment, environ: Mapping[str, str]) -> None:
        """Reads nothing yet.

        Args:
            environment: What was loaded at the start.
            environ: The environment variables, as at the start.
        """
        self._started = environment
        self._environ = environ
        self._known = dict(environment.looked_at)

    def states(self) -> dict[str, str]:
        """The states of all files that decide, by path. A few microseconds."""
        return {path: file_state(Path(path)) for path in self._known}

    def changed(self) -> bool:
        """Whether a file is in another state than it was when it was last read."""
        return any(file_state(Path(path)) != state for path, state in self._known.items())

    def read(self) -> Settings:
        """The settings of the start, with actors and grants as the files say now. Blocking.

        Corpora are those of the start: a grant counts for the corpus of its name, and one that the files do not have
        any more keeps its own.

        Raises:
            ConfigError: What ``load`` raises: the settings that were in force are to stay.
        """
        started = self._started
        now = load(config=started.config, directory=started.directory, environ=self._environ)
        # Another state folder: it is another configuration by now, and its corpora are not ours.
        theirs = now.settings.corpora if now.state == started.state else []
        by_name = {corpus.name: corpus for corpus in theirs}
        corpora = [_regranted(corpus, by_name.get(corpus.name)) for corpus in started.settings.corpora]
        access = {"actors": now.settings.actors, "local": now.settings.local}
        return started.settings.model_copy(update={**access, "corpora": corpora})

    def settle(self, states: Mapping[str, str]) -> None:
        """Count ``states`` as read. What is wrong in them is wrong until they change again."""
        self._known = dict(states)


def _regranted(corpus: CorpusSettings, now: CorpusSettings | None) -> CorpusSettings:
    return corpus if now is None else corpus.model_copy(update={"readers": now.readers, "grants": now.grants})
