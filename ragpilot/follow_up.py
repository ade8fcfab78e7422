"""Questions that go on from earlier ones: "what calls it?", "and in the tests?", "why?". Pure.

What such a question is about stands in an earlier one. It is searched together with that; by itself it would find
nothing, or something else that its few words happen to fit.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum

from ragpilot.lexical import QUESTION_WORDS, terms, terms_of, words
from ragpilot.routing import is_symbol, named_files, named_symbols
from ragpilot.types import Turn

_LONGEST_TOPIC = 300
"""Characters of an earlier question that are searched for again."""
_OF_ALL = re.compile(
    r"\b(?:this|the|your)\s+(?:project|repo(?:sitory)?|code ?base|library|package|tool|app(?:lication)?|framework)\b",
    re.IGNORECASE,
)
"""What stands for all that is indexed, whatever was spoken of."""
_REFERS = re.compile(
    r"""
      \b(?:it|its|itself|they|them|their|these|those)\b
    | \bthis\b
    | (?:^|\b(?:is|are|was|were|do|does|did|can|could|should|would|will|has|have|of|for|about|with|from|by|to|on|in|like
              |after|before|without|and|but|or|if|why|how|when|where|what)\s+)that\b
    | \bthe\s+(?:former|latter|above|same|(?:first|second|third|last|other|previous)\s+one)\b
    """,
    re.IGNORECASE | re.VERBOSE,
)
_GOES_ON = re.compile(r"^\W*(?:and|but|or|also|then|(?:what|how)\s+about|what\s+else|anything\s+else)\b", re.IGNORECASE)


_OF_THE_PROJECT = re.compile(
    r"\b(?:install|set\s+up|build|built|compile|run|deploy|release|contribute|maintain\w*|licen[cs]ed?)\b",
    re.IGNORECASE,
)
"""What "it" can do that is the project itself: "how do I install it?"."""


class Need(StrEnum):
    """How much a question needs an earlier one."""

    ALWAYS = "always"
    """It names nothing by itself: "why?"."""
    RATHER = "rather"
    """It points back, by a pronoun or by what it leaves out."""
    IF_REFUSED = "if_refused"
    """It may well stand by itself."""


@dataclass(frozen=True, slots=True)
class Topic:
    """What a question may go on from: an earlier question, at most 300 characters of it."""

    question: str
    need: Need


def topic_of(question: str, turns: Sequence[Turn]) -> Topic | None:
    """The latest earlier question that stands by itself; None where ``question`` has nothing to do with it."""
    asked = [turn.content.strip() for turn in turns if turn.role == "user" and turn.content.strip()]
    need = _need(question, turns[-2:]) if asked else None
    if need is None:
        return None
    topic = next((earlier for earlier in reversed(asked) if not _points_back(earlier)), asked[0])
    return Topic(topic[:_LONGEST_TOPIC], need)


def is_answerable(question: str, need: Need, unknown: Collection[str]) -> bool:
    """Whether a topic could make ``question`` answerable, of whose terms the ``unknown`` stand nowhere.

    Where most of what it names stands nowhere, it is about something else; where it does not even point back, less
    than that is enough.
    """
    named = _terms(question)
    return len(named & set(unknown)) * (3 if need == Need.IF_REFUSED else 2) <= len(named)


def _need(question: str, exchange: Sequence[Turn]) -> Need | None:
    if _OF_ALL.search(question):
        return None
    if not _named(question):
        return Need.ALWAYS
    if _points_back(question):
        return Need.IF_REFUSED if _OF_THE_PROJECT.search(question) else Need.RATHER
    said = {term for turn in exchange for term in terms(turn.content)}
    return Need.IF_REFUSED if _terms(question) & said else None


def _points_back(question: str) -> bool:
    if _REFERS.search(question) or _GOES_ON.search(question):
        return True
    named = _named(question)
    if not named:
        return True
    return len(named) == 1 and not (is_symbol(question) or named_symbols(question) or named_files(question))


def _terms(question: str) -> set[str]:
    return {term for word in _named(question) for term in terms_of(word)}


def _named(question: str) -> list[str]:
    return [word for word in words(question) if word.lower() not in QUESTION_WORDS]
