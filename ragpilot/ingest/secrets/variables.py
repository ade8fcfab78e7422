"""Passwords that are known by the variable or pair that they stand in, however short or plain they are."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator

from ragpilot.ingest.secrets.placeholders import is_literal
from ragpilot.ingest.secrets.values import QUOTED, VALUE, Found, literal_in, places, value_group

_READ_BY_PROGRAMS = re.compile(
    r"PGPASSWORD|MYSQL_PWD|SSHPASS|REDISCLI_AUTH|(?:RESTIC|REDIS|VAULT)_PASSWORD|(?:BORG|GPG)_PASSPHRASE"
    r"|(?:MYSQL|MARIADB|POSTGRES|POSTGRESQL|PG|DB|DATABASE|MSSQL|SA|ORACLE|MONGO|MONGODB|RABBITMQ|ELASTIC"
    r"|ELASTICSEARCH|KIBANA|NEO4J|INFLUXDB|MINIO|KEYCLOAK|KC|GRAFANA|GF|LDAP|SMTP|MAIL|VNC|SUDO|ROOT|ADMIN|FTP|SFTP"
    r"|CLICKHOUSE|COUCHDB|JENKINS|NEXUS|PGADMIN|DJANGO|WORDPRESS|NEXTCLOUD|SPRING)"
    r"(?:_[A-Z]{2,14}){0,3}_(?:PASSWORD|PASSWD|PASS|PWD)"
)
"""Variables that hold the password of some program or service by custom: a plain word counts, too."""
_PASSWORD_NAME = re.compile(r"\w+(?:_PASSWORD|_PASSWD|_PASSPHRASE|_PWD|_PASS)|PASSWORD|PASSWD|PASSPHRASE")
_VARIABLE = re.compile(
    r"(?<![A-Za-z0-9_.-])(?P<name>[A-Z0-9_]{0,60}(?:PASSWORD|PASSWD|PASSPHRASE|PWD|PASS|REDISCLI_AUTH))(?![A-Za-z0-9_])"
    r"(?P<joint>=|[\"']?\]?[ \t]{0,3}(?::=|[=,])[ \t]{1,4}|[\"']?:[ \t]{1,8}|[\"']:"
    r"|[\"']?[ \t]{0,4}\n[ \t]{1,60}value:[ \t]{1,8}|[ \t]{1,4})"
    rf"{VALUE}(?=[\s\"',;)}}\]\\]|$)"
)
_DOCKERFILE = re.compile(r"(?:^|\n)[ \t]{0,8}ENV[ \t]{1,8}$")
_FARTHEST = 24
_LEAST = 6

_NETRC = re.compile(r"machine\s{1,20}\S{1,100}\s{1,20}login\s{1,20}\S{1,100}\s{1,20}password\s{1,20}" + VALUE)
_OPTION_FILE = re.compile(
    r"\[(?:client|mysql\w{0,12}|mariadb\w{0,12})\][^\n]{0,80}(?:\n(?!\[)[^\n]{0,200}){0,20}?"
    r"\npassword[ \t]{0,8}=[ \t]{0,8}" + VALUE
)
_PAIR = re.compile(
    r"(?:\bauth\s{0,3}=\s{0,3}|(?:Basic|Digest|Proxy)Auth)\(\s{0,20}[bru]{0,2}[\"'][^\"'\n]{1,80}[\"'],\s{0,20}[bru]{0,2}"
    + QUOTED
)
_BASIC = re.compile(r"basic\s{1,3}(?P<bare>[A-Za-z0-9+/]{8,400}={0,2})(?![A-Za-z0-9+/=])", re.IGNORECASE)

_ENCODED_PAIR = re.compile(
    r"auth[\"']?\s{0,3}:\s{0,8}(?P<quote>\\?[\"']?)(?P<bare>[A-Za-z0-9+/]{8,400}={0,2})(?P=quote)(?![\w+/=.:-])"
)
"""What registries' settings keep: a name and a password, in Base64."""


def find_in_variables(text: str, lowered: str) -> Iterator[Found]:
    """Passwords by their places. ``lowered``: the text in lower case, letter for letter. Linear in its length."""
    if any(part in text for part in ("PASS", "PWD", "REDISCLI_AUTH")):
        for match in _VARIABLE.finditer(text):
            if _is_password(match, text):
                yield from literal_in(match, "environment-password")
    for match in _matches_at(_NETRC, text, lowered, ("machine",)):
        yield from literal_in(match, "netrc-password")
    for match in _matches_at(_OPTION_FILE, text, lowered, ("[client", "[mysql", "[mariadb")):
        yield from literal_in(match, "option-file-password")
    for match in _PAIR.finditer(text) if "auth" in lowered else ():
        if not match["quoted"].isalpha():
            yield from literal_in(match, "auth-password")
    for match in _matches_at(_BASIC, text, lowered, ("basic",)):
        if _holds_a_password(match["bare"]):
            yield *match.span("bare"), "authorization-header"
    for match in _matches_at(_ENCODED_PAIR, text, lowered, ("auth",)):
        if _holds_a_password(match["bare"]):
            yield *match.span("bare"), "registry-auth"


def _matches_at(
    expression: re.Pattern[str], text: str, lowered: str, anchors: tuple[str, ...]
) -> Iterator[re.Match[str]]:
    for place in places(lowered, anchors):
        if (match := expression.match(text, place)) is not None:
            yield match


def _is_password(match: re.Match[str], text: str) -> bool:
    """Whether a variable is there for a password and is given one; one of no known program, if it looks like one."""
    name, joint, quoted = match["name"], match["joint"], match["quoted"]
    value = match[value_group(match)]
    if not joint.strip() and not _DOCKERFILE.search(text, max(0, match.start() - _FARTHEST), match.start()):
        return False
    if _READ_BY_PROGRAMS.fullmatch(name):
        # In code, a bare word behind a blank is the name of another variable.
        return quoted is not None or joint.strip(" \t\"']") not in ("=", ":=", ",") or joint == "="
    looks_like_one = any(map(str.isdigit, value)) and any(map(str.isalpha, value))
    return joint == "=" and len(value) >= _LEAST and looks_like_one and _PASSWORD_NAME.fullmatch(name) is not None


def _holds_a_password(encoded: str) -> bool:
    try:
        user, colon, password = base64.b64decode(encoded, validate=True).decode("utf-8").partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return False
    return bool(colon) and (user + password).isprintable() and is_literal(password)
