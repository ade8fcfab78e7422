"""What a configured kind needs of the settings that are unset by default: a value, or the key that a variable holds."""

from __future__ import annotations

import os

from ragpilot.errors import ConfigError


def needed(key: str, value: str | None, example: str) -> str:
    """The value of the setting ``key``. Raises ConfigError, with ``example``, where it is not set."""
    if not value:
        raise ConfigError(f"{key} is not set, and this kind needs it.", hint=f"For example: {key} = {example!r}.")
    return value


def secret(key: str, variable: str | None) -> str | None:
    """What the environment variable holds that the setting ``key`` names; None where it names none.

    Raises ConfigError for a variable that is not set.
    """
    if variable is None:
        return None
    value = os.environ.get(variable)
    if not value:
        raise ConfigError(f"{key} names the environment variable {variable}, which is not set.")
    return value
