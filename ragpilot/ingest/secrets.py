"""Secrets in text: found by shape, by name, and by place; replaced before anything is embedded, stored or shown."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ragpilot.ingest.access_files import token_hashes
from ragpilot.ingest.secret_arguments import find_in_arguments
from ragpilot.ingest.secret_code import find_in_code
from ragpilot.ingest.secret_commands import find_in_commands, places
from ragpilot.ingest.secret_connections import find_in_connections
from ragpilot.ingest.secret_directives import find_in_directives
from ragpilot.ingest.secret_fallbacks import find_in_fallbacks
from ragpilot.ingest.secret_files import find_in_files
from ragpilot.ingest.secret_looks import is_jumbled, is_mixed, is_words, looks_random
from ragpilot.ingest.secret_manifests import find_in_manifests
from ragpilot.ingest.secret_patterns import TOKEN_KINDS, TokenKind
from ragpilot.ingest.secret_places import find_in_places
from ragpilot.ingest.secret_settings import find_in_settings
from ragpilot.ingest.secret_sql import find_in_sql

_KEY_BEGIN = re.compile(r"-----BEGIN ([A-Z0-9 ]{0,40})PRIVATE KEY(?: BLOCK)?-----")
_KEY_END = "-----END "
_KEY_MOST = 32_768
_KEY_BODY = re.compile(r"(?:[\s\\nrt\"'+,|>#*/;.:-]{0,40}[A-Za-z0-9+/=]{32,200}){1,600}")
_KEY_LETTERS = re.compile(r"[A-Za-z0-9+/]{24}")

_NAME_ANCHORS = tuple(
    """
    pass pwd secret token credential api access account private encryption signing auth client hmac deploy licens licenc
    master admin webhook service subscription functions app storage server ssh kennwort senha contrase motdepasse
    mot_de psk
    """.split()
)
_NAMED_VALUE = re.compile(
    r"(?:(?P<password>passw(?:ort|(?:or)?d)|pass[_-]?phrase|pwd|kennwort|senha|contrase(?:n|\u00f1)a|mot_?de_?passe|(?<![a-z])psk(?![a-z])"
    r"|(?:(?<![a-z0-9])|(?<=db)|(?<=ftp|key)|(?<=user|smtp|mail|root|auth)|(?<=mysql|redis|admin|store))pass(?![a-z]|_[a-z]))"
    r"|secret|token|credentials?"
    r"|(?:api|access|account|private|encryption|signing|auth|client|hmac|deploy|licen[sc]e|master|admin|webhook|service"
    r"|subscription|functions|app|storage|server|ssh)[_-]?key)"
    r"(?P<rest>[A-Za-z0-9_]{0,24})(?:[\"']\]?\s{0,3}(?P<comma>,)|\\?[\"'\]]{0,3}\s{0,4}[ \t]{0,40}"
    r"(?::\s{0,2}(?:&'static )?[\w&.:<>\[\]?| ]{1,40}?\s{0,3}=(?![=>])|\s{1,3}as\s{1,3}string\s{0,3}=|:=|=>|->|[=:>]"
    r"|(?P<compared>===?|!==?|\.equals(?:IgnoreCase)?\(|eq\s))|[\"']\s{1,4}value\s{0,3}=)\s{0,4}[ \t]{0,40}"
    r"(?P<call>(?:new\s{1,4})?[A-Za-z_][\w.:]{0,60}\(\s{0,20}(?:[A-Za-z_][\w.:]{0,60}\(\s{0,20})?)?"
    r"(?:(?:\(\s{0,60}){0,2}[brufln@$#]{0,2}(?P<quote>\\?(?:\"\"\"|'''|[\"'`]))(?P<quoted>(?:[^\"'`\s\\]|\\(?![\"'`])){6,500}+)(?P=quote)"
    r"|(?P<bare>[A-Za-z0-9+/_=.~!@$%^&*-]{12,2000}+)(?=[ \t]{0,20}(?:[#;\"'`]|$|</)))",
    re.IGNORECASE | re.MULTILINE,
)
_NO_SECRET_SUFFIX = re.compile(
    r".*(?:name|path|file|dir|url|uri|endpoint|type|kind|field|header|param|label|env|var|length|len|size|regex|pattern|format"
    r"|prefix|suffix|ttl|expir\w*|timeout|count|limit|hint|placeholder|message|error|class|cls|id|ids|provider|policy|version"
    r"|algorithm|algo|hasher|scheme|method|mode)s?",
    re.IGNORECASE,
)
_ENCODED = re.compile(r"[A-Za-z0-9+/_=-]{20,}")
_SETTER = re.compile(
    r"(?:(?:set|put|add|append|define|insert|emplace)\w{0,20}\(|\{)\s{0,4}[\"'][\w.-]{0,60}$", re.IGNORECASE
)
"""What stands before a name that is given a value: of a call, or of a pair in braces."""
_BEFORE = 90
_SHORT, _MIXED, _LONG = 8, 12, 24

_DISCORD = re.compile(
    r"(?<![\w.-])(?P<user>[MNO][A-Za-z0-9_-]{23,27})\.[A-Za-z0-9_-]{6}\.(?P<proof>[A-Za-z0-9_-]{27,40})(?![\w.-])"
)


def redact(text: str) -> tuple[str, tuple[str, ...]]:
    """The text with every secret replaced by ``[redacted:<kind>]``, and the kinds found, sorted.

    Lines stay where they are. Takes time linear in the text's length.
    """
    found = _free_of_overlaps(_find(text))
    if not found:
        return text, ()
    pieces: list[str] = []
    at = 0
    for start, end, kind in found:
        pieces += (text[at:start], f"[redacted:{kind}]", "\n" * text.count("\n", start, end))
        at = end
    pieces.append(text[at:])
    return "".join(pieces), tuple(sorted({kind for _, _, kind in found}))


def _find(text: str) -> Iterator[tuple[int, int, str]]:
    lowered = _lowered(text)
    yield from _private_keys(text)
    for kind in TOKEN_KINDS:
        for match in _matches(kind, lowered if kind.ignore_case else text, text):
            yield *match.span("value" if "value" in kind.expression.groupindex else 0), kind.name
    for match in _DISCORD.finditer(text):
        if is_mixed(match["user"]) and is_mixed(match["proof"]):
            yield *match.span(), "discord-token"
    yield from token_hashes(text)
    yield from find_in_connections(text, lowered)
    yield from _named_values(text, lowered)
    yield from find_in_commands(text, lowered)
    yield from find_in_places(text, lowered)
    yield from find_in_sql(text, lowered)
    yield from find_in_code(text, lowered)
    yield from find_in_files(text)
    yield from find_in_manifests(text)
    yield from find_in_settings(text, lowered)
    yield from find_in_fallbacks(text)
    yield from find_in_arguments(text, lowered)
    yield from find_in_directives(text, lowered)


def _lowered(text: str) -> str:
    """The text in lower case, letter for letter: one letter of Unicode would become two."""
    lowered = text.lower()
    return lowered if len(lowered) == len(text) else text.replace("\u0130", "i").lower()


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


def _private_keys(text: str) -> Iterator[tuple[int, int, str]]:
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


def _named_values(text: str, lowered: str) -> Iterator[tuple[int, int, str]]:
    """Values that look random, given to a name that says secret."""
    for place in places(lowered, _NAME_ANCHORS):
        match = _NAMED_VALUE.match(text, place)
        if match is None or _NO_SECRET_SUFFIX.fullmatch(match["rest"]) or match["rest"][:1].islower():
            continue
        if lowered.endswith("publickey", 0, place):  # the token of a signed .NET assembly, which is public
            continue
        group = "quoted" if match["quoted"] else "bare"
        if match["comma"] and not _is_set(text, place, match):
            continue
        if len(match[group]) < _SHORT and not match["password"]:
            continue  # of other secrets nothing so short is one
        if match["compared"] and (group == "bare" or not match["password"]):
            continue  # tokens of a language are compared with everything that it knows
        if match["call"] and (group == "bare" or not _ENCODED.fullmatch(match["quoted"])):
            continue  # a call that decodes a key is given nothing else; any other may be given anything
        if not match["password"] and is_words(match[group]):
            continue
        jumbled = match["password"] and group == "quoted" and not match["call"] and is_jumbled(match[group])
        jumbled = jumbled or (len(match[group]) >= _LONG and is_jumbled(match[group]))
        if jumbled or looks_random(match[group], quoted=group == "quoted"):
            yield *match.span(group), "assigned-secret"


def _is_set(text: str, place: int, match: re.Match[str]) -> bool:
    """``define('DB_PASSWORD', '…')`` gives a value to a name; ``f("token", "abc1")`` may mean anything."""
    if text[place : match.start("comma")].rstrip(" \t\"'").isupper():
        return True
    value = match["quoted"] or ""
    if len(value) < _MIXED or not is_mixed(value):
        return False
    return _SETTER.search(text[max(0, place - _BEFORE) : place]) is not None


def _free_of_overlaps(found: Iterator[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    """In order of place; of two that overlap, the one that begins first, then the longer one."""
    kept: list[tuple[int, int, str]] = []
    for start, end, kind in sorted(found, key=lambda item: (item[0], -item[1])):
        if not kept or start >= kept[-1][1]:
            kept.append((start, end, kind))
    return kept
