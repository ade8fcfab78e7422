"""Names, paths, signatures and comments as plain words."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import islice

_IDENTIFIER = re.compile(r"[^\W_]\w*")
_UPPER, _LOWER = "A-ZÀ-ÖØ-Þ", "a-zß-öø-ÿ"
_PARTS = re.compile(
    rf"[{_UPPER}]+(?=[{_UPPER}][{_LOWER}])|[{_UPPER}]?[{_LOWER}]+\d*|[{_UPPER}]+\d*|\d+|[^\W\d_{_UPPER}{_LOWER}]+"
)
_MOSTLY_LOWER = re.compile(r"^[A-Z]{2,}s$")

_DATA = re.compile(r"(?=\D*\d)[0-9a-fA-F]{7,}|(?=(?:\D*\d){3})\w{24,}")

_FOLDERS = 2
_NAMELESS_STEMS = frozenset({"__init__", "__main__", "index", "mod", "lib", "readme", "doc", "package-info"})
_NAMELESS_FOLDERS = frozenset(
    "src main java kotlin scala lib include source sources crates packages com org net".split()
)

_NOISE = frozenset(
    """
    abstract and any as async auto await bool boolean byte case char class const constexpr data declare def default do
    double dyn else end enum explicit export extends extern false final float fn for friend from func fun function
    get go if impl implements import in inline inout int integer interface internal is isize let long match module
    mut mutable namespace native new nil none noexcept not null number object of operator optional or out override
    package partial private protected protocol pub public raise readonly record ref register requires return sealed self
    set short signed sizeof static str string struct super suspend switch synchronized template this throw throws
    true trait type typedef typename undefined union unknown unsafe unsigned use using usize val value var virtual
    void volatile where while with yield cls args kwargs
    """.split()
)


_NAMES = re.compile("OAuth|GraphQL|JavaScript|TypeScript|GitHub|GitLab|MySQL|PostgreSQL|SQLite|gRPC|OpenAPI|DevOps|IPv")
"""Names whose inner capitals part no words."""


@lru_cache(maxsize=1 << 14)
def split_identifier(identifier: str) -> tuple[str, ...]:
    """Lower-case parts of a name: ``getHTTPResponse2`` gives get, http, response2."""
    identifier = _NAMES.sub(lambda match: match.group().capitalize(), identifier)
    if _MOSTLY_LOWER.match(identifier):  # URLs, IDs
        return (identifier.lower(),)
    return tuple(part.lower() for part in _PARTS.findall(identifier))


def words_of(text: str) -> list[str]:
    """Lower-case parts of every name in a text, in order."""
    return [part for name in _IDENTIFIER.findall(text) for part in split_identifier(name)]


def phrase(text: str) -> str:
    """The names of a text as one phrase: ``APIRouter.add_api_route`` gives ``api router add api route``."""
    return " ".join(words_of(text))


def new_words(text: str, known: Iterable[str], limit: int) -> list[str]:
    """At most ``limit`` words of a piece of source that say something.

    No keywords, no single letters, none that is ``known`` or was there before, no hashes and other data.
    """
    seen = set(known)
    found: list[str] = []
    for name in _IDENTIFIER.finditer(text):
        if _DATA.fullmatch(name.group()):
            continue
        for word in split_identifier(name.group()):
            if word in seen or word in _NOISE or len(word) < 2 or word.isdigit():
                continue
            seen.add(word)
            found.append(word)
            if len(found) == limit:
                return found
    return found


@lru_cache(maxsize=64)
def path_phrase(path: str) -> str:
    """The last folders and the stem as words; names that every project has are left out.

    ``src/fastapi/routing.py`` gives ``fastapi routing``, ``orders/__init__.py`` gives ``orders``.
    """
    folder, name = posixpath.split(path)
    stem = name.lstrip(".").split(".")[0] or name
    names = [part for part in folder.split("/") if part and part.lower() not in _NAMELESS_FOLDERS][-_FOLDERS:]
    if stem.lower() not in _NAMELESS_STEMS or not names:
        names.append(name.lstrip(".").rsplit(".", 1)[0] or name)
    words: list[str] = []
    for part in names:
        words.extend(word for word in words_of(part) if word not in words)
    return " ".join(words)


_LONGEST_WORD = 40
_LONGEST_COMMENT = 2_000
_SENTENCE_END = re.compile(r"(?<=[.!?])\s|(?<=[。！？])|\n\s*\n")
_MARKUP = re.compile(
    r"</?[A-Za-z][^<>]*>|<!--|-->|`+|(?<!\w)[*_]{1,3}(?=\w)|(?<=[\w.)])[*_]{1,3}(?!\w)"
    r"|^[ \t]*(?:[#/*!;'\"%=~-]+[ \t]*)+|:\w+:(?=`)|\{@\w+\s+([^}]*)\}",
    re.MULTILINE,
)
_TAGGED = re.compile(
    r"^[ \t]*(?:@\w|[\\:](?:param|return|returns|raises|throws|brief|type|see)\b).*", re.DOTALL | re.MULTILINE
)


def first_sentence(comment: str, limit: int = 24) -> str:
    """The first sentence of a comment in any language, without its marks, in at most ``limit`` words."""
    comment = comment[:_LONGEST_COMMENT]
    plain = _TAGGED.sub("", _MARKUP.sub(lambda match: match.group(1) or "", comment)).strip()
    sentence = _SENTENCE_END.split(plain, maxsplit=1)[0]
    words = (word[:_LONGEST_WORD] for word in sentence.split() if any(map(str.isalnum, word)))
    return " ".join(islice(words, limit)).strip(" .:;,-*/\"'")
