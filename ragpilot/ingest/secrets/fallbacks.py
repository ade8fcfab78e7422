"""Secrets that code falls back to where a variable of the environment is not set."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ragpilot.ingest.secrets.settings import KIND, is_secret_of
from ragpilot.ingest.secrets.values import QUOTED, Found, places

_ANCHORS = ("environ", "getenv", "process.env", "import.meta.env", "ENV[", "ENV.fetch", "env(", "config(", "Getenv(")
_LOOKUP = re.compile(
    r"(?:environ(?:\.get\(|\.setdefault\(|\[)|[gG]etenv\(|(?:process|import\.meta)\.env(?:\??\.|\[)"
    r"|ENV(?:\.fetch\(|\[)|env\(|config\()\s{0,20}[\"'`]?(?P<name>[A-Za-z_]\w{0,80})[\"'`]?"
    r"(?:\s{0,4}(?:,\s?(?:None|null|nil|\"\"|''))?[)\]]?\)?!?\s{0,20}(?:or\b|\|\|=?|\?\?=?|\?:)|\s{0,4}\)\s{0,2}(?:\{|do\b)|\s{0,4},)\s{0,20}"
    r"(?:default\s{0,2}=\s{0,2}|fallback\s{0,2}=\s{0,2})?[bru]{0,2}" + QUOTED
)
_GIVEN_TO = re.compile(
    r"(?<![\w.-])(?P<name>[A-Za-z_][\w.-]{0,60})[\"']?\]?(?::\s{0,2}[\w.]{1,20})?\s{0,4}(?:=>|:=|[=:])\s{0,4}[\w.:]{0,16}$"
)
_BEFORE = 120


def find_in_fallbacks(text: str) -> Iterator[Found]:
    """Literals behind a look-up in the environment, if it or what it is given to is named after a secret."""
    for place in places(text, _ANCHORS):
        match = _LOOKUP.match(text, place)
        if match is None:
            continue
        given = _GIVEN_TO.search(text[max(0, place - _BEFORE) : place].rpartition("\n")[2])
        names = (match["name"], given["name"] if given else "")
        if any(is_secret_of(name, match["quoted"]) for name in names):
            yield *match.span("quoted"), KIND
