"""What every finder of secrets works with: how a value is written, whether it is a literal, where words stand."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ragpilot.ingest.secrets.placeholders import is_literal

Found = tuple[int, int, str]
"""Where a secret begins and ends, and its kind."""

QUOTED = r"(?P<quote>\\?[\"'])(?P<quoted>(?:[^\n\"'\\]|\\(?![\"'])){1,200})(?P=quote)"
"""Also within a string: ``\\"…\\"``."""
BARE = r"(?P<bare>[^\s\"'`|;&<>(){}\[\],\\]{1,200})"
VALUE = f"(?:{QUOTED}|{BARE})"


def value_group(match: re.Match[str]) -> str:
    """The group of a match of ``VALUE`` that holds what was given."""
    return "bare" if match.groupdict().get("bare") is not None else "quoted"


def literal_in(match: re.Match[str], kind: str) -> Iterator[Found]:
    """The value of a match of ``VALUE``, where it is a literal."""
    group = value_group(match)
    if is_literal(match[group]):
        yield *match.span(group), kind


def places(text: str, anchors: Iterable[str]) -> Iterator[int]:
    """Where each of some words stands in a text, one word after the other."""
    for anchor in anchors:
        at = text.find(anchor)
        while at >= 0:
            yield at
            at = text.find(anchor, at + len(anchor))
