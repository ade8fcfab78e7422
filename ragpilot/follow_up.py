"""Questions that go on from earlier ones: "what calls it?", "and in the tests?", "why?". Pure.

What such a question is about stands in an earlier one. It is searched together with that; by itself it would find
nothing, or something else that its few words happen to fit.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum

from ragpilot.found import Retrieval
from ragpilot.lexical import QUESTION_WORDS, document_terms, terms, terms_of, words
from ragpilot.project_questions import OF_THE_PROJECT
from ragpilot.routing import is_symbol, named_files, named_symbols
from ragpilot.types import NOT_FOUND_ANSWER, Hit, Turn

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
    | \bthat(?:\W*$|\s+(?:class|code|error|exception|field|file|flag|function|method|module|option|setting|test|type)\b)
    | \bones?\W*$
    | \bthe\s+(?:former|latter|above|same|(?:first|second|third|last|other|previous)\s+one)\b
    """,
    re.IGNORECASE | re.VERBOSE,
)
_PRONOUN = re.compile(r"\b(?:it|its|itself|they|them|their|these|those|that)\b|\bones?\W*$", re.IGNORECASE)
"""What surely points back; "this" may stand for what the asker has before them: "who manages this building?"."""
_GOES_ON = re.compile(
    r"^\W*(?:and|but|or|also|then|(?:the\s+)?same|(?:what|how)\s+about|what\s+else|anything\s+else)\b", re.IGNORECASE
)
_PROJECT_VERBS = re.compile(
    r"\b(?:install|set\s+up|build|built|compile|run|deploy|release|contribute|maintain\w*|licen[cs]ed?)\b",
    re.IGNORECASE,
)
"""What "it" can do that is the project itself: "how do I install it?"."""
_CONTRACTION = re.compile(r"\w+n['’]t\b|(?<=\w)['’](?:s|re|ve|ll|d|m)\b", re.IGNORECASE)
_MORE = frozenset(
    """
    clarify continue detail details elaborate example good happen happens mean means same summarise summarize
    understand words
    """.split()
)
"""Words by which one asks for more of the same, or how it goes on."""
_ASKING = QUESTION_WORDS | _MORE


class Need(StrEnum):
    """How much a question needs an earlier one."""

    ALWAYS = "always"
    """It names nothing by itself: "why?"."""
    RATHER = "rather"
    """It points back, by a pronoun or by what it leaves out."""
    BESIDE = "beside"
    """It names something beside what was spoken of: "and the timeout?", "what about websockets?"."""
    IF_REFUSED = "if_refused"
    """It may well stand by itself."""


@dataclass(frozen=True, slots=True)
class Topic:
    """What a question may go on from: an earlier question, at most 300 characters of it."""

    question: str
    need: Need
    before: str = ""
    """Another question that this one may have gone on from itself; searched too where the two find nothing."""


def topic_of(question: str, turns: Sequence[Turn]) -> Topic | None:
    """The latest earlier question that stands by itself; None where ``question`` has nothing to do with it.

    What was not found is no topic while anything else was spoken of.
    """
    asked = _asked(turns)
    need = _need(question, turns[-2:]) if asked else None
    if need is None:
        return None
    topic = before = heard = ""
    for earlier, said in asked:
        if not topic or not _points_back(earlier) or _took_over(earlier, said, topic):
            goes_on = not _terms(earlier).isdisjoint(terms(heard))
            topic, before = earlier, topic if goes_on else ""
        heard = f"{earlier} {said}"
    return Topic(topic[:_LONGEST_TOPIC], need, before[:_LONGEST_TOPIC])


def is_better_alone(question: str, need: Need, alone: Retrieval, together: Retrieval) -> bool:
    """Whether what ``question`` finds by itself is rather meant than what it finds with its topic.

    Without a pronoun, one of the hits must hold half of what it names: "where are my keys?" is no question about
    sessions. "Is it open source?" is asked of the project, whatever was spoken of.
    """
    if need == Need.ALWAYS:
        return False
    if not together.hits or not (_PRONOUN.search(question) or _speaks_of(together, question)):
        return True
    if not alone.hits:
        return False
    of_the_project = alone.hits[0].chunk.header in OF_THE_PROJECT
    stronger = alone.evidence > together.evidence
    beside = need == Need.BESIDE and _held(question, alone.hits[0]) > _held(question, together.hits[0])
    return of_the_project or stronger or beside


def is_answerable(question: str, need: Need, unknown: Collection[str]) -> bool:
    """Whether a topic could make ``question`` answerable, of whose terms the ``unknown`` stand nowhere.

    Where most of what it names stands nowhere, it is about something else; where it does not even point back, less
    than that is enough.
    """
    named = _terms(question)
    foreign = len(named & set(unknown))
    return foreign * 3 < len(named) if need == Need.IF_REFUSED else foreign * 2 <= len(named)


def _need(question: str, exchange: Sequence[Turn]) -> Need | None:
    if _OF_ALL.search(question):
        return None
    if not _named(question):
        return Need.ALWAYS
    if _points_back(question):
        if _PROJECT_VERBS.search(question):
            return Need.IF_REFUSED
        return Need.BESIDE if _names_another(question) else Need.RATHER
    said = {term for turn in exchange for term in terms(turn.content)}
    return Need.IF_REFUSED if _terms(question) & said else None


def _points_back(question: str) -> bool:
    if _REFERS.search(question) or _GOES_ON.search(question):
        return True
    named = _named(question)
    if not named:
        return True
    return len(named) == 1 and not (is_symbol(question) or named_symbols(question) or named_files(question))


def _names_another(question: str) -> bool:
    return bool(_GOES_ON.search(question) and _named(question)) and not _REFERS.search(question)


def _asked(turns: Sequence[Turn]) -> list[tuple[str, str]]:
    """The earlier questions with what was said to each: those that were answered, or all where none was."""
    found: list[tuple[str, str]] = []
    for at, turn in enumerate(turns):
        if turn.role == "user" and turn.content.strip():
            said = turns[at + 1].content if turns[at + 1 : at + 2] and turns[at + 1].role == "assistant" else ""
            found.append((turn.content.strip(), said))
    return [(asked, said) for asked, said in found if said.strip() != NOT_FOUND_ANSWER] or found


def _took_over(question: str, said: str, topic: str) -> bool:
    """Whether what a question named beside a topic was then spoken of more than any of the topic."""
    if not _names_another(question):
        return False
    spoken = Counter(terms(said))
    own = [spoken[term] for term in _terms(question)]
    return sum(own) > len(own) * max((spoken[term] for term in _terms(topic) - _terms(question)), default=0)


def _speaks_of(found: Retrieval, question: str) -> bool:
    return max(_held(question, hit) for hit in found.hits) * 2 >= len(_terms(question))


def _held(question: str, hit: Hit) -> int:
    """How many terms of a question a hit holds."""
    chunk = hit.chunk
    held = document_terms(chunk.text, path=chunk.path, symbol=chunk.symbol, header=chunk.header)
    return sum(term in held for term in _terms(question))


def _terms(question: str) -> set[str]:
    return {term for word in _named(question) for term in terms_of(word)}


def _named(question: str) -> list[str]:
    return [word for word in words(_CONTRACTION.sub(" ", question)) if word.lower() not in _ASKING]
