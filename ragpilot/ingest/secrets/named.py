"""Values that look random, given to names that say secret."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ragpilot.ingest.secrets.looks import is_jumbled, is_mixed, is_words, looks_random
from ragpilot.ingest.secrets.values import Found, places

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


def find_named(text: str, lowered: str) -> Iterator[Found]:
    """Values by the names that they are given to. ``lowered``: the text in lower case. Linear in its length."""
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
