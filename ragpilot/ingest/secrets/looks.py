"""What a value looks like: random, as secrets are, or made of words, as names and sentences are."""

from __future__ import annotations

import math
import re
from collections import Counter
from itertools import pairwise

from ragpilot.ingest.secrets.placeholders import is_placeholder

_HEX = re.compile(r"[0-9a-fA-F]{32,}")
_WORDLIKE = re.compile(
    r"[a-z]+(?:[-_./:][a-z0-9]{1,12})*|[A-Z]+(?:[-_./:][A-Z0-9]{1,12})*"
    r"|[A-Z]{1,4}\d{1,2}(?:_(?:[A-Z]{1,14}|[A-Z]{0,4}\d{1,2}))+"
)
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_LONG, _MANY_DIGITS = 24, 4
_WORD = re.compile(r"[A-Z][a-z]{2,14}|[a-z]{3,14}|[A-Z]{3,14}(?![a-z])")
_SPEAKABLE = re.compile(r"(?=[^aeiouy]{0,4}[aeiouy])(?!\w*?[^aeiouy]{4})", re.IGNORECASE)
_SEPARATORS = re.compile(r"[-_./: ]+")
_WORDS_SHARE, _WORDS_MEAN = 0.75, 4.5
"""How much of a value its words make up, and their mean length: by chance they are few and short."""
_JUMBLED_LEAST, _JUMBLED_SHARE = 10, 0.5
_ENTROPY_QUOTED, _ENTROPY_BARE, _ENTROPY_SHARE = 3.0, 3.3, 0.8


def looks_random(value: str, *, quoted: bool) -> bool:
    """Whether a value is no placeholder, word or name; what is not ``quoted`` may be code and has to show more."""
    if is_placeholder(value) or _WORDLIKE.fullmatch(value) or not has_letters_and_digits(value):
        return False
    if _HEX.fullmatch(value) or _UUID.fullmatch(value):
        return True
    digits = sum(map(str.isdigit, value))
    if not quoted and (digits < 2 or "." in value):
        return False
    one_case = value.islower() or value.isupper()
    if not quoted and one_case and not (value.isalnum() and len(value) >= _LONG and digits >= _MANY_DIGITS):
        return False
    # A short value repeats few of its characters by chance; a share of what its length allows is enough.
    return _entropy(value) >= min(_ENTROPY_QUOTED if quoted else _ENTROPY_BARE, _ENTROPY_SHARE * math.log2(len(value)))


def has_letters_and_digits(value: str) -> bool:
    """Whether a value has both, as most passwords have to, and words have not."""
    return any(map(str.isdigit, value)) and any(map(str.isalpha, value))


def is_mixed(part: str) -> bool:
    """Whether a part has letters of both cases and digits, as what was encoded has and names seldom have."""
    return all(any(map(test, part)) for test in (str.isupper, str.islower, str.isdigit))


def is_jumbled(value: str) -> bool:
    """Whether letters alone are too mixed for a word or a name, in their case and in what can be spoken of them."""
    if not value.isalpha() or len(value) < _JUMBLED_LEAST or is_placeholder(value):
        return False
    changes = sum(one.islower() and other.isupper() for one, other in pairwise(value))
    said = sum(len(word) for word in _WORD.findall(value) if _SPEAKABLE.match(word))
    return changes > 1 and said < _JUMBLED_SHARE * len(value)


def is_words(value: str) -> bool:
    """Whether a value is made of several words that can be spoken: a name in code, or a sentence without blanks."""
    words = [word for word in _WORD.findall(value) if _SPEAKABLE.match(word)]
    said = sum(map(len, words))
    return len(words) > 1 and said >= max(_WORDS_MEAN * len(words), _WORDS_SHARE * len(_SEPARATORS.sub("", value)))


def _entropy(value: str) -> float:
    """Shannon's, in bits a character."""
    total = len(value)
    return -sum(count / total * math.log2(count / total) for count in Counter(value).values())
