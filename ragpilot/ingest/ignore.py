"""Ignore files with git's syntax, matched as git matches them: byte for byte, one entry at a time.

Git decides for every entry of a folder by the last pattern that matches **that entry**, the nearest file first, and
never looks into a folder that it ignores. Libraries that match whole paths against whole files answer differently
where negations meet folders (``*``, ``!*/``, ``!*.c``), hence the translation here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ragpilot.ingest.small import read_small

_POSIX_CLASSES = {
    b"alnum": rb"0-9A-Za-z",
    b"alpha": rb"A-Za-z",
    b"blank": rb" \t",
    b"cntrl": rb"\x00-\x1f\x7f",
    b"digit": rb"0-9",
    b"graph": rb"!-~",
    b"lower": rb"a-z",
    b"print": rb" -~",
    b"punct": rb"!-/:-@\[-`{-~",
    b"space": rb" \t\n\r\x0b\x0c",
    b"upper": rb"A-Z",
    b"xdigit": rb"0-9A-Fa-f",
}
_ESCAPED, _WILDCARD = re.compile(rb"\\.", re.DOTALL), re.compile(rb"[*?\[]")
_MOST_BYTES = 1 << 20
"""Of one ignore file; git has no limit, but no file that people write comes near."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """One line of an ignore file."""

    regex: re.Pattern[bytes]
    negated: bool
    folders_only: bool
    name: bytes
    """The last part of it, as it is written."""

    @property
    def is_literal(self) -> bool:
        """Whether its last part is the name of what it matches."""
        return _WILDCARD.search(_ESCAPED.sub(b"", self.name)) is None


@dataclass(frozen=True, slots=True)
class IgnoreFile:
    """The patterns of one file, which hold for what lies under ``base``."""

    base: bytes
    """Absolute folder, without a trailing slash."""
    patterns: tuple[Pattern, ...]
    any_of: re.Pattern[bytes]
    """All patterns at once: most entries match none, and are done with one match."""
    any_negated: re.Pattern[bytes] | None
    """The negated ones at once; None where there is none."""

    def deciding(self, path: bytes, *, folder: bool) -> Pattern | None:
        """The pattern that decides over the entry at the absolute ``path``; None where none matches it."""
        relative = path[len(self.base) + 1 :]
        if not self.any_of.fullmatch(relative):
            return None
        for pattern in reversed(self.patterns):
            if (folder or not pattern.folders_only) and pattern.regex.fullmatch(relative):
                return pattern
        return None

    def may_readmit(self, path: bytes) -> bool:
        """Whether a negated pattern matches the entry at the absolute ``path``, be it the one that decides or not."""
        return self.any_negated is not None and self.any_negated.fullmatch(path[len(self.base) + 1 :]) is not None


def parse(base: bytes, content: bytes, *, ignore_case: bool = False) -> IgnoreFile | None:
    """The patterns of an ignore file's content; None where it holds none.

    ``ignore_case``: whether ASCII letters match in either case, as git has it where a file system does not tell them
    apart.
    """
    flags = re.DOTALL | re.IGNORECASE if ignore_case else re.DOTALL
    patterns = tuple(_patterns(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), flags))
    if not patterns:
        return None
    negated = [pattern for pattern in patterns if pattern.negated]
    return IgnoreFile(base.rstrip(b"/"), patterns, _union(patterns, flags), _union(negated, flags) if negated else None)


def load(base: bytes, file: bytes, *, follow: bool = False, ignore_case: bool = False) -> IgnoreFile | None:
    """``parse`` of a file; None where it is missing, unreadable, no regular file or, without ``follow``, a link.

    Like git, which follows links to its excludes but not to the ignore files of a work tree.
    """
    content = read_small(file, follow=follow, limit=_MOST_BYTES)
    return None if content is None else parse(base, content, ignore_case=ignore_case)


def ignored(files: Iterable[IgnoreFile], path: bytes, *, folder: bool) -> bool:
    """The verdict of several ignore files, given nearest first."""
    pattern = _deciding(files, path, folder=folder)
    return pattern is not None and not pattern.negated


def readmitting(files: Sequence[IgnoreFile], path: bytes, *, folder: bool) -> Pattern | None:
    """The negated pattern that decides over an entry, of several ignore files, given nearest first."""
    if not any(file.may_readmit(path) for file in files):
        return None
    pattern = _deciding(files, path, folder=folder)
    return pattern if pattern is not None and pattern.negated else None


def _deciding(files: Iterable[IgnoreFile], path: bytes, *, folder: bool) -> Pattern | None:
    for file in files:
        pattern = file.deciding(path, folder=folder)
        if pattern is not None:
            return pattern
    return None


def _union(patterns: Iterable[Pattern], flags: re.RegexFlag) -> re.Pattern[bytes]:
    return re.compile(b"|".join(b"(?:%b)" % pattern.regex.pattern for pattern in patterns), flags)


def _patterns(lines: Iterable[bytes], flags: re.RegexFlag) -> Iterator[Pattern]:
    for line in lines:
        text = _without_trailing_spaces(line.removesuffix(b"\r").partition(b"\0")[0])
        if not text or text.startswith(b"#"):
            continue
        negated = text.startswith(b"!")
        if negated:
            text = text[1:]
        folders_only = text.endswith(b"/")
        if folders_only:
            text = text[:-1]
        if not text:
            continue
        translated = _translate(text)
        if translated is not None:
            yield Pattern(re.compile(translated, flags), negated, folders_only, text.rpartition(b"/")[2])


def _without_trailing_spaces(line: bytes) -> bytes:
    r"""Trailing spaces go, unless the first of them is escaped: ``foo\ ``."""
    stripped = line.rstrip(b" ")
    backslashes = len(stripped) - len(stripped.rstrip(b"\\"))
    return stripped + b" " if backslashes % 2 and len(line) > len(stripped) else stripped


_SLASH, _STAR, _DEEP, _ANYTHING = b"/", b"*", b"**/", b"**"
"""Tokens of a glob beside single characters, which are regular expressions already (never one of these)."""


def _translate(pattern: bytes) -> bytes | None:
    """A glob as a regular expression of the path under the file's folder.

    None for one that git lets match nothing: an open class, a lone backslash at the end. A pattern without a slash
    matches the last part of a path, at any depth. The expression takes no exponential time, whatever the pattern:
    what stands between two stars is matched at its first place and never tried again.
    """
    tokens = _tokens(pattern.removeprefix(b"/"))
    if tokens is None:
        return None
    *atomic, last = _split(tokens, _DEEP)
    first = b"" if b"/" in pattern else rb"(?:.*/)?"
    if not atomic:
        return first + _parts(last)
    groups = [rb"(?>(?:.*?/)??" + _parts(group) + rb")" for group in atomic[1:]]
    return _parts(atomic[0]) + b"".join(groups) + rb"(?:.*/)?" + _parts(last)


def _parts(tokens: list[bytes]) -> bytes:
    return b"/".join(_part(part) for part in _split(tokens, _SLASH))


def _part(tokens: list[bytes]) -> bytes:
    if tokens == [_ANYTHING]:
        return rb".*"
    lead, *rest = (b"".join(run) for run in _split(tokens, _STAR))
    if not rest:
        return lead
    return lead + b"".join(rb"(?>[^/]*?" + run + rb")" for run in rest[:-1]) + rb"[^/]*" + rest[-1]


def _split(tokens: list[bytes], separator: bytes) -> list[list[bytes]]:
    runs: list[list[bytes]] = [[]]
    for token in tokens:
        if token == separator:
            runs.append([])
        else:
            runs[-1].append(token)
    return runs


def _tokens(pattern: bytes) -> list[bytes] | None:
    tokens: list[bytes] = []
    at = 0
    while at < len(pattern):
        character = pattern[at : at + 1]
        if character == b"*":
            token, at = _stars(pattern, at)
        elif character == b"[":
            found = _translate_class(pattern, at)
            if found is None:
                return None
            token, at = found
        elif character == b"\\" and at + 1 == len(pattern):
            return None
        else:
            at += character == b"\\"
            literal = pattern[at : at + 1]
            token = _SLASH if literal == b"/" else rb"[^/]" if character == b"?" else re.escape(literal)
            at += 1
        tokens.append(token)
    return tokens


def _stars(pattern: bytes, start: int) -> tuple[bytes, int]:
    """``**`` that is a whole part of a path stands for any number of folders; other stars stay inside one part."""
    at = start
    while pattern[at : at + 1] == b"*":
        at += 1
    before, behind = pattern[max(start - 1, 0) : start], pattern[at : at + 1]
    if at - start < 2 or before not in (b"/", b"") or behind not in (b"/", b""):
        return _STAR, at
    return (_DEEP, at + 1) if behind else (_ANYTHING, at)


def _translate_class(pattern: bytes, start: int) -> tuple[bytes, int] | None:
    """``[a-z]``, ``[!a]``, ``[[:alpha:]]``, ``[]a]``: the expression and the position behind it."""
    at = start + 1
    negated = pattern[at : at + 1] in (b"!", b"^")
    at += negated
    members: list[bytes] = []
    first = True
    while first or pattern[at : at + 1] != b"]":
        first = False
        if pattern.startswith(b"[:", at):
            end = pattern.find(b"]", at + 2)
            if end < 0:
                return None
            if pattern[end - 1 : end] == b":" and end > at + 2:
                name = pattern[at + 2 : end - 1]
                if name not in _POSIX_CLASSES:
                    return None
                members.append(_POSIX_CLASSES[name])
                at = end + 1
                continue
        low, at = _class_member(pattern, at)
        high = low
        if pattern[at : at + 1] == b"-" and pattern[at + 1 : at + 2] not in (b"]", b""):
            high, at = _class_member(pattern, at + 1)
        if not low or not high:
            return None
        # A range the wrong way round holds the character that it begins with.
        members.append(_hex(low) + b"-" + _hex(high) if low <= high else _hex(low))
    inner = b"".join(members)
    return (b"(?!/)[" + (b"^" if negated else b"") + inner + b"]"), at + 1


def _class_member(pattern: bytes, at: int) -> tuple[bytes, int]:
    """One character of a class, empty at the pattern's end, and the position behind it."""
    at += pattern[at : at + 1] == b"\\"
    return pattern[at : at + 1], at + 1


def _hex(character: bytes) -> bytes:
    return b"\\x%02x" % character[0]
