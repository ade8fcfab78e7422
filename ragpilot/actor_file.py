"""The file that `ragpilot actor` edits: reading it, finding actors and tokens in it, replacing it whole."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ragpilot.config import SCHEMA, ActorSettings, Settings, contradictions
from ragpilot.config_file import ConfigFile, parse, read, read_bytes
from ragpilot.config_words import problems
from ragpilot.errors import ConfigError, StateError
from ragpilot.files import create_private, replace_file
from ragpilot.trust import is_trusted, record

SHORTEST_FINGERPRINT = 4

_BOM = b"\xef\xbb\xbf"


def checked(given: dict[str, Any]) -> ActorSettings:
    """The actor of a table, if it can be one. Raises ConfigError."""
    return _settings({"actors": [given]}).actors[0]


def open_file(path: Path) -> ConfigFile:
    """The file, or an empty one where there is none yet. Raises ConfigError."""
    return read(path) if path.exists() else parse(path, b"")


def save(file: ConfigFile, text: str, *, home: Path) -> None:
    """Put ``text`` in the place of the file's own, in one step.

    A file that is trusted stays so, and one that is made here is trusted: what it says was said by its user to us. One
    that does not say that it is ours says so from now on, or nobody would ever read what was put into it.

    Args:
        file: The file as it was read.
        text: What it is to say.
        home: Holds the record of what is trusted.

    Raises:
        ConfigError: The result would be no configuration, or one that nothing could start with, or the file has changed
            since it was read.
    """
    settings = _settings(tomllib.loads(text))
    if wrong := [sentence for key, sentence in contradictions(settings) if key == "server.host"]:
        raise ConfigError(f"{file.path} would be refused as a whole: {wrong[0]}")
    try:
        made = not file.content and not file.path.exists()
        content = _like(file, text if "schema" in tomllib.loads(text) else f'schema = "{SCHEMA}"\n\n{text}')
        if made:
            if not create_private(file.path, content):
                raise ConfigError(f"{file.path} was made by someone else in this very moment. Try again.")
        elif read_bytes(file.path) != file.content:
            raise ConfigError(f"{file.path} has changed in this very moment. Try again.")
        else:
            replace_file(file.path, content)
        if made or is_trusted(home, file):
            record(home, parse(file.path, content))
    except StateError as error:
        raise ConfigError(error.message) from None


def _like(file: ConfigFile, text: str) -> bytes:
    return (_BOM if file.content.startswith(_BOM) else b"") + text.encode()


def place_of(file: ConfigFile, name: str) -> int:
    """Which of the file's actors is called ``name``, counted from 0. Raises ConfigError."""
    names = [actor.name for actor in _settings(file.data).actors]
    if name not in names:
        raise ConfigError(f"{file.path} has no actor {name!r}.", hint=f"It has: {', '.join(names) or 'none'}.")
    return names.index(name)


def token_of(tokens: Sequence[str], name: str, fingerprint: str) -> str | None:
    """The token that ``fingerprint`` begins; None where it is the actor's only one. Raises ConfigError."""
    wanted = fingerprint if fingerprint.startswith("env:") else fingerprint.lower()
    found = [token for token in tokens if token == wanted or token.lower().startswith(wanted)]
    if wanted in found:
        found = [wanted]
    if len(found) != 1 or len(wanted) < SHORTEST_FINGERPRINT:
        what = "names several tokens" if len(found) > 1 else "is no token"
        raise ConfigError(f"{fingerprint!r} {what} of {name}.", hint="`ragpilot actor list` shows their fingerprints.")
    return found[0] if len(tokens) > 1 else None


def _settings(data: dict[str, Any]) -> Settings:
    try:
        return Settings.model_validate(data)
    except ValidationError as error:
        raise ConfigError("\n".join(problem.text for problem in problems(error, data))) from None
