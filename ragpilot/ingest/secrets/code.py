"""Passwords that code sets, compares with, lists, or falls back to."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ragpilot.ingest.secrets.looks import is_words, looks_random
from ragpilot.ingest.secrets.placeholders import is_literal
from ragpilot.ingest.secrets.values import Found, literal_in, places

KIND = "assigned-secret"

_PASSWORD_ANCHORS = ("password", "passwd", "passphrase", "pwd")
_WORD = r"(?:pass(?:word|wd|phrase)|pwd)"
_STRING = r"(?P<quote>\\?[\"'])(?P<quoted>(?:[^\s\"'\\]|\\(?![\"'])){1,200})(?P=quote)"

_CALLED = re.compile(rf"{_WORD}\(\s{{0,20}}@?{_STRING}", re.IGNORECASE)
_SETS = re.compile(r"(?:^|[^A-Za-z])(?:[sS]et|[wW]ith|[uU]se|[uU]sing)(?:_?[A-Za-z][a-z0-9]{0,14}){0,2}_?$")
_LONGEST_NAME = 40

_DEFAULT = re.compile(
    r"\$\{[\w.-]{0,80}?(?:(?P<password>password|passwd|passphrase|pwd|[._-]pass)|secret|token|key)\d{0,2}"
    r":-?(?P<bare>[^\s{}\"'$?:+=-][^\s{}\"'$]{0,200})\}",
    re.IGNORECASE,
)
_SLICE = re.compile(r"\w{0,12}:-?\w{0,6}")
_LEAST_DEFAULT = 12

_COMPARED = re.compile(
    r"(?:compare_digest|secure_compare|timingSafeEqual|constant_time_compare|strn?cmp|Equals?|equals)\(\s{0,8}"
    rf"[\w.$>\[\]()&-]{{0,40}}?{_WORD}(?:\(\))?,\s{{0,8}}b?{_STRING}",
    re.IGNORECASE,
)
_COMPARED_TO = re.compile(
    r"(?P<quote>[\"'])(?P<quoted>[^\s\"'\\]{6,200})(?P=quote)(?:\)?\s{0,4}(?:===?|!==?)\s{0,4}|\.equals\()"
    rf"[\w.$>-]{{0,40}}?{_WORD}(?![\w(.\[])",
    re.IGNORECASE,
)
_EQUALITY = re.compile(r"[\"'](?=\)?\s{0,4}[=!]==?|\.equals\()")

_OPENED = (
    r"(?:(?:vec!|new(?:\s\w{1,12})?\s?\[\]\s?|\[\]\w{0,12}\s?|&)?[\[({]"
    r"|[\w.]{0,16}(?:[oO]f|asList|[sS]et|list|tuple)\([\[({]?)\s{0,60}"
)
_LISTED = re.compile(
    rf"(?:(?P<password>{_WORD}(?P<many>s)?)|secrets|tokens|keys)[\"']?\]?"
    r"(?:\s{0,3}:\s{0,2}[\w\[\], .<>]{1,40}?(?=\s{0,2}=))?\s{0,3}(?::=|=>|[=:])\s{0,4}" + _OPENED,
    re.IGNORECASE,
)
_ITEM = re.compile(
    r"(?P<key>[\"'][^\"'\n]{0,80}[\"']\s{0,3}(?::|=>)\s{0,3})?[brfu]{0,2}"
    r"(?P<quote>\\?[\"'])(?P<quoted>[^\s\"'\\]{1,500})(?P=quote)"
    r"(?P<on>\s{0,8},(?:\s|(?:#|//)[^\n]{0,200}\n){0,80})?"
)
_YAML_ITEM = re.compile(
    r"[ \t]{0,4}\n[ \t]{0,40}-[ \t]{1,4}[\"']?(?P<quoted>[^\s\"'#:,]{6,200})[\"']?(?=[ \t]{0,4}(?:\n|$))"
)
_YAML_LIST = re.compile(rf"{_WORD}s[\"']?:(?=[ \t]{{0,4}}\n)", re.IGNORECASE)
_OTHER_LISTS = re.compile(r"(?:access|auth|api|bearer|secret|private|client)_?$|(?<![a-z])$", re.IGNORECASE)
_NO_PASSWORDS = re.compile(
    r"(?:common|weak|bad|invalid|wrong|banned|forbidden|blocked|black_?list(?:ed)?|denied|leaked|breached|worst|top"
    r"|known|guessable|default|example|sample|unsafe)[_-]?$",
    re.IGNORECASE,
)
_MOST_ITEMS = 200
_LEAST_TOKEN, _LEAST_PASSWORD = 16, 6


def find_in_code(text: str, lowered: str) -> Iterator[Found]:
    """Passwords by what code does with them. ``lowered``: the text in lower case. Linear in its length."""
    for place in places(text, ("${",)):
        match = _DEFAULT.match(text, place)
        if match is not None and _is_default(match):
            yield from literal_in(match, KIND)
    if not any(anchor in lowered for anchor in (*_PASSWORD_ANCHORS, "secrets", "tokens", "keys")):
        return
    for place in places(lowered, _PASSWORD_ANCHORS):
        yield from _calls(text, place)
    yield from _comparisons(text)
    for place in places(lowered, (*_PASSWORD_ANCHORS, "secrets", "tokens", "keys")):
        yield from _lists(text, place)


def _is_default(match: re.Match[str]) -> bool:
    """``${db.password:…}``, ``${DB_PASSWORD:-…}``; what is cut out of a variable, ``${x:1:2}``, is none."""
    value = match["bare"]
    if match["password"]:
        return _SLICE.fullmatch(value) is None
    return len(value) >= _LEAST_DEFAULT and looks_random(value, quoted=True) and not is_words(value)


def _calls(text: str, place: int) -> Iterator[Found]:
    """``x.setPassword("…")`` is given nothing else; ``x.password("…")`` may say something about it."""
    match = _CALLED.match(text, place)
    if match is None:
        return
    before = text[max(0, place - _LONGEST_NAME) : place]
    if _SETS.search(before) or (before.endswith(".") and looks_random(match["quoted"], quoted=True)):
        yield from literal_in(match, KIND)


def _comparisons(text: str) -> Iterator[Found]:
    for match in _COMPARED.finditer(text):
        if is_password(match["quoted"]):
            yield *match.span("quoted"), KIND
    for end in _EQUALITY.finditer(text):
        start = text.rfind(end[0], max(0, end.start() - 200), end.start())
        match_to = _COMPARED_TO.match(text, start) if start >= 0 else None
        if match_to is not None and is_password(match_to["quoted"]):
            yield *match_to.span("quoted"), KIND


def _lists(text: str, place: int) -> Iterator[Found]:
    before = text[max(0, place - _LONGEST_NAME) : place]
    if _YAML_LIST.match(text, place):
        at, item = text.index(":", place) + 1, _YAML_ITEM
        passwords = many = True
    elif (listed := _LISTED.match(text, place)) is not None:
        at, item = listed.end(), _ITEM
        passwords, many = listed["password"] is not None, listed["many"] is not None
        if not passwords and not _OTHER_LISTS.search(before):
            return
    else:
        return
    if _NO_PASSWORDS.search(before):
        return
    for _ in range(_MOST_ITEMS):
        match = item.match(text, at)
        if match is None or (match.groupdict().get("key") and not (passwords and many)):
            return
        value = match["quoted"]
        if is_password(value) if passwords else _is_token(value):
            yield *match.span("quoted"), KIND
        if item is _ITEM and not match["on"]:
            return
        at = match.end()


def is_password(value: str) -> bool:
    """Whether a string that a password is compared with, or that is listed as one, is one: words are not enough."""
    return len(value) >= _LEAST_PASSWORD and is_literal(value) and looks_random(value, quoted=True)


def _is_token(value: str) -> bool:
    return len(value) >= _LEAST_TOKEN and looks_random(value, quoted=True) and not is_words(value)
