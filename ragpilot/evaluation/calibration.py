"""Fitting floor and gate to an embedder that RagPilot does not know, on texts and questions in the package.

Every model has a background: the cosine that it gives to texts which have nothing to do with each other. For some it
lies near 0.1, for others over 0.5, so no fixed bound fits two models. Both sides of the bounds are measured:

1.  Texts (headers and bodies, as an index would embed them) and questions are embedded. Each question is judged as
    the product judges it: candidates with their cosines and lexical scores are ranked, and give the best cosine and
    the evidence (``refusal.evidence``: the best cosine, 0.1 of the share of rare words found, 0.1 off for a foreign
    name). A model that squeezes its cosines together has these two weights squeezed alike, by how far apart the medians
    of related and unrelated questions lie; otherwise words alone would decide.
2.  Gate: background questions shall be refused (98 % of them), questions that belong to a text shall not (97 % of
    them). The threshold lies halfway between the 98th percentile of the one and the 3rd of the other, so that both
    may lie further out in a real corpus than here.
3.  Growth: the best of N unrelated texts is nearer the larger N is, as the square root of 2 ln N for a bell-shaped
    background (Fisher and Tippett, 1928). The background's 90th percentile is measured over random parts of the texts,
    a line through it gives the spread, and that lifts the threshold to ``reference_chunks`` and gives ``per_decade``.
4.  Floor: halfway between the best cosine that nine in ten background questions stay under and that which 99 % of the
    others reach, and never over the latter: it refuses single hits that are plainly foreign, and leaves the question
    to the gate.

For the embedded model this gives a floor of 0.36 and a gate of 0.47 at 2,000 chunks, 0.06 a decade; on twenty-four
public repositories 0.35, 0.49 and 0.06 were found for it.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from ragpilot import naming, ranking, refusal, routing
from ragpilot.classify import SourceTypeClassifier
from ragpilot.evaluation.calibration_data import Material
from ragpilot.ingest.documents import body_text, header_text
from ragpilot.lexical import document_vector, question_terms, question_vector, term_id
from ragpilot.ports import Embedder
from ragpilot.types import Calibration, Candidate, Chunk, GateCalibration, TermStatistics, Vector

BACKGROUND_REFUSED = 0.98
ANSWERABLE_REFUSED = 0.03
_BACKGROUND_HIT, _ANSWERABLE_HIT = 0.9, 0.01
_GROWTH = 0.9
_USUAL_WIDTH = 0.3
"""Between the median cosines of related and unrelated questions, for the model that the two weights were found for."""
_PARTS, _ROUNDS = (25, 50, 100), 4
_UNFITTED = GateCalibration(threshold=0.0, per_decade=0.0)

_Matrix = NDArray[np.float32]


async def calibrate(embedder: Embedder, material: Material, *, now: datetime) -> Calibration:
    """Floor and gate for ``embedder``; the same for the same vectors. Raises EmbedderError."""
    texts = await _Texts.embedded(embedder, material.chunks)
    answerable = [(question, await embedder.embed_question(question)) for question in material.answerable]
    background = [(question, await embedder.embed_question(question)) for question in material.background]
    wanted, foreign = texts.judge(answerable), texts.judge(background)
    width = min(1.0, max(0.05, float(np.median(wanted.cosine) - np.median(foreign.cosine)) / _USUAL_WIDTH))
    wanted, foreign = wanted.squeezed(width), foreign.squeezed(width)
    spread = _spread(texts, background, width)
    whole, reference = _reach(len(texts)), _reach(_UNFITTED.reference_chunks)
    high = float(np.quantile(foreign.evidence, BACKGROUND_REFUSED))
    low = float(np.quantile(wanted.evidence, ANSWERABLE_REFUSED))
    threshold = (high + low) / 2
    background_hit = float(np.quantile(foreign.cosine, _BACKGROUND_HIT))
    answerable_hit = float(np.quantile(wanted.cosine, _ANSWERABLE_HIT))
    floor = min(answerable_hit, (background_hit + answerable_hit) / 2)
    return Calibration(
        embedder=embedder.identity,
        floor=round(floor, 4),
        gate=GateCalibration(
            threshold=round(threshold + spread * (reference - whole), 4),
            per_decade=round(spread * math.log(10) / reference, 4),
            word_weight=round(_UNFITTED.word_weight * width, 4),
            foreign_name=round(_UNFITTED.foreign_name * width, 4),
        ),
        made_at=now,
        background_refused=foreign.refused(threshold, floor),
        answerable_refused=wanted.refused(threshold, floor),
    )


def tells_apart(calibration: Calibration) -> bool:
    """Whether the bounds refuse what they should and not what they should not, on the texts they were fitted on."""
    return calibration.background_refused >= BACKGROUND_REFUSED and calibration.answerable_refused <= ANSWERABLE_REFUSED


def _reach(count: int) -> float:
    """How far out, in standard deviations, the best of ``count`` unrelated texts lies."""
    return math.sqrt(2 * math.log(max(count, 2)))


def _spread(texts: _Texts, background: Sequence[tuple[str, Vector]], width: float) -> float:
    """By how much the background rises for each unit of ``_reach``."""
    draw = random.Random(0)  # noqa: S311 - resampling, not secrecy
    sizes = [size for size in _PARTS if size < len(texts)]
    reached, levels = [], []
    for size in (*sizes, len(texts)):
        parts = [draw.sample(range(len(texts)), size) for _ in range(_ROUNDS if size < len(texts) else 1)]
        evidence = np.concatenate([texts.judge(background, part).squeezed(width).evidence for part in parts])
        reached.append(_reach(size))
        levels.append(float(np.quantile(evidence, _GROWTH)))
    if len(reached) < 2:
        return 0.0
    return max(0.0, float(np.polyfit(reached, levels, 1)[0]))


@dataclass(frozen=True, slots=True)
class _Judged:
    """Best cosine and evidence of some questions, each of shape ``(questions,)``."""

    cosine: NDArray[np.float64]
    evidence: NDArray[np.float64]

    def squeezed(self, width: float) -> _Judged:
        """The same with the weights of words and names multiplied by ``width``."""
        return _Judged(self.cosine, self.cosine + width * (self.evidence - self.cosine))

    def refused(self, threshold: float, floor: float) -> float:
        """The share that gate or floor refuses."""
        return round(float(np.mean((self.evidence < threshold) | (self.cosine < floor))), 4)


class _Texts:
    """The embedded texts, searched as a store would search them."""

    def __init__(self, chunks: Sequence[Chunk], headers: Sequence[Vector], bodies: Sequence[Vector]) -> None:
        self._chunks = chunks
        self._headers: _Matrix = np.stack(headers)
        self._bodies: _Matrix = np.stack(bodies)
        self._lexical = [_weights(chunk) for chunk in chunks]
        self._classifier = SourceTypeClassifier()

    @classmethod
    async def embedded(cls, embedder: Embedder, chunks: Sequence[Chunk]) -> _Texts:
        """The texts with both of their vectors."""
        headers = await embedder.embed_documents([header_text(chunk) for chunk in chunks])
        return cls(chunks, headers, await embedder.embed_documents([body_text(chunk) for chunk in chunks]))

    def __len__(self) -> int:
        return len(self._chunks)

    def judge(self, questions: Sequence[tuple[str, Vector]], part: Sequence[int] | None = None) -> _Judged:
        """What each question finds; with ``part``, as if only the texts at these places were indexed."""
        places = range(len(self)) if part is None else sorted(part)
        held = Counter(term for place in places for term in self._lexical[place])
        found = [self._judge(question, vector, places, held) for question, vector in questions]
        return _Judged(np.array([cosine for cosine, _ in found]), np.array([evidence for _, evidence in found]))

    def _judge(self, question: str, vector: Vector, places: Sequence[int], held: Counter[int]) -> tuple[float, float]:
        asked = naming.Asked.of(
            question,
            symbols=routing.named_symbols(question),
            bare_symbol=routing.is_symbol(question),
            files=routing.named_files(question),
        )
        source_types = self._classifier.classify(question)
        plan = routing.plan(question, top_k=None, default_k=8, source_types=source_types)
        terms = question_terms(question)
        statistics = TermStatistics(len(places), {key: held[key] for key in map(term_id, terms)})
        ranked = ranking.rank(self._candidates(question, vector, places, held), asked, plan)
        best_cosine = max(item.cosine for item in ranked)
        best = [item.candidate.chunk for item in ranked[: refusal.GATE_HITS]]
        return best_cosine, refusal.evidence(question, best_cosine, best, statistics, _UNFITTED)

    def _candidates(self, question: str, vector: Vector, places: Sequence[int], held: Counter[int]) -> list[Candidate]:
        statistics = TermStatistics(len(places), held)
        rare = {
            term: refusal.inverse_document_frequency_of(statistics, term) for term in question_vector(question).indices
        }
        headers, bodies = self._headers @ vector, self._bodies @ vector
        return [
            Candidate(
                self._chunks[place],
                float(headers[place]),
                float(bodies[place]),
                sum(self._lexical[place].get(term, 0.0) * weight for term, weight in rare.items()),
            )
            for place in places
        ]


def _weights(chunk: Chunk) -> dict[int, float]:
    vector = document_vector(chunk.text, path=chunk.path, symbol=chunk.symbol, header=chunk.header)
    return dict(zip(vector.indices, vector.values, strict=True))
