"""Configuration of RagPilot that says who may read what: never read into the index, wherever it lies.

It holds actors, their principals, the hashes of their tokens and grants: a map of what is worth asking for.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from typing import Any

_WORDS = ("actors", "grants")
_HEADER = re.compile(r"^\s{0,40}\[\[\s{0,9}(?:actors|corpora\s{0,9}\.\s{0,9}grants)\s{0,9}\]\]", re.MULTILINE)
_TOML_NAME = re.compile(r"\.toml(?:$|[.~_-])")
_HASHES = re.compile(r"tokens[\"']?\s{0,9}=\s{0,9}\[(?P<items>[^\[\]]{66,20000})\]")
_HASH = re.compile(r"[\"'](?P<hash>[0-9a-fA-F]{64})[\"']")

TOKEN_HASH = "ragpilot-token-hash"  # noqa: S105 - the kind of what is redacted, not a secret


def is_access_file(path: str, text: str) -> bool:
    """Whether a text is RagPilot's configuration and defines actors or grants, whatever it is called.

    A file that the user names need not say that it is ours: it is known by what its tables hold. One that is being
    edited, and is no TOML for now, is known by its headings.
    """
    if not any(word in text for word in _WORDS):
        return False
    named = _TOML_NAME.search(path.rsplit("/", 1)[-1].lower()) is not None
    try:
        data = tomllib.loads(text.removeprefix("\ufeff").replace("\r\n", "\n"))
    # Texts of any kind come here: one that is nested too deeply is no configuration of ours.
    except (tomllib.TOMLDecodeError, RecursionError):
        return named and _HEADER.search(text) is not None
    ours = data.get("schema") == "ragpilot/1"
    actors, corpora = data.get("actors"), data.get("corpora")
    if actors and (ours or any("tokens" in actor or "principals" in actor for actor in _tables(actors))):
        return True
    return any("grants" in corpus for corpus in _tables(corpora))


def token_hashes(text: str) -> list[tuple[int, int, str]]:
    """Where the hashes of tokens stand in ``tokens = […]``, in a text of any kind: start, end, and their kind."""
    if "tokens" not in text:
        return []
    return [
        (*item.span("hash"), TOKEN_HASH)
        for found in _HASHES.finditer(text)
        for item in _HASH.finditer(text, found.start("items"), found.end("items"))
    ]


def _tables(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
