"""Passwords in statements of SQL: of users, and in the rows of tables."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator

from ragpilot.ingest.secrets.looks import has_letters_and_digits
from ragpilot.ingest.secrets.placeholders import is_literal
from ragpilot.ingest.secrets.values import Found, literal_in, places

KIND = "sql-password"

_USERS = re.compile(
    r"(?:identified\s{1,8}(?:with\s{1,8}\S{1,40}\s{1,8})?(?:by|as)\s{1,8}(?:password\s{1,8})?"
    r"|(?:create|alter)\s{1,8}(?:user|role|login)\b[^;']{0,200}?\bpassword\s{0,8}=?\s{0,8}N?"
    r"|(?:update|(?:insert|replace)\s{1,8}into)\s{1,8}[\w.\"`\[\]]{1,120}\s{1,8}set\s(?:[^;']|'[^'\n]{0,200}'){0,200}?[\s,.\"`\[]"
    r"(?:\w{1,20}_)?pass(?:word|wd|_?hash)?[\"`\]]?\s{0,8}=\s{0,8}N?"
    r"|set\s{1,8}password\b[^;]{0,100}?=\s{0,8}(?:password\s{0,4}\(\s{0,4})?)"
    r"'(?P<quoted>[^'\n]{1,200})'"
    r"|(?:(?:create|alter)\s{1,8}(?:user|role)\s{1,8}(?:if\s{1,8}not\s{1,8}exists\s{1,8})?|connect\s{1,8}to\s{1,8})"
    r"[\w\"`$#@.]{1,80}\s{1,8}identified\s{1,8}by\s{1,8}\\?\"?(?!values\b|password\b)(?P<bare>[A-Za-z]\w{3,60})"
    r"(?=\\?\"?\s{0,8}(?:;|$|\"|default\b|account\b|replace\b|container\b|profile\b|quota\b|temporary\b|using\b))",
    re.IGNORECASE | re.MULTILINE,
)
_USERS_ANCHORS = ("identified", "connect", "create", "alter", "set", "update", "insert", "replace")

_GAP = r"(?:[\s\"+.\\]|--[^\n]{0,200}\n){0,80}"
"""Also the end of one string of code and the beginning of the next, and comments."""
_INSERT = re.compile(
    r"(?:insert|replace)\s{1,8}(?:ignore\s{1,8}|or\s{1,8}\w{1,10}\s{1,8})?into\s{1,8}[\w.\"`\[\]\\]{1,120}"
    + _GAP
    + r"\("
    r"(?P<columns>[\w\s,\"`\[\]\\+]{1,4000})\)" + _GAP + r"(?:overriding\s\w{1,10}\svalue\s{1,8})?values(?!\w)",
    re.IGNORECASE,
)
_PASSWORD_COLUMN = re.compile(
    r"(?:\w*_)?(?:password|passwd|passphrase|pwd|pass)(?:_?hash|_digest|_enc\w*)?|encrypted_password", re.IGNORECASE
)
_SECRET_COLUMN = re.compile(r"(?:\w*_)?(?:secret|token|api_?key|secret_?key|private_?key)", re.IGNORECASE)
_VALUE = re.compile(
    r"\s{0,20}(?:(?P<call>\w{1,40}\(\s{0,8})?(?:[NEnebx]?'(?P<quoted>(?:[^'\\]|''|\\.){0,20000}+)'"
    r"|\\?\"(?P<double>[^\"'\\\n]{0,400}+)\\?\")(?(call)(?:[^()']|'[^']{0,200}'|\([^()]{0,200}\)){0,200}+\))(?:::\w{1,30})?"
    r"|[^,()'\";]{1,200}+(?:\([^()]{0,400}\)[^,()';]{0,40})?)\s{0,20}",
    re.DOTALL,
)
_ROW = re.compile(_GAP + ",?" + _GAP + r"\(")
_CODE = re.compile(r"[\"\s]")
_LEAST_SECRET = 12


def find_in_sql(text: str, lowered: str) -> Iterator[Found]:
    """Passwords that SQL gives. ``lowered``: the text in lower case. Linear in the text's length."""
    for place in places(lowered, _USERS_ANCHORS):
        if users := _USERS.match(text, place):
            yield from literal_in(users, KIND)
    reached = 0
    for place in sorted(places(lowered, ("insert", "replace"))):
        insert = _INSERT.match(text, place) if place >= reached else None
        if insert is not None:
            reached = insert.end()
            columns = [column.strip(' \t\r\n"`[]+\\') for column in insert["columns"].split(",")]
            if any(_PASSWORD_COLUMN.fullmatch(name) or _SECRET_COLUMN.fullmatch(name) for name in columns):
                reached = yield from _rows(text, insert.end(), columns)


def _rows(text: str, at: int, columns: list[str]) -> Generator[Found, None, int]:
    """The values of columns that are named after secrets, in every row; returns where the rows end."""
    while row := _ROW.match(text, at):
        at = row.end()
        for column in columns:
            value = _VALUE.match(text, at)
            if value is None:
                return at
            group = "double" if value["quoted"] is None else "quoted"
            if value[group] is not None and _is_secret(column, value[group]):
                yield *value.span(group), KIND
            at = value.end()
            if text[at : at + 1] != ",":
                break
            at += 1
        if text[at : at + 1] != ")":
            return at
        at += 1
    return at


def _is_secret(column: str, value: str) -> bool:
    if not is_literal(value) or _CODE.search(value):
        return False
    if _PASSWORD_COLUMN.fullmatch(column):
        return True
    looks_like_one = len(value) >= _LEAST_SECRET and has_letters_and_digits(value)
    return looks_like_one and _SECRET_COLUMN.fullmatch(column) is not None
