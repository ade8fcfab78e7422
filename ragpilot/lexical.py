"""Text to lexical sparse vectors: what a chunk's words are, and how much each weighs.

A term is a stemmed word: every whole identifier, its camelCase and snake_case parts, the words of path (the file's
stem twice) and symbol. Weights are the term-frequency half of BM25 (Robertson and Zaragoza, 2009); the other
half, the inverse document frequency, is the store's, which alone knows what the actor may read.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache

import snowballstemmer

from ragpilot.types import SparseVector

K1 = 1.2
"""How soon repetition stops to count."""
B = 0.75
"""How much a long chunk is discounted."""
MEAN_TERMS = 120
"""Terms of a usual chunk. A constant, not the corpus's mean, so that no foreign document can shift a weight."""

_WORD = re.compile(r"[^\W_]+(?:_+[^\W_]+)*", re.UNICODE)
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z][a-z]+|[a-z]+|\d+")
_UNSPACED = re.compile(r"([\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]+)")
_RUN = re.compile(r"\d+|[^\W\d_]+")
_LONGEST_WORD = 64
"""Longer runs are data (hashes, base64): they are kept whole, cut to this many characters."""

_stemmer = snowballstemmer.stemmer("english")

QUESTION_WORDS = frozenset(
    """
    a about all am an and any are as at be been being between both but by can codebase could did do does doing done
    each every explain file files find for from get give had has have having he her here his how i if in into is it its
    itself kind let like list look made make many may me might more most much must my need of on one or other our out
    over please project repo repository shall she should show so some such tell than that the their them then there
    these they this those through to under up us use used uses using very want was we were what when where whether
    which while who whom whose why will with within work works would you your
    """.split()
)
"""Words that ask rather than name; they are left out of a question, never out of a chunk."""


def words(text: str) -> list[str]:
    """The identifiers and words of ``text`` as written, underscores at their ends aside."""
    return _WORD.findall(text)


@lru_cache(maxsize=1 << 16)
def parts(word: str) -> tuple[str, ...]:
    """Lower-case parts of an identifier: ``HTTPServer_start2`` -> ``http``, ``server``, ``start``, ``2``.

    Runs of scripts that are written without spaces become overlapping pairs of characters.
    """
    if word.isascii():
        return tuple(part.lower() for part in _PART.findall(word))
    found: list[str] = []
    for run in _UNSPACED.split(word):
        if _UNSPACED.fullmatch(run):
            found.extend(run[at : at + 2] for at in range(max(1, len(run) - 1)))
        else:
            found.extend(part.lower() for part in _RUN.findall(run))
    return tuple(found)


@lru_cache(maxsize=1 << 16)
def stem(word: str) -> str:
    """The English stem of a lower-case word (Porter2); words with digits stay as they are."""
    return str(_stemmer.stemWord(word)) if word.isalpha() and word.isascii() else word


@lru_cache(maxsize=1 << 16)
def term_id(term: str) -> int:
    """A term's dimension in the sparse vector: 32 bits, stable over releases and machines."""
    return zlib.crc32(term.encode("utf-8", "surrogatepass"))


@lru_cache(maxsize=1 << 16)
def terms_of(word: str) -> tuple[str, ...]:
    """The terms of one word: its stemmed parts and, where it has several, the whole identifier."""
    cut = word[:_LONGEST_WORD]
    split = parts(cut) if len(word) <= _LONGEST_WORD else (cut.lower(),)
    stems = tuple(stem(part) for part in split)
    if len(split) < 2:
        return stems
    return (*stems, cut.replace("_", "").lower())


def terms(text: str) -> Iterable[str]:
    """All terms of a text, in order, with repetitions."""
    for word in words(text):
        yield from terms_of(word)


def path_words(path: str) -> list[str]:
    """The words of a path, the file's stem twice, its suffix last."""
    *folders, name = path.split("/")
    file_stem, _, suffix = name.rpartition(".")
    if not file_stem:
        file_stem, suffix = name, ""
    return [*folders, file_stem, file_stem, suffix]


def document_terms(text: str, *, path: str, symbol: str | None, header: str) -> Counter[str]:
    """How often each term stands in a chunk, its path and its symbol; the header adds only what they lack."""
    counted = Counter(terms(text))
    counted.update(term for word in path_words(path) for term in terms(word))
    counted.update(terms(symbol or ""))
    for term in set(terms(header)) - counted.keys():
        counted[term] = 1
    return counted


def document_vector(text: str, *, path: str, symbol: str | None, header: str) -> SparseVector:
    """The lexical vector of a chunk: term -> saturated frequency, discounted by length."""
    counted = document_terms(text, path=path, symbol=symbol, header=header)
    discount = K1 * (1 - B + B * counted.total() / MEAN_TERMS)
    weights: dict[int, float] = {}
    for term, count in counted.items():
        dimension = term_id(term)
        weights[dimension] = weights.get(dimension, 0.0) + count * (K1 + 1) / (count + discount)
    ordered = sorted(weights.items())
    return SparseVector(tuple(i for i, _ in ordered), tuple(weight for _, weight in ordered))


def question_terms(question: str) -> list[str]:
    """The distinct terms that a question names, in order; all of its terms where it only asks."""
    named = [word for word in words(question) if word.lower() not in QUESTION_WORDS]
    return list(dict.fromkeys(term for word in named or words(question) for term in terms_of(word)))


def question_vector(question: str) -> SparseVector:
    """The lexical vector of a question: each of its terms once."""
    dimensions = sorted({term_id(term) for term in question_terms(question)})
    return SparseVector(tuple(dimensions), (1.0,) * len(dimensions))
