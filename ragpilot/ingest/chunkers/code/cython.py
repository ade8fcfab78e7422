"""Cython as Python that its grammar reads: every name where it stood, and C's types blanked."""

from __future__ import annotations

import re

_C = rb"^(?P<indent>[ \t]*)(?P<c>cp?def|ctypedef)\b"
_TYPE = re.compile(
    _C + rb"[^\n()=#:\"']{0,80}?\b(?:class|struct|union|enum|cppclass|fused)\b(?P<name>[ \t]+\w+)?(?P<rest>[^\n#]*)",
    re.MULTILINE,
)
_INNER_TYPE = re.compile(
    rb"^[ \t]+(?:packed[ \t]+)?(?P<kind>struct|union|enum|cppclass)\b(?P<name>[ \t]+\w+)?[^\n:]*:", re.MULTILINE
)
_STATEMENT = re.compile(rb"^[ \t]*(?P<it>DEF|include)\b(?=[ \t])", re.MULTILINE)
_BLOCK = re.compile(_C + rb"(?:[^\n()=#:\"']|\"[^\"\n]*\"|'[^'\n]*'){0,200}:[ \t]*(?:#[^\n]*)?$", re.MULTILINE)
_FUNCTION = re.compile(
    rb"^(?P<indent>[ \t]*)(?P<c>cp?def|def)(?P<words>[ \t][^\n()=#:\"']{0,200}?)(?P<name>\b[A-Za-z_]\w*)[ \t]*"
    rb"\((?P<given>(?:[^()]|\([^()]{0,400}\)){0,4000})\)(?P<tail>[^\n#:]{0,120})(?P<colon>:?)",
    re.MULTILINE,
)
_VALUE = re.compile(_C + rb"[ \t][^\n=#\"']{0,200}?(?P<name>\b[A-Za-z_]\w*)[ \t]*(?P<value>=[^\n]*)?$", re.MULTILINE)
_MEMBER = re.compile(
    rb"(?!pass\b|cp?def\b|ctypedef\b|def\b|if\b|class\b|[@#\"'])[^\n]*?"
    rb"(?P<name>\b[A-Za-z_]\w*)[ \t]*(?P<end>\(|\[|=|,|;|$)"
)
_CAST = re.compile(rb"(?:(?<=[=(,:\[])|(?<=return))[ \t]?(?P<it><[\w. *\[\]:]{1,60}>)")
_NO_BODY = b"():1"
_UNTYPED = re.compile(rb"\s*\*{0,2}\w*\s*(?:[:=].*)?", re.DOTALL)
_PARAMETER = re.compile(rb"(?P<name>\w+)\s*(?:(?:not|or)\s+None\s*)?(?:=\s*(?P<value>.*))?\Z", re.DOTALL)


def as_python(data: bytes) -> bytes:
    """The same bytes with declarations as Python has them, for the parser alone."""
    found = bytearray(data.replace(b"cimport", b" import"))
    heads: set[int] = set()
    for match in _TYPE.finditer(data):
        opens = b":" in match["rest"]
        head = b"class" if opens and match["name"] else b"if 1" if opens else b"pass"
        _put(found, match.start("c"), match.start("rest") if not match["name"] else match.start("name"), head)
        if not opens:
            _put(found, match.start("c"), match.end("rest"), head)
        elif b"class" not in match[0].split()[1:2]:
            heads.add(_row_end(found, match.end()))
    for match in _INNER_TYPE.finditer(data):
        named = match["name"] is not None and match["kind"] != b"enum"
        _put(
            found,
            match.start("kind"),
            match.start("name") if named else match.end() - 1,
            b"class" if named else b"if 1",
        )
        heads.add(_row_end(found, match.end()))
    for match in _STATEMENT.finditer(data):
        _put(found, *match.span("it"), b"1;")
    for match in _BLOCK.finditer(bytes(found)):
        colon = found.rindex(b":", match.start(), match.end())
        _put(found, match.start("c"), colon, b"if 1")
        heads.add(_row_end(found, match.end()))
    _declare_members(found, heads)
    for match in _FUNCTION.finditer(bytes(found)):
        _declare_function(found, match)
    for match in _VALUE.finditer(bytes(found)):
        _put(found, match.start("c"), match.start("name"), b"pass;")
    for match in _CAST.finditer(data):
        _put(found, *match.span("it"), b"")
    return bytes(found)


def _row_end(found: bytearray, at: int) -> int:
    end = found.find(b"\n", at)
    return len(found) if end < 0 else end


def _put(found: bytearray, start: int, end: int, text: bytes) -> None:
    """A text in place of a range, and blanks for what is left of it."""
    text = text[: end - start]
    rest = bytes(byte if byte in b"\r\n" else 0x20 for byte in found[start + len(text) : end])
    found[start:end] = text + rest


def _declare_members(found: bytearray, heads: set[int]) -> None:
    """Rows below heads without ``def``: ``int first(int a)`` as ``1;  first=1``. ``heads`` are ends of those rows."""
    open_heads: list[int] = []  # columns
    at = brackets = 0
    for row in bytes(found).split(b"\n"):
        text = row.strip()
        column = len(row) - len(row.lstrip())
        while text and open_heads and column <= open_heads[-1]:
            open_heads.pop()
        end = at + len(row)
        if brackets > 0:
            _put(found, at, end, b"")
            brackets += text.count(b"(") - text.count(b")")
        elif open_heads and end not in heads and text and (match := _MEMBER.match(text)) is not None:
            name = at + column + match.start("name")
            if match.start("name") >= len(b"1;"):
                brackets = text.count(b"(") - text.count(b")")
                _put(found, at + column, name, b"1;")
                _put(found, at + column + match.end("name"), end, b"=1" if match["end"] in (b"(", b"=") else b"")
        if end in heads:
            open_heads.append(column)
        at = end + 1


def _declare_function(found: bytearray, match: re.Match[bytes]) -> None:
    if match["c"] != b"def" and not match["colon"]:
        above = found[: match.start()].rstrip().rpartition(b"\n")[2].lstrip()
        if above.startswith((b"@", b")")) and match.end("tail") - match.end("name") >= len(_NO_BODY):
            _put(found, match.start("c"), match.start("name"), b"def")
            _put(found, match.end("name"), match.end("tail"), _NO_BODY)
            return
        _put(found, match.start("c"), match.start("name"), b"pass;")
        _put(found, match.end("name"), match.end("tail"), b"=1")
        return
    _put(found, match.start("c"), match.start("name"), b"def")
    at = match.start("given")
    for parameter in _parameters(match["given"]):
        named = _PARAMETER.search(parameter)
        if named is not None and not _UNTYPED.fullmatch(parameter):
            _put(found, at, at + named.start("name"), b"")
            value = named["value"]
            _put(found, at + named.end("name"), at + len(parameter), b"" if value is None else b"=1")
        at += len(parameter) + 1
    if not match["tail"].lstrip().startswith(b"->"):
        _put(found, *match.span("tail"), b"")


def _parameters(given: bytes) -> list[bytes]:
    """What stands between commas that are in no brackets."""
    parts, depth, begun = [], 0, 0
    for at, byte in enumerate(given):
        depth += (byte in b"([{") - (byte in b")]}")
        if byte == ord(",") and depth == 0:
            parts.append(given[begun:at])
            begun = at + 1
    return [*parts, given[begun:]]
