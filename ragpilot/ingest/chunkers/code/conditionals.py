"""Conditional compilation that cuts through statements, which no grammar of C, C++ or C# can read.

``#if A`` … ``public`` … ``#else`` … ``internal`` … ``#endif`` … ``class B`` makes a whole file one error. Of such
branches the first is left to the parser, and its rows stand where they were; the others, and the directives, are
blanked. Branches of whole statements are left alone, for grammars read them all.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_DIRECTIVE = re.compile(
    rb"[ \t]*(?:\xef\xbb\xbf)?#[ \t]*(?:(?P<begin>if(?:n?def)?)|(?P<next>el(?:se|if(?:n?def)?))|(?P<end>endif))\b"
    rb"(?P<condition>[^\n]*)"
)
_OTHER_DIRECTIVE = re.compile(rb"[ \t]*#")
_NOISE = re.compile(
    rb"//[^\n]*|/\*.*?(?:\*/|\Z)|@\"(?:[^\"]|\"\"){0,4000}\"|\"\"\".*?(?:\"\"\"|\Z)"
    rb"|\"(?:[^\"\\\n]|\\.){0,1000}\"|'(?:[^'\\\n]|\\.){1,8}'",
    re.DOTALL,
)
_NEVER = re.compile(rb"[ \t]*(?:0|false)[ \t\r]*(?://.*|/\*.*)?")
_FRAGMENT_BEGINS = (b"=>", b"=", b".", b",", b")", b"?", b":", b"&&", b"||", b"+", b"|", b"else", b"where ", b"{")
_STATEMENT_ENDS = (b";", b"}", b":")
_EDGE = 16
_MOST_OPEN = 200
"""Deeper nesting is no code that anybody wrote."""


@dataclass(slots=True)
class _Branch:
    never: bool
    start: int
    end: int = 0
    rows: list[bytes] = field(default_factory=list)


@dataclass(slots=True)
class _Group:
    branches: list[_Branch] = field(default_factory=list)
    directives: list[tuple[int, int]] = field(default_factory=list)


def without_fragments(data: bytes) -> bytes:
    """The same bytes with one branch left where the branches of a condition are no whole statements."""
    if b"endif" not in data:
        return data
    found = bytearray(data)
    open_groups: list[_Group] = []
    for start, row in _rows(data):
        match = _DIRECTIVE.match(row)
        if match is None:
            if open_groups and not _OTHER_DIRECTIVE.match(row):
                open_groups[-1].branches[-1].rows.append(row)
            continue
        end = start + len(row)
        if match["begin"] is not None and len(open_groups) < _MOST_OPEN:
            never = match["begin"] == b"if" and _NEVER.fullmatch(match["condition"]) is not None
            open_groups.append(_Group([_Branch(never, end)], [(start, end)]))
        elif open_groups:
            group = open_groups[-1]
            group.branches[-1].end = start
            group.directives.append((start, end))
            if match["next"] is not None:
                group.branches.append(_Branch(never=False, start=end))
                continue
            open_groups.pop()
            kept = _settle(group, found)
            if open_groups:  # what encloses it reads on with what is left
                open_groups[-1].branches[-1].rows.append(_summary(kept))
    return bytes(found)


def _rows(data: bytes) -> list[tuple[int, bytes]]:
    """Rows and where they begin; a directive that goes on behind a backslash is one."""
    rows: list[tuple[int, bytes]] = []
    at = 0
    for row in data.split(b"\n"):
        if rows and rows[-1][1].endswith((b"\\", b"\\\r")) and _OTHER_DIRECTIVE.match(rows[-1][1]):
            rows[-1] = (rows[-1][0], rows[-1][1] + b"\n" + row)
        else:
            rows.append((at, row))
        at += len(row) + 1
    return rows


def _settle(group: _Group, found: bytearray) -> bytes:
    """Blank what a parser should not see of a group; what is left, without comments and strings."""
    texts = [_NOISE.sub(b" ", b"\n".join(branch.rows)).strip() for branch in group.branches]
    if all(map(_is_whole, texts)):
        return b"\n".join(texts)
    chosen = next(
        (at for at, text in enumerate(texts) if text and not group.branches[at].never),
        next((at for at, text in enumerate(texts) if text), 0),
    )
    for start, end in group.directives:
        blank(found, start, end)
    for at, branch in enumerate(group.branches):
        if at != chosen:
            blank(found, branch.start, branch.end)
    return texts[chosen]


def _summary(text: bytes) -> bytes:
    """How a text begins and ends, with as many braces open: nested conditions are not read again at every level."""
    if len(text) <= 2 * _EDGE:
        return text
    edges = text[:_EDGE], text[-_EDGE:]
    surplus = text.count(b"{") - text.count(b"}") - sum(edge.count(b"{") - edge.count(b"}") for edge in edges)
    return edges[0] + b" " + (b"{" if surplus > 0 else b"}") * abs(surplus) + b" " + edges[1]


def _is_whole(text: bytes) -> bool:
    """Whether the text of a branch is nothing, or statements from the first to the last."""
    if not text:
        return True
    complete = text.endswith(_STATEMENT_ENDS) and not text.startswith(_FRAGMENT_BEGINS)
    return complete and text.count(b"{") == text.count(b"}")


def blank(found: bytearray, start: int, end: int) -> None:
    """Spaces in place of all but line ends."""
    found[start:end] = bytes(byte if byte in b"\r\n" else 0x20 for byte in found[start:end])
