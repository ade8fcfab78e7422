"""Secrets by the file that they stand in: manifests and settings whose very keys and forms say what they hold."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ragpilot.ingest.secrets.looks import has_letters_and_digits
from ragpilot.ingest.secrets.placeholders import is_literal
from ragpilot.ingest.secrets.values import VALUE, Found, literal_in, places

_TERRAFORM = re.compile(r"variable[ \t]{1,4}\"(?P<name>[\w-]{1,80})\"[ \t]{0,4}\{")
_TERRAFORM_DEFAULT = re.compile(r"(?<![\w-])default[ \t]{0,40}=[ \t]{0,4}\"(?P<quoted>[^\s\"\\]{1,500})\"")
_TERRAFORM_END = re.compile(r"\n\}")
_TERRAFORM_PASSWORD = re.compile(r"(?:.*[_-])?(?:password|passwd|passphrase|pwd|pass)", re.IGNORECASE)
_TERRAFORM_SECRET = re.compile(r"(?:.*[_-])?(?:secret|token|(?:api|access|private|secret)[_-]?key)", re.IGNORECASE)
_TERRAFORM_LONGEST = 4_000
_LEAST_SECRET = 8

_WORDPRESS = re.compile(
    r"(?:(?:SECURE_)?AUTH|LOGGED_IN|NONCE|WP_CACHE_KEY)_(?:KEY|SALT)(?:[\"']\s{0,20},\s{0,40}|[ \t]{0,2}=[ \t]{0,2})"
    r"(?P<quote>[\"'])(?P<quoted>[^\n'\"]{12,200})(?P=quote)"
)
_WORDPRESS_SAMPLE = re.compile(
    r"put your unique phrase here|generateme|[a-z ]+|\[redacted:.*|.*(?:\$\{|\{\{|<\?|%\().*", re.IGNORECASE
)

_YARN = re.compile(r"npmAuth(?:Ident|Token)[\"']?[ \t]{0,3}[:=][ \t]{0,4}" + VALUE)

_COMPOSER = re.compile(r"\"(?:github-oauth|gitlab-oauth|gitlab-token|bearer|http-basic)\"\s{0,4}:\s{0,4}\{")
_COMPOSER_TOKEN = re.compile(r"\s{0,40},?\s{0,40}\"[\w.:-]{1,100}\"\s{0,4}:\s{0,4}\"(?P<quoted>[^\s\"\\]{8,300})\"")
_COMPOSER_BASIC = re.compile(
    r"\s{0,40},?\s{0,40}\"[\w.:-]{1,100}\"\s{0,4}:\s{0,4}\{\s{0,40}\"username\"\s{0,4}:\s{0,4}\"[^\"\n]{0,100}\"\s{0,4},"
    r"\s{0,40}\"(?:password|token)\"\s{0,4}:\s{0,4}\"(?P<quoted>[^\s\"\\]{1,200})\"\s{0,40}\}"
)
_COMPOSER_COMMAND = re.compile(r"(?:github-oauth|gitlab-oauth|gitlab-token|bearer)\.[\w.-]{1,100}[ \t]{1,4}" + VALUE)
_MOST_HOSTS = 50

_PUTTY = re.compile(r"Private-Lines: ?(?P<lines>\d{1,3})(?!\d)")
_PUTTY_LINE = re.compile(r"(?:\s|\\[rn]|[\"'+,|>#*]){1,80}[A-Za-z0-9+/]{4,76}={0,2}(?![\w:-])")

_HASHES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (anchor, re.compile(expression + r"(?![A-Za-z0-9./])"))
    for anchor, expression in (
        ("$apr1$", r"\$apr1\$[./A-Za-z0-9]{1,8}\$[./A-Za-z0-9]{22}"),
        ("$1$", r"\$1\$[./A-Za-z0-9]{1,8}\$[./A-Za-z0-9]{22}"),
        ("$2", r"\$2[abxy]\$\d\d\$[./A-Za-z0-9]{53}"),
        ("$5$", r"\$5\$(?:rounds=\d{1,9}\$)?[./A-Za-z0-9]{1,16}\$[./A-Za-z0-9]{43}"),
        ("$6$", r"\$6\$(?:rounds=\d{1,9}\$)?[./A-Za-z0-9]{1,16}\$[./A-Za-z0-9]{86}"),
        (
            "$argon2",
            r"\$argon2(?:id|i|d)\$v=\d{1,3}\$m=\d{1,8},t=\d{1,4},p=\d{1,4}\$[A-Za-z0-9+/]{8,90}\$[A-Za-z0-9+/]{16,180}",
        ),
        ("SHA}", r"SHA\}[A-Za-z0-9+/]{27}="),
        ("SHA}", r"SHA\}[A-Za-z0-9+/]{32,48}={0,2}"),
    )
)
_SHA_BEFORE = re.compile(r":[ \t]?\{S?$")


def find_in_files(text: str) -> Iterator[Found]:
    """Secrets by their file's form. Linear in the text's length."""
    yield from _terraform(text)
    for match in _WORDPRESS.finditer(text) if "_KEY" in text or "_SALT" in text else ():
        if not _WORDPRESS_SAMPLE.fullmatch(match["quoted"]):
            yield *match.span("quoted"), "wordpress-key"
    for place in places(text, ("npmAuth",)):
        if yarn := _YARN.match(text, place):
            yield from literal_in(yarn, "registry-auth")
    yield from _composer(text)
    yield from _putty(text)
    for anchor, expression in _HASHES:
        for place in places(text, (anchor,)):
            if anchor == "SHA}" and not _SHA_BEFORE.search(text, max(0, place - 4), place):
                continue
            if hashed := expression.match(text, place):
                yield *hashed.span(), "password-hash"


def _terraform(text: str) -> Iterator[Found]:
    """What a variable that is named after a secret is without a value of its own."""
    for place in places(text, ("variable",)):
        header = _TERRAFORM.match(text, place)
        if header is None:
            continue
        password = _TERRAFORM_PASSWORD.fullmatch(header["name"]) is not None
        if not password and not _TERRAFORM_SECRET.fullmatch(header["name"]):
            continue
        following = text.find('variable "', header.end(), header.end() + _TERRAFORM_LONGEST)
        farthest = following if following > 0 else header.end() + _TERRAFORM_LONGEST
        end = _TERRAFORM_END.search(text, header.end(), farthest)
        default = _TERRAFORM_DEFAULT.search(text, header.end(), end.start() if end else farthest)
        if default is None:
            continue
        if password or (len(default["quoted"]) >= _LEAST_SECRET and has_letters_and_digits(default["quoted"])):
            yield from literal_in(default, "assigned-secret")


def _composer(text: str) -> Iterator[Found]:
    for place in places(text, ("github-oauth", "gitlab-oauth", "gitlab-token", "bearer", "http-basic")):
        if command := _COMPOSER_COMMAND.match(text, place):
            yield from literal_in(command, "registry-auth")
        opened = _COMPOSER.match(text, place - 1) if place else None
        at = opened.end() if opened else len(text)
        for _ in range(_MOST_HOSTS):
            entry = _COMPOSER_TOKEN.match(text, at) or _COMPOSER_BASIC.match(text, at)
            if entry is None:
                break
            if is_literal(entry["quoted"]):
                yield *entry.span("quoted"), "registry-auth"
            at = entry.end()


def _putty(text: str) -> Iterator[Found]:
    """As many lines as a key of PuTTY's says that it has."""
    for place in places(text, ("Private-Lines:",)):
        header = _PUTTY.match(text, place)
        if header is None:
            continue
        start = at = header.end()
        for _ in range(int(header["lines"])):
            line = _PUTTY_LINE.match(text, at)
            if line is None:
                break
            at = line.end()
        if at > start:
            first = start + len(text[start:at]) - len(text[start:at].lstrip())
            yield first, at, "private-key"
