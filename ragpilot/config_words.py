"""What is wrong with a value or a key of the configuration, in words for the person who wrote it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, time
from difflib import SequenceMatcher
from functools import cache
from typing import Any

from pydantic import ValidationError

from ragpilot.config import Settings
from ragpilot.config_file import KeyPath

Schema = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong, at one key; ``key`` is empty where several keys contradict each other."""

    key: KeyPath
    text: str
    """A whole sentence."""


def problems(error: ValidationError, data: Mapping[str, Any]) -> list[Problem]:
    """The problems of ``data``, one a key, in the order of the file's models."""
    found: dict[KeyPath, Problem] = {}
    for detail in error.errors(include_url=False):
        key = _real_key(detail["loc"])
        text = _text(detail, key, data)
        found.setdefault(key, Problem(key, text if text.endswith("?") else f"{text}."))
    return list(found.values())


def dotted(key: KeyPath) -> str:
    """``corpora[0].roots[1]``; every part printable, whatever a file called it."""
    text = ""
    for part in key:
        text += f"[{part}]" if isinstance(part, int) else ("." if text else "") + _printable(part)
    return text


def nearest(word: str, candidates: Iterable[str]) -> str | None:
    """The candidate most like ``word``; None where none is like it."""
    plain = _plain(word)

    def likeness(candidate: str) -> float:
        other = _plain(candidate)
        contained = 0.8 if min(len(plain), len(other)) >= 3 and (plain in other or other in plain) else 0.0
        return max(SequenceMatcher(None, plain, other).ratio(), contained)

    best = max(candidates, key=likeness, default=None)
    return best if best is not None and likeness(best) >= 0.6 else None


def key_schema(key: KeyPath) -> Schema | None:
    """The schema of the value at ``key``; None where there is no such key."""
    schema: Schema | None = _schema()
    for part in key:
        branches = [_resolved(branch) for branch in schema.get("anyOf", [schema])] if schema else []
        schema = next((child for child in (_child(branch, part) for branch in branches) if child is not None), None)
    return schema


def sections() -> dict[str, list[str]]:
    """The tables of the file that are no lists, and their keys."""
    tables = {name: _resolved(schema) for name, schema in _schema()["properties"].items()}
    return {name: list(table["properties"]) for name, table in tables.items() if "properties" in table}


def value_types(key: KeyPath) -> set[str]:
    """The JSON types that the value at ``key`` may have; empty where there is no such key."""
    schema = key_schema(key)
    return {branch["type"] for branch in schema.get("anyOf", [schema])} if schema else set()


@cache
def _schema() -> dict[str, Any]:
    return Settings.model_json_schema()


def _resolved(schema: Schema) -> Schema:
    reference = schema.get("$ref")
    return schema if reference is None else _schema()["$defs"][reference.rpartition("/")[2]]


def _child(schema: Schema, part: str | int) -> Schema | None:
    child = schema.get("items") if isinstance(part, int) else schema.get("properties", {}).get(part)
    return None if child is None else _resolved(child)


def _real_key(location: tuple[str | int, ...]) -> KeyPath:
    """The location without the names of union branches that pydantic appends; an unknown last part stays."""
    key: KeyPath = ()
    for part in location:
        schema = key_schema((*key, part))
        parent = key_schema(key)
        if schema is None and parent is not None and "properties" not in parent:
            break
        key = (*key, part)
    return key


def _text(detail: Mapping[str, Any], key: KeyPath, data: Mapping[str, Any]) -> str:
    kind = detail["type"]
    if kind == "extra_forbidden":
        return _unknown(key, data)
    if kind == "missing":
        return f"{dotted(key)} is missing: it must be {_expected(key_schema(key) or {})}"
    if kind == "value_error":
        words = str(detail["ctx"]["error"])
        return f"{dotted(key)} {words}" if key else words
    schema = key_schema(key) or {}
    shown = "" if _secret(schema) else f", not {_shown(detail['input'])}"
    return f"{dotted(key)} must be {_expected(schema)}{shown}"


def _unknown(key: KeyPath, data: Mapping[str, Any]) -> str:
    *outer, last = key
    word, parent = str(last), tuple(outer)
    known = list(_resolved(key_schema(parent) or {}).get("properties", {}))
    elsewhere = [f"[{name}] {item}" for name, keys in sections().items() if parent != (name,) for item in keys]
    same = [place for place in elsewhere if place.partition("] ")[2] == word]
    near = nearest(word, known)
    if parent:
        what = f"unknown key {_printable(word)!r} in {dotted(parent)}"
    else:
        what = f"unknown {'section' if isinstance(data.get(word), dict | list) else 'key'} {_printable(word)!r}"
    if same and (near is None or _plain(near) != _plain(word)):
        return f"{what}; did you mean {' or '.join(same[:3])}?"
    if near is not None:
        return f"{what}; did you mean {near!r}?"
    if not parent and (kinds := _sections_of_kind(word)):
        return f"{what}; did you mean {' or '.join(kinds)}?"
    return f"{what}; valid here: {', '.join(known)}"


def _sections_of_kind(word: str) -> list[str]:
    """Sections that have ``word`` as a kind: who writes ``[auto]`` looks for ``[chat] kind = "auto"``."""
    found = []
    for name, keys in sections().items():
        schema = key_schema((name, "kind")) if "kind" in keys else None
        if schema and word.lower() in schema.get("enum", ()):
            found.append(f'[{name}] kind = "{word.lower()}"')
    return found


def _expected(schema: Schema) -> str:
    """What a value of this schema looks like, in words."""
    if "anyOf" in schema:
        branches = [_resolved(branch) for branch in schema["anyOf"]]
        return " or ".join(_expected(branch) for branch in branches if branch.get("type") != "null")
    if "words" in schema:
        return str(schema["words"])
    if options := schema.get("enum") or ([schema["const"]] if "const" in schema else None):
        return ("one of " if len(options) > 1 else "") + ", ".join(json.dumps(option) for option in options)
    match schema.get("type"):
        case "integer":
            return f"a whole number{_range(schema)}"
        case "number":
            return f"a number{_range(schema)}"
        case "boolean":
            return "true or false"
        case "array":
            items = _resolved(schema["items"])
            if items.get("type") == "object":
                return "tables, each under a header in double brackets"
            least = " with at least one item" if schema.get("minItems") else ""
            return f"a list{least}, each {_expected(items)}"
        case "object":
            return "a table"
        case _:
            return "text"


def _range(schema: Schema) -> str:
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and high is not None:
        return f" from {low:g} to {high:.15g}"
    if low is not None:
        return f" of at least {low:g}"
    if (above := schema.get("exclusiveMinimum")) is not None:
        return f" above {above:g}"
    return ""


def _secret(schema: Schema) -> bool:
    return any(part.get("secret") for part in [schema, schema.get("items", {}), *schema.get("anyOf", ())])


def _shown(value: object) -> str:
    """A value as its file would have it, short and printable."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return json.dumps(value if len(value) <= 40 else value[:40] + "…", ensure_ascii=not value.isprintable())
        case int() | float():
            return f"{value:.15g}" if isinstance(value, float) else str(value)[:40]
        case list():
            return "a list" if value else "an empty list"
        case dict():
            return "a table"
        case date() | time():
            return "a date or time"
        case _:
            return "nothing"


def _printable(word: str) -> str:
    short = word if len(word) <= 60 else word[:60] + "…"
    return short if short.isprintable() else json.dumps(short)


def _plain(word: str) -> str:
    return re.sub(r"[^a-z0-9]", "", word.lower())
