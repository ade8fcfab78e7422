"""Setting keys in the text of a config.toml, with everything else in it left as it stands. Pure."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from typing import Any

from ragpilot.config import SCHEMA
from ragpilot.errors import ConfigError

Value = str | int | bool
SCHEMA_LINE = f'schema = "{SCHEMA}"'


def with_settings(text: str, settings: Mapping[str, Value]) -> str:
    """``text`` with each dotted key of ``settings`` set: where it stands, else below its table's head.

    An empty text becomes a file of RagPilot's. Comments, order and everything else stay.

    Raises:
        ConfigError: The text is no TOML, or is written in a way (inline tables, dotted keys) that cannot be edited so.
    """
    wanted = _loaded(text)
    for dotted, value in settings.items():
        section, _, key = dotted.partition(".")
        wanted.setdefault(section, {})
        if not isinstance(wanted[section], dict):
            raise ConfigError(f"{section} is no table in this file; set {dotted} by hand.")
        wanted[section][key] = value
    lines = text.splitlines() if text.strip() else [SCHEMA_LINE]
    wanted.setdefault("schema", SCHEMA)
    for dotted, value in settings.items():
        section, _, key = dotted.partition(".")
        _set(lines, section, f"{key} = {json.dumps(value, ensure_ascii=False)}", key)
    edited = "\n".join(lines) + "\n"
    if _loaded(edited) != wanted:
        raise ConfigError("This file is written in a way that cannot be edited safely; set the keys by hand.")
    return edited


def _loaded(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"This is no TOML: {error}.") from error


def _set(lines: list[str], section: str, assignment: str, key: str) -> None:
    """Put ``assignment`` into the table ``section`` of ``lines``."""
    head = next((at for at, line in enumerate(lines) if re.match(rf"\s*\[\s*{section}\s*\]", line)), None)
    if head is None:
        lines += ["", f"[{section}]", assignment]
        return
    end = next((at for at in range(head + 1, len(lines)) if re.match(r"\s*\[", lines[at])), len(lines))
    stated = next((at for at in range(head + 1, end) if re.match(rf"\s*{key}\s*=", lines[at])), None)
    if stated is None:
        lines.insert(head + 1, assignment)
    else:
        comment = re.search(r"\s+#[^\"']*$", lines[stated])
        lines[stated] = assignment + (comment[0] if comment else "")
