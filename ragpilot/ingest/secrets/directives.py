"""Secrets that stand behind their name with nothing but blanks between: ``#define``, directives, keywords."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ragpilot.ingest.secrets.looks import looks_random
from ragpilot.ingest.secrets.settings import KIND, is_secret_of
from ragpilot.ingest.secrets.values import QUOTED, VALUE, Found, literal_in, places, value_group

_DIRECTIVE = re.compile(
    r"(?:^[ \t]{0,40}(?:#[ \t]{0,8}define[ \t]{1,8})?|[;{][ \t]{1,4}|\((?:setq|setf|def\w{0,10})[ \t]{1,4})"
    r"(?P<name>[A-Za-z_][\w.-]{0,80})[ \t]{1,40}" + QUOTED + r"(?=[\s;,)}]|$)",
    re.MULTILINE,
)
"""``#define WIFI_PASSWORD "…"``, Gradle's ``keyPassword '…'``, and what else takes one string on a line."""
_KEYWORD = re.compile(r"(?<![\w:]):(?P<name>[A-Za-z][\w-]{0,80})\s{1,40}" + QUOTED)
"""Clojure's and Lisp's ``:password "…"``."""
_SET = re.compile(
    r"(?<![\w.-])set(?:env|x)?[ \t]{1,4}(?:-{1,2}[A-Za-z]{1,8}[ \t]{1,4}){0,3}(?P<name>[A-Z][A-Z0-9_]{2,80})[ \t]{1,4}"
    + VALUE
)
"""Of fish and csh; and ``setx``."""
_DAEMON = re.compile(
    r"^[ \t]{0,20}(?:(?:bindpw|rootpw|rootbindpw|ldap_bind_pw|requirepass|masterauth)[ \t]{1,20}"
    r"|sentinel[ \t]{1,8}auth-pass[ \t]{1,8}\S{1,80}[ \t]{1,8}"
    r"|user[ \t]{1,8}\S{1,80}[ \t]{1,8}insecure-password[ \t]{1,8}"
    r"|stats[ \t]{1,8}auth[ \t]{1,8}[^\s:]{1,80}:)" + VALUE + r"[ \t]{0,8}\r?$",
    re.MULTILINE,
)
"""Of LDAP's, Redis' and HAProxy's settings: a plain word counts as well."""
_DAEMON_WORDS = ("bindpw", "rootpw", "bind_pw", "requirepass", "masterauth", "auth-pass", "insecure-password", "stats ")
_COOKIE = re.compile(r"^(?:Set-)?Cookie:[ \t]{0,4}(?P<value>[^\s=]{1,100}=[^\n]{1,4000})", re.MULTILINE | re.IGNORECASE)
_COOKIE_PAIR = re.compile(r"[^\s;=]{1,100}=(?P<bare>[^\s;\"']{16,4000})")


def find_in_directives(text: str, lowered: str) -> Iterator[Found]:
    """Secrets by the name right before them. ``lowered``: the text in lower case. Linear in its length."""
    if any(part in lowered for part in ("pass", "pwd", "secret", "token", "key")):
        for expression in (_DIRECTIVE, _KEYWORD):
            for match in expression.finditer(text):
                if is_secret_of(match["name"], match["quoted"]):
                    yield *match.span("quoted"), KIND
        for place in places(text, ("set",)):
            given = _SET.match(text, place)
            if given is not None and is_secret_of(given["name"], given[value_group(given)]):
                yield *given.span(value_group(given)), KIND
    for match in _DAEMON.finditer(text) if any(part in text for part in _DAEMON_WORDS) else ():
        yield from literal_in(match, KIND)
    for match in _COOKIE.finditer(text) if "ookie:" in lowered else ():
        for pair in _COOKIE_PAIR.finditer(text, *match.span("value")):
            if looks_random(pair["bare"], quoted=True):
                yield *pair.span("bare"), "session-cookie"
