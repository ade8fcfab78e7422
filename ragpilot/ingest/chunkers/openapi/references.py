"""``$ref``: inside the document they are followed, to files and hosts they stay text. Nothing is ever fetched."""

from __future__ import annotations

from urllib.parse import unquote

from ragpilot.ingest.chunkers.trees import Value

_LONGEST_CHAIN = 8


def reference(value: Value) -> str:
    """What a value refers to; empty when it is no reference."""
    return value.string("$ref") if value.kind == "map" else ""


def resolve(root: Value, value: Value) -> Value | None:
    """The value behind references to this document; itself when it is none; None when it cannot be had here."""
    for _ in range(_LONGEST_CHAIN):
        target = reference(value)
        if not target:
            return value
        found = _pointed_at(root, target) if target.startswith("#") else None
        if found is None:
            return None
        value = found
    return None


def short_name(target: str) -> str:
    """What a person calls a reference: the last part of one inside this document, all of any other."""
    if not target.startswith("#"):
        return target
    return _unescaped(target.rpartition("/")[2]) or target


def _pointed_at(root: Value, pointer: str) -> Value | None:
    value: Value | None = root
    for part in pointer.removeprefix("#").split("/")[1:]:
        if value is None:
            return None
        name = _unescaped(part)
        if value.kind == "list" and name.isdigit() and int(name) < len(value.elements):
            value = value.elements[int(name)]
        else:
            value = value.get(name)
    return value


def _unescaped(part: str) -> str:
    return unquote(part).replace("~1", "/").replace("~0", "~")
