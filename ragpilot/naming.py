"""What a question names, and which chunks are called so: a symbol, a file, lines, words as they stand. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from ragpilot.lexical import question_terms, words
from ragpilot.types import Chunk

PROSE = ("docs-markdown", "docs-text")


@dataclass(frozen=True, slots=True)
class Asked:
    """What of a question the signals look at, taken apart once."""

    terms: frozenset[str]
    symbols: tuple[str, ...]
    bare_symbol: bool
    about_tests: bool
    about_examples: bool
    about_changes: bool
    files: tuple[str, ...] = ()
    lines: tuple[tuple[str, int, int], ...] = ()
    """Places of the form file, first line, last line."""
    focus: tuple[str, ...] = ()
    phrases: tuple[str, ...] = ()
    """Words that may stand in a chunk as they stand in the question."""

    @classmethod
    def of(
        cls,
        question: str,
        *,
        symbols: tuple[str, ...],
        bare_symbol: bool,
        files: tuple[str, ...] = (),
        lines: tuple[tuple[str, int, int], ...] = (),
        focus: tuple[str, ...] = (),
        phrases: tuple[str, ...] = (),
    ) -> Asked:
        """Take a question apart; symbols, files, lines and phrases are what ``routing`` found named in it."""
        named = frozenset(question_terms(question))
        return cls(
            terms=named,
            symbols=symbols,
            bare_symbol=bare_symbol,
            about_tests=bool(named & {"test", "unittest", "pytest", "spec", "fixtur", "mock"}),
            about_examples=bool(named & {"exampl", "sampl", "demo", "benchmark", "tutori"}),
            about_changes=bool(
                named
                & {
                    "chang",
                    "changelog",
                    "deprec",
                    "histori",
                    "migrat",
                    "new",
                    "news",
                    "releas",
                    "sinc",
                    "upgrad",
                    "version",
                }
            ),
            files=files,
            lines=lines,
            focus=focus,
            phrases=phrases,
        )


_DEFINED = r"^[^=({{\[\n:]*(?<![\w.]){}(?![\w-])\s*(?:[=:;,({{<\[]|$)"
"""A row on which nothing stands before a name but words: ``export const NAME =``, ``int name(``, ``NAME,``."""


_OTHER_CASE = 0.5


def defines(chunk: Chunk, symbol: str) -> float:
    """Whether the chunk's own symbol is the named one: ``Router.get`` and ``get`` both name ``Api.Router.get``.

    1, or less where only the case of letters differs: ``Serialize`` asks for a type before ``serialize``, its method.
    Small constants and prototypes share a chunk, whose title lists the first of them: there, the name at the head
    of a row is the named one too.
    """
    if " " in symbol:  # an operation of an API: GET /orders
        return float(symbol.rstrip("/") == (chunk.symbol or "").rstrip("/"))
    asked = [part for part in re.split(r"[.:#>-]+", symbol) if part]
    own = [part for part in re.split(r"[.:#>\s]+", chunk.symbol or "") if part]
    if not asked:
        return 0.0
    if _same(own[-len(asked) :], asked):
        return 1.0 if own[-len(asked) :] == asked else _OTHER_CASE
    *scope, name = asked
    if ", " not in chunk.title or (scope and not _same(own[-len(scope) :], scope)):
        return 0.0
    found = re.search(_DEFINED.format(re.escape(name)), chunk.text, re.IGNORECASE | re.MULTILINE)
    if found is None:
        return 0.0
    return 1.0 if name in found.group() else _OTHER_CASE


def _same(one: Sequence[str], other: Sequence[str]) -> bool:
    return [part.lower() for part in one] == [part.lower() for part in other]


def is_file(path: str, named: str) -> bool:
    """Whether a path is that of the named file; ``README`` names ``docs/README.md`` too."""
    name = path.rpartition("/")[2]
    if "/" in named or "." in named:
        return path == named or path.endswith("/" + named) or name.lower() == named.lower()
    return name.partition(".")[0].lower() == named.lower()


def covers(chunk: Chunk, place: tuple[str, int, int]) -> bool:
    """Whether a chunk holds some of the lines of a place: file, first line, last line."""
    named, first, last = place
    return is_file(chunk.path, named) and chunk.start_line <= last and first <= chunk.end_line


def holds(chunk: Chunk, symbol: str) -> bool:
    """Whether an identifier stands in a chunk's text, as written and whole."""
    return symbol in chunk.text and re.search(rf"(?<!\w){re.escape(symbol)}(?!\w)", chunk.text) is not None


def says(chunk: Chunk, phrase: str) -> bool:
    """Whether the words of a phrase follow each other in a chunk's text, whatever stands between them."""
    longest, pattern = _as_said(phrase)
    text = chunk.text.lower()
    return bool(longest) and longest in text and pattern.search(text) is not None


@lru_cache(maxsize=128)
def _as_said(phrase: str) -> tuple[str, re.Pattern[str]]:
    """The longest word of a phrase, which most texts lack, and what finds all of it."""
    said = words(phrase.lower())
    return max(said, key=len, default=""), re.compile(r"(?<!\w)" + r"\W+".join(map(re.escape, said)) + r"(?!\w)")


def names_of(chunk: Chunk, asked: Asked) -> list[str]:
    """By which names the question calls a chunk.

    The symbol that it defines, the file that it lies in, and what the question spells as it stands in the chunk's
    text: an embedder reads only so far, and makes little of an identifier, but who asks for it means these rows.
    """
    defined = [] if chunk.source_type in PROSE else [name for name in asked.symbols if defines(chunk, name)]
    files = [name for name in asked.files if is_file(chunk.path, name)]
    return list(dict.fromkeys([*defined, *files, *spelt(chunk, asked)]))


def spelt(chunk: Chunk, asked: Asked) -> list[str]:
    """What the question spells as it stands in a chunk: identifiers and phrases.

    A word like any other is not looked for because it is quoted: ``the "transformer" concept`` is of another thing.
    """
    plain = () if asked.bare_symbol else [name for name in asked.symbols if name.isalpha() and name.islower()]
    symbols = [name for name in asked.symbols if name not in plain and holds(chunk, name)]
    return list(dict.fromkeys([*symbols, *(phrase for phrase in asked.phrases if says(chunk, phrase))]))
