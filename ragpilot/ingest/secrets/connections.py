"""Passwords in what connects to a service: URLs, their parameters, and strings of pairs of every dialect."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import unquote

from ragpilot.ingest.secrets.looks import has_letters_and_digits
from ragpilot.ingest.secrets.placeholders import is_literal, is_placeholder
from ragpilot.ingest.secrets.values import Found, literal_in, places

KIND = "connection-password"

_URL_PASSWORD = re.compile(r"://[^\s/:@\"'<>{}]{0,100}:(?P<value>[^\s/@\"'<>{}]{1,200})@[A-Za-z0-9\[{$.-]")
_PAIR_PASSWORD = re.compile(r"(?:password|pwd)\s{0,3}=\s{0,3}(?P<value>[^\s;\"']{4,100})(?=;|[\"'])", re.IGNORECASE)
_CONNECTION = re.compile(r"(?:server|data source|host|user id|uid|database|initial catalog)\s{0,3}=", re.IGNORECASE)
_CALL = re.compile(r"[A-Za-z_][\w.:>-]*\(.*\)")
_AROUND = 300

_PARAMETER = re.compile(r"(?:password|passwd|pwd)=(?P<bare>[^\s&;\"'`<>\\)\]]{1,200})", re.IGNORECASE)
_BEFORE_PARAMETER = ("?", "&", ";")
_SCHEME = re.compile(
    r"(?:jdbc|r2dbc|odbc):"
    r"|\b(?:postgres(?:ql)?|mysqlx?|mariadb|mongodb|rediss?|amqps?|sqlserver|mssql|oracle|clickhouse|cockroachdb"
    r"|snowflake|db2|firebird|vertica|trino|presto|hive2?|cassandra|neo4j|nats|ldaps?|smb|s?ftp)(?:\+\w{1,20})?://",
    re.IGNORECASE,
)
_URL_ENDS = re.compile(r"[\s\"'`<>]")
_LEAST_OF_A_FORM = 8

_ORACLE = re.compile(
    r"jdbc:oracle:\w{1,8}:[^\s/@\"'<>{}]{1,80}/\\?\"?(?P<bare>[^\s/@\"'<>{}\\]{1,100})\\?\"?@", re.IGNORECASE
)

_LIBPQ_PASSWORD = re.compile(
    r"password ?=(?: (?!\w{1,30} ?=))?(?:\\?'(?P<quoted>(?:[^'\\\n]|\\(?!')){1,200})\\?'"
    r"|(?P<bare>[^\s\"'`\\,;()]{1,200}+)(?=[\s\"'`\\]|$))"
)
_LIBPQ_NAMES = (
    r"(?:host(?:addr)?|port|dbname|database|user(?:name)?|sslmode|connect_timeout|application_name|options|service"
    r"|target_session_attrs|client_encoding|search_path|TimeZone)"
)
_LIBPQ_BEFORE = re.compile(
    rf"(?<![\w.-]){_LIBPQ_NAMES} ?= ?(?:'[^'\n]{{0,80}}'|[^\s\"'(),;=]{{1,80}})[ \t]{{1,4}}"
    r"(?:\\?[\"'][ \t]{0,4}[+.\\]?\n?[ \t]{0,40}[f+.]?[ \t]{0,2}[\"'][ \t]{0,4})?$"
)
"""The pair before a password, in the same string or in the one that it goes on from."""
_LIBPQ_AFTER = re.compile(rf"[ \t]{{1,4}}{_LIBPQ_NAMES} ?=")
_LIBPQ_LONGEST = 240


def find_in_connections(text: str, lowered: str) -> Iterator[Found]:
    """Passwords by which something connects. ``lowered``: the text in lower case. Linear in its length."""
    if "://" in text:
        for match in _URL_PASSWORD.finditer(text):
            if not is_placeholder(match["value"]):
                yield *match.span("value"), "url-password"
    for place in places(lowered, ("jdbc:oracle:",)):
        if oracle := _ORACLE.match(text, place):
            yield from literal_in(oracle, KIND)
    for place in places(lowered, ("password", "passwd", "pwd")):
        before = text[place - 1 : place] if place else ""
        if before.isalnum() or before in ("_", "-"):
            continue
        if before not in ("?", "&"):
            yield from _pair(text, place)
        if before in _BEFORE_PARAMETER:
            yield from _parameter(text, place)
        yield from _libpq(text, place)


def _pair(text: str, place: int) -> Iterator[Found]:
    """``Server=…;Password=…``: a pair counts only beside the others of a connection string."""
    match = _PAIR_PASSWORD.match(text, place)
    if match is None or is_placeholder(match["value"]) or _CALL.fullmatch(match["value"]):
        return
    around = text[max(0, place - _AROUND) : match.end() + _AROUND]
    if ";" in around and _CONNECTION.search(around):
        yield *match.span("value"), KIND


def _parameter(text: str, place: int) -> Iterator[Found]:
    """``…?user=…&password=…``: of a database's URL whatever it is; elsewhere if it looks like a password."""
    match = _PARAMETER.match(text, place)
    if match is None or not is_literal(match["bare"]):
        return
    before = text[max(0, place - _AROUND) : place]
    of_database = _SCHEME.search(_URL_ENDS.split(before)[-1]) is not None
    said = unquote(match["bare"])
    if of_database or (len(said) >= _LEAST_OF_A_FORM and has_letters_and_digits(said)):
        yield *match.span("bare"), KIND


def _libpq(text: str, place: int) -> Iterator[Found]:
    """``host=… user=… password=…``: with another pair of its kind right before or behind it."""
    match = _LIBPQ_PASSWORD.match(text, place)
    if match is None:
        return
    start = max(0, place - _LIBPQ_LONGEST)
    if _LIBPQ_AFTER.match(text, match.end()) or _LIBPQ_BEFORE.search(text[start:place]):
        yield from literal_in(match, KIND)
