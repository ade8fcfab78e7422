"""JSON and YAML as trees of values that know their rows.

Neither reader recurses, builds an object by a tag, or follows an alias: an alias is the very value it names, so a
text of nine lines that would expand to a gigabyte is a tree of ninety values.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Literal

import yaml

_JSON_TOKEN = re.compile(r'[ \t\r\n]*(?:(?P<string>"(?:[^"\\]|\\.)*")|(?P<mark>[{}\[\]:,])|(?P<word>[^\s{}\[\]:,"]+))')


_NO_BREAKS = str.maketrans(dict.fromkeys("\r\x85\u2028\u2029", " "))
"""YAML breaks lines at these too; nobody who counts lines does."""


class TreeError(Exception):
    """The text is neither well-formed JSON nor YAML. The message is for a run's report."""


@dataclass(slots=True, eq=False)
class Value:
    """A map, a list or a scalar on rows ``start`` to ``end`` (from 0, both included)."""

    kind: Literal["map", "list", "scalar"]
    start: int
    end: int
    text: str = ""
    """Of a scalar, as written, quotes and escapes resolved."""
    entries: dict[str, Value] = field(default_factory=dict)
    key_rows: dict[str, int] = field(default_factory=dict)
    """The row of each key."""
    elements: list[Value] = field(default_factory=list)

    def get(self, key: str) -> Value | None:
        """The value of a key, also one that a YAML merge brings in; None when this is no map or lacks it."""
        if (value := self.entries.get(key)) is not None:
            return value
        if "<<" not in self.entries:
            return None
        return next((found for source in self.merged() if (found := source.entries.get(key)) is not None), None)

    def merged(self) -> list[Value]:
        """The maps that ``<<`` merges into this one, one level deep."""
        merge = self.entries.get("<<")
        if merge is None:
            return []
        return [value for value in (merge.elements or [merge]) if value.kind == "map"]

    def items(self) -> Iterator[tuple[str, Value]]:
        """Keys and values in order, merged ones last."""
        seen: set[str] = set()
        for source in (self, *self.merged()):
            for key, value in source.entries.items():
                if key != "<<" and key not in seen:
                    seen.add(key)
                    yield key, value

    def string(self, key: str) -> str:
        """The scalar of a key on one line; empty where there is none."""
        value = self.get(key)
        return " ".join(value.text.split()) if value is not None and value.kind == "scalar" else ""


class _Builder:
    """Puts values into the containers that are open, without recursion."""

    def __init__(self) -> None:
        self.root: Value | None = None
        self.last = 0
        """The row of the last token read."""
        self._open: list[tuple[Value, str | None]] = []

    @property
    def container(self) -> Value | None:
        return self._open[-1][0] if self._open else None

    @property
    def wants_key(self) -> bool:
        return bool(self._open) and self._open[-1][0].kind == "map" and self._open[-1][1] is None

    def key(self, text: str, row: int) -> None:
        container = self._open[-1][0]
        self._open[-1] = (container, text)
        container.key_rows.setdefault(text, row)

    def add(self, value: Value, *, opens: bool = False) -> None:
        if self._open:
            container, key = self._open[-1]
            if key is not None:
                container.entries.setdefault(key, value)
                self._open[-1] = (container, None)
            else:
                container.elements.append(value)
        elif self.root is None:
            self.root = value
        else:
            raise TreeError(f"more than one value, the second in line {value.start + 1}")
        if opens:
            self._open.append((value, None))

    def close(self, row: int) -> None:
        value, _ = self._open.pop()
        value.end = row


def read_json(text: str) -> Value:
    """The root value. Raises TreeError."""
    ends = list(accumulate(len(row) + 1 for row in text.split("\n")))
    builder = _Builder()
    position = 0
    end = len(text.rstrip())
    while position < end:
        token = _JSON_TOKEN.match(text, position)
        if token is None:
            raise TreeError(f"no JSON: unexpected text in line {bisect_right(ends, position) + 1}")
        position = token.end()
        kind = token.lastgroup or ""
        found = token[kind]
        row = bisect_right(ends, token.start(kind))
        if found in ("{", "["):
            builder.add(Value("map" if found == "{" else "list", row, row), opens=True)
        elif found in ("}", "]"):
            container = builder.container
            if container is None or (container.kind == "map") != (found == "}"):
                raise TreeError(f"no JSON: a bracket too many in line {row + 1}")
            builder.close(row)
        elif kind != "mark" and builder.wants_key:
            builder.key(_unquoted(found), row)
        elif kind != "mark":
            builder.add(Value("scalar", row, row, _unquoted(found)))
    if builder.container is not None or builder.root is None:
        raise TreeError("no JSON: it ends before its last bracket")
    return builder.root


def _unquoted(token: str) -> str:
    if not token.startswith('"'):
        return token
    try:
        return str(json.loads(token))
    except ValueError:
        return token[1:-1]


def read_yaml(text: str) -> list[Value]:
    """The root of each document, up to the first that is not well-formed. Raises TreeError when that is the first."""
    roots: list[Value] = []
    builder = _Builder()
    anchors: dict[str, Value] = {}
    try:
        for event in yaml.parse(text.replace("\r\n", "\n").translate(_NO_BREAKS), Loader=_loader()):
            _add_event(event, builder, anchors)
            if isinstance(event, yaml.DocumentEndEvent):
                roots += [builder.root] if builder.root is not None else []
                builder, anchors = _Builder(), {}
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        if roots:
            return roots
        mark = getattr(error, "problem_mark", None)
        place = f" in line {mark.line + 1}" if mark is not None else ""
        raise TreeError(f"no YAML: {getattr(error, 'problem', None) or 'it cannot be read'}{place}") from error
    if not roots:
        raise TreeError("no YAML: it is empty")
    return roots


def _loader() -> type[yaml.CSafeLoader] | type[yaml.SafeLoader]:
    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _add_event(event: yaml.Event, builder: _Builder, anchors: dict[str, Value]) -> None:
    start, end = _rows(event)
    if isinstance(event, yaml.AliasEvent):
        name = event.anchor or ""
        value = anchors.get(name) or Value("scalar", start, start, f"*{name}")
        if builder.wants_key:
            builder.key(value.text, start)
        else:
            builder.add(value)
        builder.last = start
    elif isinstance(event, yaml.ScalarEvent):
        if builder.wants_key:
            builder.key(event.value, start)
        else:
            value = Value("scalar", start, end, event.value)
            builder.add(value)
            _remember(event.anchor, value, anchors)
        builder.last = end
    elif isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
        if builder.wants_key:
            builder.key("?", start)  # a collection as a key: its content stays, under a name of no meaning
        value = Value("map" if isinstance(event, yaml.MappingStartEvent) else "list", start, start)
        builder.add(value, opens=True)
        _remember(event.anchor, value, anchors)
        builder.last = start
    elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
        # A block ends with its last value; the event stands where the next token does. A flow ends at its bracket.
        if end > start or _width(event):
            builder.last = end
        builder.close(builder.last)


def _rows(event: yaml.Event) -> tuple[int, int]:
    """First and last row of what an event spans."""
    start = event.start_mark.line if event.start_mark is not None else 0
    if event.end_mark is None:
        return start, start
    end = event.end_mark.line
    return start, max(start, end - 1 if event.end_mark.column == 0 else end)


def _width(event: yaml.Event) -> int:
    if event.start_mark is None or event.end_mark is None:
        return 0
    return event.end_mark.column - event.start_mark.column


def _remember(anchor: str | None, value: Value, anchors: dict[str, Value]) -> None:
    if anchor:
        anchors[anchor] = value
