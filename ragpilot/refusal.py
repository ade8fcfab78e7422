"""Right evidence or none: the floor that each hit must reach, and the gate that the whole question must pass. Pure.

Both are judged on raw cosines and on the statistics of what the actor may read, never on fused scores, so neither
ranking weights nor documents that the actor cannot read can move them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from ragpilot.config import RetrievalSettings
from ragpilot.lexical import QUESTION_WORDS, document_terms, question_terms, term_id, terms_of, words
from ragpilot.types import Bounds, Chunk, GateCalibration, TermStatistics

FALLBACK_FLOOR = 0.35
_IDENTIFIER = re.compile(r"[a-z][A-Z]|[^\W_]_[^\W_]")

GATE_HITS = 8
"""How many of the best hits are searched for the question's rare words."""


def inverse_document_frequency(statistics: TermStatistics, term: str) -> float:
    """BM25's IDF (never negative) of a term over what the actor may read; highest for a term that stands nowhere."""
    return inverse_document_frequency_of(statistics, term_id(term))


def inverse_document_frequency_of(statistics: TermStatistics, dimension: int) -> float:
    """The same for a term that is known by its dimension."""
    held = statistics.frequencies.get(dimension, 0)
    return math.log(1 + (statistics.total - held + 0.5) / (held + 0.5))


def bounds(
    settings: RetrievalSettings,
    *,
    embedder: str,
    default_floor: float | None,
    calibration: GateCalibration | None,
    readable: int,
    origin: str = "",
) -> Bounds:
    """Floor and gate in force for an actor who may read ``readable`` chunks, with their origins (DESIGN section 4).

    ``origin`` says where the embedder's floor and gate came from, where that is not the embedder itself.
    """
    origin = origin or f"embedder {embedder}"
    if settings.min_score is not None:
        floor, floor_origin = settings.min_score, "retrieval.min_score"
    elif default_floor is not None:
        floor, floor_origin = default_floor, origin
    else:
        floor, floor_origin = FALLBACK_FLOOR, "default"
    if settings.gate == "off":
        return Bounds(floor, floor_origin, None, "retrieval.gate")
    if settings.gate != "auto":
        return Bounds(floor, floor_origin, float(settings.gate), "retrieval.gate")
    if calibration is None:
        return Bounds(floor, floor_origin, None, f"embedder {embedder} is not calibrated: `ragpilot calibrate`")
    gate = round(gate_threshold(calibration, readable), 4)
    counted = f"{readable} readable chunk{'' if readable == 1 else 's'}"
    return Bounds(floor, floor_origin, gate, f"{origin}, {counted}")


def gate_threshold(calibration: GateCalibration, readable: int) -> float:
    """What evidence must reach where ``readable`` chunks may be read."""
    decades = math.log10(max(readable, 1) / calibration.reference_chunks)
    return calibration.threshold + calibration.per_decade * decades


def word_share(terms: Sequence[str], chunk: Chunk, statistics: TermStatistics) -> float:
    """The share of the question's IDF mass that stands in one chunk (its path, symbol and header included), 0 to 1."""
    weights: Mapping[str, float] = {term: inverse_document_frequency(statistics, term) for term in terms}
    mass = sum(weights.values())
    if mass <= 0:
        return 0.0
    held = document_terms(chunk.text, path=chunk.path, symbol=chunk.symbol, header=chunk.header)
    return sum(weight for term, weight in weights.items() if term in held) / mass


def names(question: str) -> tuple[str, ...]:
    """What a question calls by a name: capitalised inside the sentence, or spelt as an identifier is."""
    found = [
        word
        for at, word in enumerate(words(question))
        if word.lower() not in QUESTION_WORDS and ((at and word[0].isupper()) or _IDENTIFIER.search(word))
    ]
    return tuple(dict.fromkeys(found))


def names_foreign(question: str, statistics: TermStatistics) -> bool:
    """Whether the question names something that stands in nothing the actor may read, such as another project."""
    return any(not statistics.frequencies.get(term_id(terms_of(name)[-1]), 0) for name in names(question))


def evidence(
    question: str,
    best_cosine: float,
    best: Sequence[Chunk],
    statistics: TermStatistics,
    calibration: GateCalibration,
) -> float:
    """What the gate is compared with: best cosine, what one of the best chunks spells out, less foreign names."""
    terms = question_terms(question)
    share = max((word_share(terms, chunk, statistics) for chunk in best[:GATE_HITS]), default=0.0)
    foreign = calibration.foreign_name if names_foreign(question, statistics) else 0.0
    return best_cosine + calibration.word_weight * share - foreign
