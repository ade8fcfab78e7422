"""From a question to a RetrievalPlan: what kind of question it is, and how it is searched and answered."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from ragpilot.lexical import QUESTION_WORDS, words
from ragpilot.types import RetrievalPlan


class Intent(StrEnum):
    """The kinds of question that are searched differently."""

    EXACT_QUOTE = "exact_quote"
    COMPARISON = "comparison"
    DEFINITION = "definition"
    SYMBOL = "symbol"
    RESEARCH = "research"
    TOPIC_GUIDE = "topic_guide"
    ONE_DOCUMENT = "one_document"
    GENERAL = "general"
    SMALL_TALK = "small_talk"


@dataclass(frozen=True, slots=True)
class _Slices:
    """How one intent differs from a general question."""

    temperature: float = 0.1
    strictness: Literal["strict", "normal", "broad"] = "normal"
    per_document: int = 3
    document_prior: float = 0.0
    most: int | None = None
    """The most hits that make sense, whatever top_k; None: no such limit."""


_SLICES: dict[Intent, _Slices] = {
    Intent.EXACT_QUOTE: _Slices(temperature=0.0, strictness="strict", most=5),
    Intent.COMPARISON: _Slices(temperature=0.2, per_document=2),
    Intent.DEFINITION: _Slices(temperature=0.0, strictness="strict"),
    Intent.SYMBOL: _Slices(temperature=0.0, strictness="strict"),
    Intent.RESEARCH: _Slices(temperature=0.2, strictness="broad"),
    Intent.TOPIC_GUIDE: _Slices(temperature=0.2, strictness="broad", document_prior=1.0),
    Intent.ONE_DOCUMENT: _Slices(per_document=8),
    Intent.GENERAL: _Slices(),
    Intent.SMALL_TALK: _Slices(),
}

_GREETING = r"(?:hi+|hello|hey+|yo|howdy|good (?:morning|afternoon|evening|night|day)|greetings|moin|hola|bonjour)"
_SMALL_TALK = re.compile(
    rf"""^\W*(?:
        {_GREETING}(?:\s+(?:there|all|everyone|ragpilot|bot|friend|again))?
      | (?:{_GREETING}\W+)?(?:how\s+are\s+you(?:\s+(?:doing|today))*|how(?:'s|\s+is)\s+it\s+going)
      | (?:{_GREETING}\W+)?(?:what(?:'s|\s+is)\s+up|sup)
      | (?:many\s+)?thanks?(?:\s+(?:you|a\s+lot|so\s+much|very\s+much))*(?:\s+for\s+(?:your|the)\s+help)?|thx|cheers
      | (?:ok(?:ay)?|cool|great|nice|perfect|awesome|got\s+it|sounds\s+good|good\s+job|well\s+done|lol|haha+)
      | (?:good\s*)?bye+(?:\s*bye+)?|see\s+you(?:\s+(?:later|soon))?
      | (?:who|what)\s+are\s+you|what\s+can\s+you\s+do|how\s+old\s+are\s+you
      | where\s+(?:are\s+you\s+from|do\s+you\s+live)
      | (?:\w+,\s+)?(?:please\s+)?(?:tell\s+me|what(?:'s|\s+is))\s+your\s+(?:\w+\s+)?(?:name|age|purpose|job)
      | are\s+you\s+(?:a\s+)?(?:human|real|robot|bot|an\s+ai)
      | tell\s+me\s+(?:a\s+joke|something(?:\s+(?:funny|interesting))?)|(?:please\s+)?help(?:\s+me)?|test(?:ing)?|ping
    )\W*$""",
    re.IGNORECASE | re.VERBOSE,
)
_QUOTE = re.compile(
    r"\"[^\"\n]*\s[^\"\n]*\"|“[^”\n]*\s[^”\n]*”|`[^`\n]*\s[^`\n]*`|(?<!\w)'[^'\n]*\s[^'\n]*'(?!\w)|‘[^’\n]*\s[^’\n]*’"
)
_QUOTED_WORD = re.compile(r"(?:[`\"“‘]|(?<!\w)')([^`\"“”‘’'\s]+)(?:[`\"”’]|'(?!\w))")
_MESSAGE = re.compile(
    r"^\W*(?:why (?:do|did|am) (?:i|we) (?:get|getting|see|seeing)"
    r"|(?:what|who) (?:raises|throws|causes|prints|logs|says))"
    r" (?:(?:the|this|an?) )?(?:(?:error|exception|message|warning)\b:? ?)?(?P<message>\S.+)$",
    re.IGNORECASE,
)
"""Who asks for a message, and does not quote it."""
_ROUTE = re.compile(r"\b(GET|PUT|POST|DELETE|PATCH|HEAD|OPTIONS|TRACE) (/[^\s?\"'`,]*)")
"""An operation of an API."""
_INTERROGATIVES = frozenset("how really what when where which who whom whose why yes".split())
"""Alone, they ask or answer; they stand in many texts and name nothing."""
_IDENTIFIER = re.compile(r"^[\w$@]+(?:(?:\.|::|->|#)[\w$@]+)*(?:\(\))?$")
_CODE_WORD = re.compile(r"\w+(?:\.|::|->|#)\w+|\w*_\w+|[a-z]+[A-Z]\w*|[A-Z][a-z0-9]+[A-Z]\w*|\w+\(\)")
_USED = re.compile(
    r"^\W*where (?:is|are|do we|does it) ([\w.$]{4,})(?:\(\))? "
    r"(?:called|used|raised|thrown|imported|referenced|invoked|instantiated|defined|declared|emitted|assigned)\b",
    re.IGNORECASE,
)
"""Where something is used, whatever the spelling of its name."""
_LONGEST_PHRASE = 20
_FILE = re.compile(
    r"(?<![\w/])((?:[\w.@-]+/)*(?:[\w.@-]+\.(?:py|pyi|tsx?|jsx?|mjs|cs|java|go|rs|c|h|cc|cpp|hpp|rb|php|kts?|sh|swift"
    r"|scala|html?|css|scss|vue|svelte|sql|proto|graphql|md|rst|adoc|txt|ipynb|json|ya?ml|toml|ini|cfg|mod|lock|gradle"
    r"|xml|csproj|sln)|(?i:readme|changelog|makefile|dockerfile)|LICEN[CS]E|CONTRIBUTING|NOTICE))(?![\w/])(?!\.\w)"
)
_PLACE = re.compile(_FILE.pattern + r":L?(\d{1,7})(?:-L?(\d{1,7}))?(?!\w)")
"""A citation: a file and its lines."""
_RULES: tuple[tuple[Intent, re.Pattern[str]], ...] = (
    (
        Intent.COMPARISON,
        re.compile(r"\b(?:difference|differ|compared?|comparison|versus|vs\.?|rather than)\b", re.IGNORECASE),
    ),
    (
        Intent.TOPIC_GUIDE,
        re.compile(
            r"\b(?:tutorials?|guides?|walk ?through|getting started|quick ?start|step[- ]by[- ]step|best practices?"
            r"|install(?:ation|ing)?|set ?up|example of|documentation|docs|readme|changelog)\b"
            r"|^how (?:do|can|should|would) (?:i|we|you|one) "
            r"(?:install|start|run|use|contribute|upgrade|migrate|deploy)\b",
            re.IGNORECASE,
        ),
    ),
    (
        Intent.DEFINITION,
        re.compile(
            r"^(?:what(?:'s| is| are| does)|define|definition of|meaning of)\b(?!.*\b(?:happens?|when|if)\b)"
            r"|\bwhere (?:is|are) .+ (?:defined|declared|implemented)\b",
            re.IGNORECASE,
        ),
    ),
    (
        Intent.RESEARCH,
        re.compile(
            r"^(?:how|why|explain|describe|what happens|in what way)\b|\barchitecture\b|\boverview\b", re.IGNORECASE
        ),
    ),
)


def named_symbols(question: str) -> tuple[str, ...]:
    """The identifiers of code that a question names, as written, call brackets aside; the whole of a bare symbol."""
    bare = question.strip().rstrip("?").strip("`\"' ")
    found = [bare] if is_symbol(question) else _CODE_WORD.findall(question)
    quoted = [word for word in _QUOTED_WORD.findall(question) if _IDENTIFIER.match(word)]
    routes = [f"{method} {path}" for method, path in _ROUTE.findall(question)]
    return tuple(dict.fromkeys([*(word.removesuffix("()") for word in (*found, *quoted)), *routes]))


def named_phrases(question: str) -> tuple[str, ...]:
    """Words that may stand in a text as they stand here.

    What is quoted, all of a question, which may be a message, and what somebody looks for the uses of.
    """
    quoted = [found[1:-1] for found in _QUOTE.findall(question)]
    message = _MESSAGE.match(question)
    said = [words(phrase) for phrase in (*quoted, *([message["message"]] if message else ()), question)]
    phrases = [" ".join(phrase) for phrase in said if len(phrase) <= _LONGEST_PHRASE and _says_something(phrase)]
    return tuple(dict.fromkeys([*phrases, *_USED.findall(question)]))


def _says_something(phrase: list[str]) -> bool:
    return sum(word.lower() not in QUESTION_WORDS for word in phrase) > 1


def is_symbol(question: str) -> bool:
    """Whether the question is nothing but the name of something in code."""
    bare = question.strip().rstrip("?").strip("`\"' ")
    if bare.lower() in _INTERROGATIVES:
        return False
    return bool(_IDENTIFIER.match(bare)) and (bool(_CODE_WORD.fullmatch(bare)) or len(bare) > 2)


def named_files(question: str) -> tuple[str, ...]:
    """File names and paths that a question names."""
    return tuple(dict.fromkeys(_FILE.findall(question)))


def named_lines(question: str) -> tuple[tuple[str, int, int], ...]:
    """Places that a question names as citations do: file, first line, last line."""
    found = [(file, int(first), int(last or first)) for file, first, last in _PLACE.findall(question)]
    return tuple(dict.fromkeys(found))


def classify_intent(question: str) -> Intent:
    """The kind of a question; the first rule that matches decides."""
    text = question.strip()
    if _SMALL_TALK.match(text) or not re.search(r"\w", text):
        return Intent.SMALL_TALK
    if is_symbol(text):
        return Intent.SYMBOL
    if _QUOTE.search(text):
        return Intent.EXACT_QUOTE
    if named_files(text):
        return Intent.ONE_DOCUMENT
    return next((intent for intent, pattern in _RULES if pattern.search(text)), Intent.GENERAL)


def plan(question: str, *, top_k: int | None, default_k: int, source_types: frozenset[str]) -> RetrievalPlan:
    """The plan for one question. ``top_k``, where the request gives it, wins over every other count of hits."""
    intent = classify_intent(question)
    slices = _SLICES[intent]
    planned = min(default_k, slices.most) if slices.most else default_k
    return RetrievalPlan(
        intent=intent.value,
        k=top_k if top_k is not None else planned,
        temperature=slices.temperature,
        strictness=slices.strictness,
        per_document=slices.per_document,
        source_types=source_types,
        document_prior=slices.document_prior,
    )
