"""``RAGPILOT_<SECTION>__<KEY>``: every key of a section as an environment variable, typed by the settings' model."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from ragpilot.config import Settings
from ragpilot.config_words import dotted, nearest, problems, sections, value_types
from ragpilot.errors import ConfigError

PREFIX = "RAGPILOT_"
TEST_PREFIX = "RAGPILOT_TEST_"
OTHERS = frozenset({"RAGPILOT_CONFIG", "RAGPILOT_HOME", "RAGPILOT_TOKEN", "RAGPILOT_DEBUG"})
"""Variables of RagPilot that are no keys of the file."""


@dataclass(slots=True)
class Variables:
    """What the variables set, nested as in a file; ``origins``: dotted key -> variable."""

    data: dict[str, dict[str, Any]] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def read_variables(environ: Mapping[str, str]) -> Variables:
    """The keys set by ``environ``.

    Text stands as it is; numbers, booleans and lists as in TOML; an empty variable unsets a key that may be unset.
    Raises ConfigError for an unknown key or a wrong value.
    """
    names = {
        f"{PREFIX}{section}__{key}".upper(): (section, key) for section, keys in sections().items() for key in keys
    }
    found = Variables()
    for variable in sorted(environ):
        if not variable.startswith(PREFIX) or variable in OTHERS or variable.startswith(TEST_PREFIX):
            continue
        place = names.get(variable.upper())
        if place is not None:
            section, key = place
            found.data.setdefault(section, {})[key] = _value(environ[variable], value_types(place))
            found.origins[dotted(place)] = variable
        elif "__" in variable.removeprefix(PREFIX):
            near = nearest(variable.removeprefix(PREFIX), [name.removeprefix(PREFIX) for name in names])
            raise ConfigError(
                f"The environment variable {variable} sets no key of RagPilot.",
                hint=f"Did you mean {PREFIX}{near}?" if near else f"Sections: {', '.join(sections())}.",
            )
        elif near := _slip(variable, [*names, *OTHERS]):
            # Not refused: orchestrators set names such as RAGPILOT_PORT for a service that is called ragpilot.
            found.notes.append(f"The environment variable {variable} means nothing to RagPilot; did you mean {near}?")
    _check(found)
    return found


def _value(raw: str, types: set[str]) -> Any:
    if raw == "" and "null" in types:
        return None
    if "boolean" in types and raw.lower() in {"true", "false"}:
        return raw.lower() == "true"
    if types & {"integer", "number", "array"} and "\n" not in raw:
        try:
            value = tomllib.loads(f"value = {raw}")["value"]
        except (tomllib.TOMLDecodeError, RecursionError):
            return raw
        return raw if "string" in types and isinstance(value, str | bool) else value
    return raw


def _check(found: Variables) -> None:
    try:
        Settings.model_validate(found.data)
    except ValidationError as error:
        wrong = [(found.origins[dotted(problem.key[:2])], problem.text) for problem in problems(error, found.data)]
    else:
        return
    raise ConfigError("\n".join(f"The environment variable {variable}: {text}" for variable, text in wrong))


def _slip(variable: str, names: list[str]) -> str | None:
    """The name that ``variable`` is but for its underscores, or for a letter or two."""
    near = nearest(variable.removeprefix(PREFIX), [name.removeprefix(PREFIX) for name in names])
    if near is None:
        return None
    plain, other = variable.removeprefix(PREFIX).replace("_", ""), near.replace("_", "")
    close = plain == other or (abs(len(plain) - len(other)) <= 1 and len(set(plain) ^ set(other)) <= 1)
    return PREFIX + near if close else None
