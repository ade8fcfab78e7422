"""Passwords that are known by the option of a command that they are given to, however short or plain they are.

What stands there is a password and nothing else, so that ``letmein`` counts as much as a random string; what only
stands for one (``<password>``, ``$PASSWORD``, ``PASSWORD``) is left alone, and so is prose, where a word comes behind
an option by chance.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from ragpilot.ingest.secrets.looks import has_letters_and_digits
from ragpilot.ingest.secrets.placeholders import is_literal
from ragpilot.ingest.secrets.values import BARE, QUOTED, VALUE, Found, literal_in, places, value_group

KIND = "command-password"

_NEXT = r"(?:[ \t]{1,8}|=|[ \t]{0,4}\\\n[ \t]{0,40}|[\"'],\s{1,40}(?=[\"']))"
"""Between an option and its value: blanks, a continued line, or the middle of a list of arguments."""
_USER_AND = (
    r"(?:(?P<quote>\\?[\"'])[^\s:\"'\\]{0,100}:(?P<quoted>(?:[^\n\"'\\]|\\(?![\"'])){1,200})(?P=quote)"
    r"|[^\s:\"'\\]{0,100}:(?P<bare>[^\s\"'`|;&<>\\]{1,200}))"
)


def _option(names: str, separator: str = _NEXT, value: str = VALUE) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w-])(?:{names}){separator}{value}")


_EITHER = f"(?:{_NEXT})?"
"""Also nothing at all: ``-ppassword``."""
_LOGIN = _option("-p|--password")
_AN_ARGUMENT = r"[\"']?(?P<bare>(?=[^\s\"']{0,200}\d)[A-Za-z0-9_.-]{16,200})(?![\w./:@-])"


@dataclass(frozen=True, slots=True)
class _Command:
    """Commands that take a password alike."""

    names: tuple[str, ...]
    """Every one begins with one of these."""
    whole: re.Pattern[str]
    takes: re.Pattern[str]
    """An option and its value."""


def _command(names: str, takes: re.Pattern[str], *, rest: str = "") -> _Command:
    """Of ``names`` between bars, each with what the expression ``rest`` matches behind it."""
    whole = re.compile(rf"(?:(?<![\w.:@=$-])|(?<=\\n))(?:{names}){rest}(?![\w.:-])")
    return _Command(tuple(names.split("|")), whole, takes)


_COMMANDS = (
    _command("curl", _option(r"-[a-zA-Z#]{0,8}[uU]|--user|--proxy-user", _EITHER, _USER_AND)),
    _command("http|xh", _option(r"-a|--auth", _EITHER, _USER_AND), rest="s?"),
    _command("mysql", _option("-p", ""), rest="(?:dump|admin|import|show|check|slap|sh)?"),
    _command("mariadb", _option("-p", ""), rest=r"(?:-\w{1,10})?"),
    _command("sshpass", _option("-p", _EITHER)),
    _command("docker login|podman login|nerdctl login|buildah login|skopeo login|oras login", _LOGIN),
    _command("crane auth login|helm registry login|az acr login|az login|oc login|cf login", _LOGIN),
    _command("mongo", _LOGIN, rest="(?:sh|dump|restore|export|import)?"),
    _command("redis-cli", _option("-a|--pass")),
    _command("ldap", _option("-w", _EITHER), rest="(?:search|add|modify|delete|passwd|whoami)"),
    _command("sqlcmd|bcp|osql|isql", _option("-P", _EITHER)),
    _command(
        "curl",
        re.compile(
            r"(?<![\w-])(?:-[Fd]|--form|--data(?:-\w{1,10})?)[ \t=]{0,4}[\"']?(?:[\w.]{1,40}=[^\s&\"']{0,100}&){0,20}"
            r"(?:\w{0,20}_)?(?:password|passwd|pwd)=(?P<bare>[^\s&\"'`|;<>(){}\\]{1,200})"
        ),
    ),
    _command("dotnet user-secrets set", re.compile(rf"[ \t]{{1,4}}[\"']?[\w.:-]{{1,120}}[\"']?[ \t]{{1,4}}{VALUE}")),
    _command("dotnet nuget push|nuget push|gem push", _option("-k|--api-key|-ApiKey|--key")),
    _command("twine upload|poetry publish", _LOGIN),
    _command(
        "cargo login|vault login|npm config set|pnpm config set|poetry config|hub login|flyctl auth token",
        re.compile(
            r"(?:[ \t]{1,4}(?:[\w./:-]{0,120}(?:_authToken|pypi-token\.[\w-]{1,40})))?(?:[ \t]{1,4}|=)" + _AN_ARGUMENT
        ),
    ),
    _command(
        "composer config|poetry config",
        re.compile(
            r"(?:[ \t]{1,4}--?\w{1,12}){0,3}[ \t]{1,4}http-basic\.[\w.-]{1,80}[ \t]{1,4}[^\s-]\S{0,80}[ \t]{1,4}"
            + VALUE
        ),
    ),
    _command("gh secret set", _option("-b|--body")),
    _command("heroku auth:token|wrangler secret put", re.compile(rf"[^\n|]{{0,80}}<<<[ \t]{{0,4}}{VALUE}")),
    _command("mosquitto_", _option("-P|--pw"), rest="(?:pub|sub|rr)"),
    _command("plink|pscp|psftp|kitty", _option("-pw")),
    _command(
        "sqlplus|sqlldr|expdp|impdp|rman", re.compile(r"(?<![\w/.])[A-Za-z]\w{0,40}/(?P<bare>[^\s\"'`/@|;&<>]{1,200})@")
    ),
    _command("lftp", re.compile(rf"(?<![\w-])-u[ \t]{{1,4}}[\"']?[^\s,\"']{{1,80}},{BARE}")),
    _command(
        "kubectl|oc",
        re.compile(rf"(?<![\w-])--from-literal(?:=|[ \t]{{1,4}})[\"']?[\w.-]{{1,100}}={VALUE}"),
        rest=r"[ \t][^|;&\n]{0,80}?\bsecret",
    ),
    _command("ConvertTo-SecureString", re.compile(rf"(?:[ \t]{{1,4}}-String)?[ \t]{{1,4}}{QUOTED}")),
    _command("zip|unzip", _option("-P")),
    _command("7z", _option("-p", ""), rest="[ar]?"),
    _command("keytool|jarsigner|apksigner", _option("-{1,2}(?:storepass|keypass|srcstorepass|deststorepass)")),
    _command("openssl", re.compile(rf"(?<![\w-])pass:{BARE}")),
    _command("smbclient|rpcclient", _option("-U|--user", _EITHER, _USER_AND.replace(":", "%").replace("(?%", "(?:"))),
    _command(
        "htpasswd",
        re.compile(rf"[ \t]-\w{{0,4}}b\w{{0,4}}[ \t]{{1,4}}\S{{1,120}}[ \t]{{1,4}}\S{{1,80}}[ \t]{{1,4}}{VALUE}"),
    ),
    _command(
        "rabbitmqctl add_user|rabbitmqctl change_password",
        re.compile(rf"[ \t]{{1,4}}\S{{1,80}}[ \t]{{1,4}}{VALUE}"),
    ),
)
_LONGEST_COMMAND = 2_000

_LONG_OPTION = re.compile(
    r"(?:(?<![\w-])--?(?:[a-z0-9]{1,20}-){0,3}(?:password|passwd|passphrase|passcode|pwd)"
    r"|(?<![\w-])-[DP][\w.]{0,60}[pP]assword)"
    rf"(?:(?P<sure>=|[\"'],\s{{1,40}}(?=[\"']))|[ \t]{{1,4}}){VALUE}(?P<behind>[ \t]{{0,8}}(?:\\$|[|;&]|-))?",
    re.MULTILINE,
)
_PROSE = re.compile(r"[A-Za-z][a-z]*[.,:;!?]?")
_LEAST_PLAIN = 6
_CONNECTIVES = frozenset("option options instead together without before unless argument either flags".split())

_ECHOED = re.compile(
    r"echo[ \t]{1,4}(?:-n[ \t]{1,4})?[\"']?(?P<bare>[^\s\"'|$`]{1,200})[\"']?[ \t]{0,4}\|[^|\n]{0,80}?"
    r"(?P<reader>--password-stdin|\bsudo[ \t]{1,4}-S|\bchpasswd\b|\bpasswd[ \t]{1,4}--stdin)"
)

_GIVEN = r"(?:[\"'],\s{0,40}(?=[\"'])|[ \t=]{0,4})"
_HEADER = re.compile(
    rf"(?<![\w-])(?:-H|--header){_GIVEN}(?:(?P<quote>\\?[\"'])(?P<quoted>[^\n\"']{{1,4000}})(?P=quote)"
    r"|(?P<bare>[^\s\"'`|;&<>(){}\\]{1,4000}))"
)
_NAMED = re.compile(r"(?P<name>[A-Za-z][\w-]{0,60}):[ \t]{0,4}(?P<value>.+)")
_COOKIES = re.compile(
    rf"(?<![\w-])(?:(?:-b|--cookie){_GIVEN}[\"']?|[\"']?Cookie:)(?P<value>[^\s\"'=]{{1,100}}=[^\n\"']{{1,4000}})"
)
_SECRET_HEADER = re.compile(r".*(?:token|secret|api-?key|auth|access-key|session|password)", re.IGNORECASE)
_HEADER_VALUE = re.compile(r"(?:[A-Za-z][\w-]{0,24}[ \t]{1,4}(?:token=)?)?(?P<bare>[^\s,;=]{6,4000}={0,2})")
_COOKIE = re.compile(r"[^\s;=]{1,100}=(?P<bare>[^\s;]{8,4000})")


def find_in_commands(text: str, lowered: str) -> Iterator[Found]:
    """Passwords in commands. ``lowered``: the text in lower case, letter for letter. Linear in its length."""
    yield from _own_options(text)
    if "pass" in lowered or "pwd" in lowered:
        for match in _LONG_OPTION.finditer(text):
            if match["sure"] or _is_given(match):
                yield from literal_in(match, KIND)
    for place in places(text, ("-H", "--header")):
        if header := _HEADER.match(text, place):
            yield from _in_header(text, *header.span(value_group(header)))
    for match in _ECHOED.finditer(text) if "echo" in text else ():
        user, colon, _ = match["bare"].partition(":")
        start, end = match.span("bare")
        if match["reader"] == "chpasswd":
            start = start + len(user) + 1 if colon else end
        if is_literal(text[start:end]):
            yield start, end, KIND


def _in_header(text: str, start: int, end: int) -> Iterator[Found]:
    """What a request's header proves who asks by: cookies, tokens and keys, if they look like it."""
    header = _NAMED.match(text, start, end)
    if header is None:
        return
    name, value = header["name"].lower(), header["value"]
    if name == "cookie":
        yield from _cookies(text, *header.span("value"))
    elif (name == "authorization" and not value.lower().startswith("basic")) or _SECRET_HEADER.fullmatch(name):
        whole = _HEADER_VALUE.fullmatch(text, header.start("value"), end)
        if whole and is_literal(whole["bare"]) and has_letters_and_digits(whole["bare"]):
            yield *whole.span("bare"), "authorization-header"


def _cookies(text: str, start: int, end: int) -> Iterator[Found]:
    for cookie in _COOKIE.finditer(text, start, end):
        if is_literal(cookie["bare"]) and has_letters_and_digits(cookie["bare"]):
            yield *cookie.span("bare"), "session-cookie"


def _own_options(text: str) -> Iterator[Found]:
    """What each command takes, on its line and those that continue it, up to the next command."""
    matches = sorted(
        (
            (match, command)
            for command in _COMMANDS
            for place in places(text, command.names)
            if (match := command.whole.match(text, place))
        ),
        key=lambda found: found[0].start(),
    )
    next_one = dict(pairwise([*dict.fromkeys(match.start() for match, _ in matches), len(text)]))
    for match, command in matches:
        start = match.end()
        end = _end_of_command(text, start, min(next_one[match.start()], start + _LONGEST_COMMAND))
        for given in command.takes.finditer(text, start, end):
            yield from literal_in(given, KIND)
        for cookies in _COOKIES.finditer(text, start, end):
            yield from _cookies(text, *cookies.span("value"))


def _end_of_command(text: str, start: int, farthest: int) -> int:
    end = text.find("\n", start, farthest)
    while end > 0 and text[end - 1] == "\\":
        end = text.find("\n", end + 1, farthest)
    return farthest if end < 0 else end


def _is_given(match: re.Match[str]) -> bool:
    """Whether what stands a blank behind an option is its value: in prose, and in help texts, it is the next word."""
    if match["quoted"] is not None:
        return " " not in match["quoted"]
    value = match["bare"]
    if _PROSE.fullmatch(value) is None:
        return True
    return match["behind"] is not None and len(value) >= _LEAST_PLAIN and value.lower() not in _CONNECTIVES
