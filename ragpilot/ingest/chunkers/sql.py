"""SQL of any dialect by statement: semicolons outside strings, comments, dollar quotes and procedure bodies."""

from __future__ import annotations

import re
from dataclasses import replace

from ragpilot.ingest.chunkers.lines import Lines
from ragpilot.ingest.chunkers.parts import Part, fill

_TOKENS = re.compile(
    r"(?P<comment>--[^\n]*|/\*.*?(?:\*/|\Z))"
    r"|(?P<string>'(?:[^'\\]|\\.|'')*'|\"[^\"\n]*\"|`[^`\n]*`|\[[\w .#$@/-]*\]"
    r"|(?P<dollar>\$\w*\$).*?(?:(?P=dollar)|\Z))"
    r"|(?P<word>\b(?:BEGIN|CASE|END)\b(?:[ \t]+(?:IF|LOOP|WHILE|REPEAT|CASE|TRANSACTION|TRAN|WORK)\b)?)"
    r"|(?P<mark>;|\x1f|^GO[ \t]*$|^/[ \t]*$|\n)",
    re.DOTALL | re.IGNORECASE | re.MULTILINE,
)
_OTHER_DELIMITER = re.compile(
    r"^DELIMITER[ \t]+(?P<mark>[^\s;]+)[ \t]*$(?P<region>.*?)(?:^DELIMITER[ \t]+;[ \t]*$|\Z)",
    re.DOTALL | re.IGNORECASE | re.MULTILINE,
)
_NAME = r"(?:\"[^\"\n]+\"|`[^`\n]+`|\[[^\]\n]+\]|[\w$#]+)"
_QUALIFIED = rf"{_NAME}(?:\.{_NAME})*"
_DECLARES = re.compile(
    r"^\s*(?:CREATE|ALTER|DROP|REPLACE)\s+(?:OR\s+(?:REPLACE|ALTER)\s+)?"
    r"(?:(?:GLOBAL|LOCAL|TEMP|TEMPORARY|UNLOGGED|MATERIALIZED|UNIQUE|CLUSTERED|NONCLUSTERED|EXTERNAL|VIRTUAL|RECURSIVE"
    r"|FORCE|EDITIONABLE|NONEDITIONABLE|PUBLIC|PRIVATE|BITMAP|FULLTEXT|SPATIAL|TRANSIENT|SECURE|TRUSTED|COLUMNSTORE"
    r"|DEFINER\s*=\s*\S+|ALGORITHM\s*=\s*\w+|SQL\s+SECURITY\s+\w+)\s+)*"
    r"(?:(?:FOREIGN\s+)?TABLE|VIEW|FUNCTION|PROCEDURE|PROC|(?:EVENT\s+)?TRIGGER|INDEX|TYPE(?:\s+BODY)?|SEQUENCE|SCHEMA"
    r"|DATABASE|DOMAIN|POLICY|ROLE|USER|EXTENSION|PACKAGE(?:\s+BODY)?|MACRO|AGGREGATE|RULE|SERVER|COLLATION|PUBLICATION"
    r"|SUBSCRIPTION|SYNONYM|EVENT|CONSTRAINT\s+TRIGGER|STREAM|TASK|STAGE|DICTIONARY)\s+(?:CONCURRENTLY\s+)?(?:IF\s+(?:NOT\s+)?EXISTS\s+)?(?:ONLY\s+)?(?P<name>"
    + _QUALIFIED
    + ")"
    r"|^\s*(?:INSERT\s+(?:OR\s+\w+\s+)?INTO|UPDATE|DELETE\s+FROM|MERGE\s+INTO|COPY)\s+(?P<target>" + _QUALIFIED + ")",
    re.IGNORECASE,
)
_ROUTINE = re.compile(
    r"^\s*(?:CREATE|ALTER)\b.{0,80}?\b(?:FUNCTION|PROCEDURE|PROC|TRIGGER|PACKAGE)\b", re.IGNORECASE | re.DOTALL
)
_PACKAGE = re.compile(
    rf"\s*CREATE\b[\w\s]{{0,60}}?\b(?:PACKAGE|TYPE\s+(?=BODY))(?:\s+BODY)?\s+(?:{_NAME}\.)?(?P<last>{_NAME})",
    re.IGNORECASE,
)
_BODY = re.compile(r"\b(?:PACKAGE|TYPE)\s+BODY\b", re.IGNORECASE)
_MEMBER = re.compile(
    rf"^[ \t]*(?:(?:MEMBER|STATIC|CONSTRUCTOR|MAP|ORDER)[ \t]+)*(?:PROCEDURE|FUNCTION)[ \t]+({_NAME})", re.IGNORECASE
)
_CLOSED = re.compile(rf"[ \t]+({_NAME})\s*;")
_HEAD, _HEAD_ROWS = 400, 20


def read_statements(lines: Lines) -> list[Part]:
    """Statements with the comments right above them; those that create something stand apart, under its name."""
    text = _OTHER_DELIMITER.sub(_with_one_delimiter, lines.joined())
    parts: list[Part] = []
    comments: set[int] = set()
    row = depth = position = offset = 0
    begun = -1
    package: re.Match[str] | None = None  # the head of the one that the statement creates
    fresh = True  # whether nothing has been seen of the statement that would tell what it is
    for token in _TOKENS.finditer(text):
        before = text[position : token.start()]
        position = token.end()
        kind, found = token.lastgroup, token.group()
        if begun < 0 and (before.strip() or kind in ("string", "word", "dollar")):
            begun, offset, fresh = row, token.start() - len(before.lstrip()), True
        newlines = found.count("\n")
        if fresh and begun >= 0 and (kind == "word" or found == ";"):
            fresh, package = False, _PACKAGE.match(text, offset)
            depth = int(package is not None)  # its own END closes it, without a BEGIN
        if kind == "comment" and begun < 0:
            comments.update(range(row, row + newlines + 1))
        elif kind == "word" and begun >= 0:
            closed = _CLOSED.match(text, position) if package is not None else None
            if package is not None and closed is not None and closed[1].upper() == package["last"].upper():
                depth = 0
            else:
                depth = _depth(depth, found.upper(), text[offset : offset + _HEAD])
        elif kind == "mark" and found != "\n" and begun >= 0 and (depth == 0 or found != ";"):
            parts.append(_part(begun, row, text[offset : min(position, offset + _HEAD)]))
            begun, depth = -1, 0
        row += newlines
    if begun >= 0:
        parts.append(_part(begun, len(lines) - 1, text[offset : offset + _HEAD]))
    return fill(lines, _with_comments(parts, comments))


def split_package(lines: Lines, part: Part) -> list[Part]:
    """The procedures and functions of a package's body as parts of their own, each with the comments above it."""
    if not _BODY.search(lines.text(part.start, min(part.end, part.start + _HEAD_ROWS))):
        return [part]
    found = [part]
    for row in range(part.start, part.end + 1):
        text = lines.rows[row]
        if len(text) > _HEAD or (member := _MEMBER.match(text)) is None:
            continue
        start = row
        while start - 1 > found[-1].start and lines.rows[start - 1].lstrip().startswith(("--", "/*", "*")):
            start -= 1
        if start > found[-1].start:
            found[-1] = replace(found[-1], end=start - 1)
            found.append(Part(start, part.end, f"{part.name}.{member[1].strip(chr(34))}", apart=True))
    return found


def _with_one_delimiter(match: re.Match[str]) -> str:
    """What stands between ``DELIMITER //`` and ``DELIMITER ;``, as long as it was, with one character for the mark."""
    mark, region = match["mark"], match["region"]
    region = region.replace(";", " ").replace(mark, "\x1f".ljust(len(mark)))
    head, tail = match.start("region") - match.start(), match.end() - match.end("region")
    return " " * head + region + " " * tail


def _depth(depth: int, word: str, head: str) -> int:
    """Nesting of BEGIN and CASE, in routines alone: elsewhere BEGIN opens a transaction."""
    if not _ROUTINE.match(head):
        return 0
    if word in ("BEGIN", "CASE"):
        return depth + 1
    return max(depth - 1, 0) if word in ("END", "END CASE") else depth


def _part(start: int, end: int, head: str) -> Part:
    match = _DECLARES.match(head)
    if match is None:
        return Part(start, end, "")
    name = (match["name"] or match["target"]).translate(str.maketrans("", "", '"`[]')).rstrip(".(")
    return Part(start, end, name, apart=match["name"] is not None)


def _with_comments(parts: list[Part], comments: set[int]) -> list[Part]:
    found: list[Part] = []
    for part in parts:
        start = part.start
        while start - 1 in comments:
            start -= 1
        found.append(Part(start, part.end, part.name, part.apart))
    return found
