"""Secrets in settings without quotes: lines of YAML, properties and INI, and the entries of an environment."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ragpilot.ingest.secrets.looks import has_letters_and_digits, is_jumbled, is_mixed, is_words, looks_random
from ragpilot.ingest.secrets.placeholders import is_literal
from ragpilot.ingest.secrets.values import VALUE, Found, value_group

KIND = "assigned-secret"

_PASSWORD_KEY = re.compile(
    r"(?:.*(?:passwor[dt]|passwd|pass[_-]?phrase)|(?:.*[._-])?(?:pwd|pass)|[a-z0-9]*(?:Pwd|Pass))\d{0,2}|.*(?:Password|PASSWORD|PASSWD)",
)
_SECRET_KEY = re.compile(
    r"(?:.*[._-])?(?:secret|token|(?:secret|api|access|account|private|encryption|signing|auth|client)[._-]?key)"
    r"|.*(?:Secret|Token|(?:Secret|Api|Access|Private|Encryption|Signing|Auth)Key)"
)
_NO_PASSWORD_KEY = re.compile(r".*(?:by|com|tres|sur|no|has|is|num|under|over)pass\d{0,2}", re.IGNORECASE)

_LINE = re.compile(
    r"^(?P<indent>[ \t]{0,60}(?:-[ \t]{1,4}|(?:[;#]|//)[ \t]{0,4})?)"
    r"(?P<mark>[\"']?)(?P<key>[A-Za-z_][\w.-]{0,100})(?P=mark)"
    r"(?P<joint>:[ \t]{1,40}|[ \t]{0,40}=[ \t]{0,40})"
    r"(?P<bare>(?![*&])[^\s\"'`(){}\[\]<>,;]{6,200}+)[ \t]{0,16}(?:[#;].*)?\r?$",
    re.MULTILINE,
)
_CODE = re.compile(
    r".*(?:[{(\[,;&\\]|[=-]>|\w\([^()]*\):?)\s*|\s*[)}\]].*"
    r"|\s*(?:@\w|(?:return|if|for|while|def|class|const|let|var|import|from|func|fn|public|private|protected|async"
    r"|await|type|interface|struct|val|end|else|elif|pub|static|export|raise|throw|assert)\b(?![:=.-])).*"
)
_SETTING = re.compile(
    r"\s*(?:[#;!]|//|---|```|~~~|\[[^\]]*\]|\{\{|-\s|(?:-\s+)?[\"']?[\w./-]+[\"']?\s*(?::(?:\s|$)|=)).*|\s*"
)
_SECTION = re.compile(r"\[[\w .:\"@/-]{1,80}\][ \t]*\r?")
_OF_AN_OBJECT = ("self.", "this.", "cls.", "app.", "user.", "request.")
_NEIGHBOUR, _FARTHEST_SECTION = 300, 4_000
_TYPE = re.compile(
    r"(?:[uif]|u?int|float|str|string|secretstr|char|varchar|nvarchar|uuid|bytes?|hex|base|sha|md|argon|pbkdf|utf|vec)\d+"
    r"(?:id|i|d|hash|string|str)?(?:-\d+)?",
    re.IGNORECASE,
)
_NAME = re.compile(r"[a-z0-9]+(?:[-_./:][a-z0-9]+)+")
_LEAST_PASSWORD, _LEAST_SECRET, _LEAST_TOKEN = 6, 8, 12

_ENTRY_NAME = r"[\"']?name[\"']?:[ \t]{0,8}[\"']?(?P<name>[A-Za-z_][\w.-]{0,100})[\"']?"
_ENTRY_VALUE = r"[\"']?value[\"']?:[ \t]{0,8}" + VALUE
_BETWEEN = r"(?:[ \t]{0,4}\r?\n[ \t]{1,60}|,\s{0,60})"
_PROPERTY = re.compile(r"<key>(?P<name>[\w.-]{1,100})</key>\s{0,80}<string>(?P<bare>[^\s<]{1,2000})</string>")
"""Of Apple's property lists."""
_ENTRIES = (
    ("name", re.compile(_ENTRY_NAME + _BETWEEN + _ENTRY_VALUE)),
    ("value", re.compile(_ENTRY_VALUE + _BETWEEN + _ENTRY_NAME)),
)


def find_in_settings(text: str, lowered: str) -> Iterator[Found]:
    """Secrets by the key of their line or entry. ``lowered``: the text in lower case. Linear in its length."""
    if not any(part in lowered for part in ("pass", "pwd", "secret", "token", "key")):
        return
    for match in _LINE.finditer(text):
        if _is_secret_line(match, text):
            yield *match.span("bare"), KIND
    for listed in _PROPERTY.finditer(text) if "</key>" in text else ():
        if is_secret_of(listed["name"], listed["bare"]):
            yield *listed.span("bare"), KIND
    if "value" in text and "name" in text:
        for first, expression in _ENTRIES:
            at = text.find(first)
            while at >= 0:
                start = at - 1 if text[at - 1 : at] in ("'", '"') else at
                entry = expression.match(text, start)
                if entry is not None:
                    group = value_group(entry)
                    if is_secret_of(entry["name"], entry[group]):
                        yield *entry.span(group), KIND
                at = text.find(first, at + len(first))


def is_secret_of(key: str, value: str) -> bool:
    """Whether a literal is a secret by its key's name and by its own look; plain words and names are none."""
    if not is_literal(value):
        return False
    if is_password_key(key):
        return len(value) >= _LEAST_PASSWORD and (looks_random(value, quoted=True) or is_jumbled(value))
    if not _is_secret_key(key):
        return False
    return len(value) >= _LEAST_SECRET and looks_random(value, quoted=True) and not is_words(value)


def is_password_key(key: str) -> bool:
    """Whether a key's last part says password: ``db.pass``, ``dbPassword``; not ``bypass`` or ``pass_through``."""
    if _NO_PASSWORD_KEY.fullmatch(key):
        return False
    return any(_PASSWORD_KEY.fullmatch(form) for form in (key, key.lower()))


def _is_secret_key(key: str) -> bool:
    return any(_SECRET_KEY.fullmatch(form) for form in (key, key.lower()))


def _is_secret_line(match: re.Match[str], text: str) -> bool:
    """A line without quotes may be code, where a bare word is a variable or a type: its neighbours tell."""
    key, joint, value = match["key"], match["joint"], match["bare"]
    password = is_password_key(key)
    if not (password or _is_secret_key(key)) or not is_secret_of(key, value) or _TYPE.fullmatch(value):
        return False
    if joint.startswith(":") and key == "PASS":  # what runners of tests say of each
        return False
    if _is_name(value) or (value.isidentifier() and is_words(value)):
        return False
    mixed = is_mixed(value)
    if not password and (not mixed or (key.lower().endswith("token") and len(value) < _LEAST_TOKEN)):
        return False
    if "=" in joint:
        return _is_assigned(match, text)
    neighbours = _neighbours(text, match.start(), match.end())
    if any(_CODE.fullmatch(line) for line in neighbours):
        return False
    return (mixed and not password) or not value.isidentifier() or all(map(_SETTING.fullmatch, neighbours))


def _is_assigned(match: re.Match[str], text: str) -> bool:
    """``key=value`` at a line's start is never code with blanks around; ``key = value`` stands under a section."""
    key, indent = match["key"], match["indent"]
    neighbours = _neighbours(text, match.start(), match.end())
    if any(_CODE.fullmatch(line) for line in neighbours):
        return False
    if not indent and match["joint"] == "=":
        return True
    if key.count(".") > 1 and key.islower() and not indent and not key.startswith(_OF_AN_OBJECT):
        return True
    farthest = max(0, match.start() - _FARTHEST_SECTION)
    at = text.rfind("\n[", farthest, match.start()) + 1
    if not at and not text.startswith("["):
        return False
    end = text.find("\n", at, match.start())
    return end > 0 and at + 100 > end and _SECTION.fullmatch(text, at, end) is not None


def _neighbours(text: str, start: int, end: int) -> tuple[str, str]:
    """The lines before and behind, as far as they matter; nothing at the text's ends."""
    before = text[max(0, start - _NEIGHBOUR) : max(0, start - 1)].rpartition("\n")[2]
    return before.rstrip("\r"), text[end + 1 : end + 1 + _NEIGHBOUR].partition("\n")[0].rstrip("\r")


def _is_name(value: str) -> bool:
    """Names of objects, ``app1-db-creds``, and of what else is written in lower case and joined."""
    return _NAME.fullmatch(value) is not None and not (
        sum(map(str.isdigit, value)) > 2 and has_letters_and_digits(value)
    )
