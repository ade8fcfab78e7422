"""Changes to the ``[[actors]]`` of a configuration file, as edits of its text: comments and layout stay. Pure.

There is no second parser here. An edit is tried where it should be, and counts only if the file that comes out says
exactly what it is to say; a file that is written too oddly for that is left to its author.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from copy import deepcopy
from typing import Any

from ragpilot.config_file import ConfigFile, KeyPath
from ragpilot.errors import ConfigError


def table_of(name: str, principals: Iterable[str], permissions: Iterable[str], corpus: str | None, token: str) -> str:
    """The ``[[actors]]`` table of a new actor; ``token`` as the file holds it, never the token itself."""
    lines = ["[[actors]]", f'name = "{name}"', f"principals = {_listed(principals)}"]
    lines += [f"permissions = {_listed(permissions)}"]
    lines += [f'corpus = "{corpus}"'] if corpus else []
    return "\n".join([*lines, f"tokens = {_listed([token])}", ""])


def with_actor(file: ConfigFile, table: str) -> str:
    """The file's text with one more actor at its end. Raises ConfigError."""
    added = tomllib.loads(table)["actors"]
    present = file.data.get("actors", [])
    expected = {**file.data, "actors": [*present, *added] if isinstance(present, list) else added}
    head = _text(file).rstrip("\n")
    return _first_right(file, [f"{head}\n\n{table}" if head else table], expected, f"Add this to it:\n\n{table}")


def with_token(file: ConfigFile, place: int, token: str) -> str:
    """The file's text with one more token for the actor at ``place``. Raises ConfigError."""
    expected = deepcopy(file.data)
    expected["actors"][place]["tokens"].insert(0, token)
    before, rest = _divided(file, ("actors", place, "tokens"))
    # Into a list with a line for each, a line; into another, an item.
    tried = (
        (r"(tokens[\"']?\s*=\s*\[[^\S\n]*(?:#[^\n]*)?\n)([^\S\n]*)", rf'\g<1>\g<2>"{token}",\n\g<2>'),
        (r"(tokens[\"']?\s*=\s*\[\s*)", rf'\g<1>"{token}", '),
    )
    texts = (before + re.sub(pattern, replacement, rest, count=1) for pattern, replacement in tried)
    return _first_right(file, texts, expected, f'Add "{token}" to its tokens.')


def without_token(file: ConfigFile, place: int, token: str) -> str:
    """The file's text without one of several tokens of the actor at ``place``. Raises ConfigError."""
    expected = deepcopy(file.data)
    expected["actors"][place]["tokens"].remove(token)
    before, rest = _divided(file, ("actors", place, "tokens"))
    item = rf"([\"']){re.escape(token)}\1"
    # Its whole line with the comment behind it, else the item with the comma behind it, else with the one before it.
    tried = (rf"(?m)^[^\S\n]*{item}[^\S\n]*,?[^\S\n]*(?:#[^\n]*)?\n", rf"{item}\s*,[^\S\n]*", rf"\s*,\s*{item}")
    texts = (before + re.sub(pattern, "", rest, count=1) for pattern in tried)
    return _first_right(file, texts, expected, f'Remove "{token}" from its tokens.')


def without_actor(file: ConfigFile, place: int) -> str:
    """The file's text without the actor at ``place``; comments before the next table stay. Raises ConfigError."""
    actors = [actor for at, actor in enumerate(file.data["actors"]) if at != place]
    expected = {name: value for name, value in file.data.items() if name != "actors"}
    expected |= {"actors": actors} if actors else {}
    before, rest = _divided(file, ("actors", place))
    lines = rest.split("\n")
    ends = [at for at in range(1, len(lines)) if lines[at].lstrip().startswith("[")]
    texts = (before + "\n".join(lines[_own_end(lines, end) :]) for end in [*ends, len(lines)])
    return _first_right(file, texts, expected, "Remove its table.")


def _own_end(lines: list[str], end: int) -> int:
    """Where a table's own lines end: the comments right before the next header are the next table's."""
    while not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#"):
        end -= 1
    while end < len(lines) and not lines[end].strip():
        end += 1
    return end


def _divided(file: ConfigFile, key: KeyPath) -> tuple[str, str]:
    """The file's text before the line of ``key``, and from there on."""
    lines = _text(file).split("\n")
    at = (file.line(key) or 1) - 1
    return "".join(line + "\n" for line in lines[:at]), "\n".join(lines[at:])


def _text(file: ConfigFile) -> str:
    return file.text.replace("\r\n", "\n") if _is_dos(file) else file.text


def _is_dos(file: ConfigFile) -> bool:
    return 0 < file.text.count("\n") == file.text.count("\r\n")


def _first_right(file: ConfigFile, texts: Iterable[str], expected: dict[str, Any], by_hand: str) -> str:
    for text in texts:
        try:
            if tomllib.loads(text) == expected:
                return text.replace("\n", "\r\n") if _is_dos(file) else text
        except tomllib.TOMLDecodeError:
            continue
    raise ConfigError(f"{file.path} is written in a way that cannot be edited safely.", hint=by_hand)


def _listed(items: Iterable[str]) -> str:
    return "[" + ", ".join(f'"{item}"' for item in items) + "]"
