"""What a rendering leaves out of the rows it stands for, so that each word of them is found: nothing is lost."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Sequence

from ragpilot.ingest.chunkers.lines import Lines
from ragpilot.ingest.chunkers.trees import Value

_WORD = re.compile(r"\w+")
_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{4}|.)")
_COMMENT = re.compile(r"(?:^|\s)#.*")
_LEAST_WORD = 3
"""Shorter words of a row are brackets and joints."""
_DEEPEST = 30
"""Deeper values are not laid out; their words are listed."""
_WIDEST = 120
"""A map of single values is written on one line up to so many characters."""
_BY_FORM = frozenset(
    "summary description operationid parameters name in required schema type properties items content requestbody"
    " responses tags format enum allof oneof anyof additionalproperties consumes produces security headers"
    " object array string integer number boolean true false".split()
)
"""Words that the form of a rendering says: ``{…}`` is an object, ``*`` is required."""
_WHOLE = frozenset(("example", "examples", "externalDocs", "links", "callbacks", "servers"))
"""What is under these, or under a vendor's ``x-…``, is laid out as it is; gaps in an example would mislead."""

Entries = Iterable[tuple[str, Value]]


def words(text: str) -> set[str]:
    """The words of a text, in lower case."""
    return set(_WORD.findall(text.casefold()))


class Remainder:
    """Lays out what the renderings of one document do not say. Each value is laid out once, however many aliases."""

    def __init__(self) -> None:
        self._seen: set[int] = set()

    def write(self, entries: Entries, text: str, start: int, end: int) -> str:
        """Entries that ``text`` does not say, a line each and deeper ones indented below; empty when it says all.

        Only what stands on rows ``start`` to ``end`` counts: what an alias brings is where it is defined.
        """
        said = words(text) | _BY_FORM
        return "\n".join(line for group in self._groups(entries, said, (start, end), 0, whole=False) for line in group)

    def _groups(
        self, entries: Entries, said: set[str], rows: tuple[int, int], depth: int, *, whole: bool
    ) -> Iterator[list[str]]:
        """The lines of each entry that has any."""
        for key, value in entries:
            if not whole and key == "$ref":
                continue  # its target is written out, or named
            name = " ".join(key.split())
            within = whole or key in _WHOLE or key.startswith("x-")
            lines, single = self._lines(value, said, rows, depth + 1, whole=within)
            if not lines and value.kind == "scalar":
                lines = self._scalar(name, value, said, rows, whole=within)
            elif single:
                lines = [f"{name}.{lines[0]}", *lines[1:]]
            elif lines:
                lines = [f"{name}: {lines[0]}"] if len(lines) == 1 else [f"{name}:", *(f" {line}" for line in lines)]
            if lines:
                yield lines

    def _scalar(self, key: str, value: Value, said: set[str], rows: tuple[int, int], *, whole: bool) -> list[str]:
        text = " ".join(value.text.split())
        new = whole or not words(text) <= said or not words(key) <= said
        return [f"{key}: {text}".rstrip()] if new and _within(value, rows) else []

    def _lines(
        self, value: Value, said: set[str], rows: tuple[int, int], depth: int, *, whole: bool
    ) -> tuple[list[str], bool]:
        """The lines of a map or a list, and whether they are all below one key."""
        if value.kind == "scalar" or depth > _DEEPEST or id(value) in self._seen or not _within(value, rows):
            return [], False
        self._seen.add(id(value))
        if value.kind == "list":
            return self._elements(value, said, rows, depth, whole=whole), False
        groups = list(self._groups(value.entries.items(), said, rows, depth, whole=whole))
        lines = [line for group in groups for line in group]
        if len(groups) > 1 and len(groups) == len(lines) and sum(map(len, lines)) <= _WIDEST:
            return [f"{{{', '.join(lines)}}}"], False
        return lines, len(groups) == 1

    def _elements(self, value: Value, said: set[str], rows: tuple[int, int], depth: int, *, whole: bool) -> list[str]:
        scalars = [element.text for element in value.elements if element.kind == "scalar" and _within(element, rows)]
        told = [" ".join(text.split()) for text in scalars if whole or not words(text) <= said]
        lines = [", ".join(told)] if told else []
        for element in value.elements:
            found, _ = self._lines(element, said, rows, depth + 1, whole=whole)
            if not found:
                continue
            name = "" if whole else element.string("name")
            first = f"- {name}: {found[0]}" if name else f"- {found[0]}"
            lines += [first, *(f"  {line}" for line in found[1:])]
        return [lines[0].removeprefix("- ")] if len(lines) == 1 else lines


def _within(value: Value, rows: tuple[int, int]) -> bool:
    return rows[0] <= value.start and value.end <= rows[1]


def complete(lines: Lines, renderings: Sequence[tuple[int, int, str]], kept: Container[int]) -> list[str]:
    """The renderings, each given by its rows, with the words of these rows that none of them has yet.

    Comments are added as they stand, keys and names in one list at the end. Rows in ``kept`` are in a chunk anyway.
    """
    texts = [[text] for _, _, text in renderings]
    said = [words(text) for _, _, text in renderings]
    loose: list[list[str]] = [[] for _ in renderings]
    for row, holders in _holders(renderings).items():
        if row in kept:
            continue
        missing = [
            word for word in _row_words(lines.rows[row]) if not any(word.casefold() in said[at] for at in holders)
        ]
        comment = _COMMENT.search(lines.rows[row])
        first = holders[0]
        if missing and comment is not None and not words(comment[0]).isdisjoint(map(str.casefold, missing)):
            texts[first].append(comment[0].strip())
            said[first] |= words(comment[0])
            missing = [word for word in missing if word.casefold() not in said[first]]
        loose[first] += missing
        said[first].update(map(str.casefold, missing))
    for text, further in zip(texts, loose, strict=True):
        if further:
            text.append(f"written with: {', '.join(further)}")
    return ["\n".join(text) for text in texts]


def _holders(renderings: Sequence[tuple[int, int, str]]) -> dict[int, list[int]]:
    """Which renderings stand for each row."""
    holders: dict[int, list[int]] = {}
    for at, (start, end, _) in enumerate(renderings):
        for row in range(start, end + 1):
            holders.setdefault(row, []).append(at)
    return holders


def _row_words(row: str) -> list[str]:
    r"""The words of a row, each once, as its quotes mean them: ``"one\ntwo"`` holds ``two``."""
    found = _WORD.findall(row)
    if "\\" in row:
        unescaped = _WORD.findall(_ESCAPE.sub(" ", row))
        found = unescaped if '"' in row else [word for word in found if word in unescaped]
    return list(dict.fromkeys(word for word in found if len(word) >= _LEAST_WORD))
