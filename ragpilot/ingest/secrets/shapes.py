"""Secrets by their shape alone: tokens of the kinds that are known, and private keys."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ragpilot.ingest.secrets.looks import is_mixed
from ragpilot.ingest.secrets.token_kinds import TOKEN_KINDS, TokenKind
from ragpilot.ingest.secrets.values import Found, places

_KEY_BEGIN = re.compile(r"-----BEGIN ([A-Z0-9 ]{0,40})PRIVATE KEY(?: BLOCK)?-----")
_KEY_END = "-----END "
_KEY_MOST = 32_768
_KEY_BODY = re.compile(r"(?:[\s\\nrt\"'+,|>#*/;.:-]{0,40}[A-Za-z0-9+/=]{32,200}){1,600}")
_KEY_LETTERS = re.compile(r"[A-Za-z0-9+/]{24}")

_DISCORD = re.compile(
    r"(?<![\w.-])(?P<user>[MNO][A-Za-z0-9_-]{23,27})\.[A-Za-z0-9_-]{6}\.(?P<proof>[A-Za-z0-9_-]{27,40})(?![\w.-])"
)


def find_shapes(text: str, lowered: str) -> Iterator[Found]:
    """Keys and tokens. ``lowered``: the text in lower case, letter for letter. Linear in its length."""
    yield from _private_keys(text)
    for kind in TOKEN_KINDS:
        for match in _matches(kind, lowered if kind.ignore_case else text, text):
            yield *match.span("value" if "value" in kind.expression.groupindex else 0), kind.name
    for match in _DISCORD.finditer(text):
        if is_mixed(match["user"]) and is_mixed(match["proof"]):
            yield *match.span(), "discord-token"


def _matches(kind: TokenKind, searched: str, text: str) -> Iterator[re.Match[str]]:
    for place in places(searched, kind.anchors):
        start = place - kind.lead
        if start < 0 or (kind.standalone and _joined(text, start)):
            continue
        match = kind.expression.match(text, start)
        if match is not None:
            yield match


def _joined(text: str, start: int) -> bool:
    """Whether the character before ``start`` makes it the middle of a longer word."""
    before = text[start - 1 : start] if start else ""
    return before.isalnum() or before in ("_", "-")


def _private_keys(text: str) -> Iterator[Found]:
    """Whole blocks, and blocks whose end is missing; a begin line alone, as in code that looks for one, is no key."""
    end = -1
    for begin in _KEY_BEGIN.finditer(text):
        start = begin.end()
        if end < start:
            end = text.find(_KEY_END, start)
            end = len(text) if end < 0 else end
        if end < min(len(text), start + _KEY_MOST) and _KEY_LETTERS.search(text, start, end):
            line_end = text.find("-----", end + len(_KEY_END))
            yield begin.start(), line_end + 5 if 0 < line_end < end + 80 else end, "private-key"
        elif body := _KEY_BODY.match(text, start):
            yield begin.start(), body.end(), "private-key"
