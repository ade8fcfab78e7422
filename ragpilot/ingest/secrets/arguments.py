"""Secrets that code hands to what connects for it: builders, drivers of databases, headers; and settings of Helm."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ragpilot.ingest.secrets.looks import looks_random
from ragpilot.ingest.secrets.settings import KIND, is_password_key, is_secret_of
from ragpilot.ingest.secrets.values import QUOTED, VALUE, Found, literal_in, places, value_group

_BUILDERS = ("apikey(", "secretkey(", "clientsecret(", "authtoken(", "accesstoken(", "privatekey(", "signingkey(")
_BUILT = re.compile(r"(?P<name>[A-Za-z]{6,14})\(\s{0,20}" + QUOTED + r"\s{0,20}\)")

_FIRST = r"(?:[\w.$>()-]{1,80}|[\"'][^\"'\n]{0,300}[\"'])"
_CONNECTS = re.compile(
    rf"(?:getConnection|new\s{{1,2}}\\?PDO|mysqli_connect|new\s{{1,2}}\\?mysqli)\(\s{{0,20}}{_FIRST}\s{{0,4}},\s{{0,20}}"
    rf"{_FIRST}\s{{0,4}},\s{{0,20}}" + QUOTED
)
_HEADER = re.compile(
    r"authorization[\"']\s{0,2}(?:\]\s{0,2}=|=>|[:,])\s{0,8}[brfu]{0,2}(?P<mark>[\"'`])"
    r"(?:Bearer|Token|Basic|ApiKey)[ \t]{1,4}(?P<bare>[A-Za-z0-9._~+/=-]{8,4000})(?P=mark)",
    re.IGNORECASE,
)
_HELM = re.compile(r"--set(?:-string)?(?:[ \t]{1,4}|=)[\"']?(?P<pairs>[^\s\"',=]{1,200}=[^\s\"']{1,2000})")
_HELM_PAIR = re.compile(r"(?P<name>[^\s\"',=]{1,200})=" + VALUE)


def find_in_arguments(text: str, lowered: str) -> Iterator[Found]:
    """Secrets by the function or header that takes them. ``lowered``: the text in lower case. Linear in its length."""
    for place in places(lowered, _BUILDERS):
        match = _BUILT.match(text, place)
        if match is not None and is_secret_of(match["name"], match["quoted"]):
            yield *match.span("quoted"), KIND
    for place in places(text, ("getConnection(", "mysqli_connect(")):
        yield from _connects(text, place)
    for place in places(text, ("PDO(", "mysqli(")):
        start = text.rfind("new", max(0, place - 6), place)
        if start >= 0:
            yield from _connects(text, start)
    for place in places(lowered, ("authorization",)):
        header = _HEADER.match(text, place)
        if header is not None and looks_random(header["bare"], quoted=True):
            yield from literal_in(header, "authorization-header")
    for place in places(text, ("--set",)):
        pairs = _HELM.match(text, place)
        for pair in _HELM_PAIR.finditer(text, *pairs.span("pairs")) if pairs else ():
            if is_password_key(pair["name"]) or is_secret_of(pair["name"], pair[value_group(pair)]):
                yield from literal_in(pair, KIND)


def _connects(text: str, start: int) -> Iterator[Found]:
    """The third of what such a call takes is a password and nothing else."""
    match = _CONNECTS.match(text, start)
    if match is not None:
        yield from literal_in(match, KIND)
