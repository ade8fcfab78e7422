from __future__ import annotations

import math
from dataclasses import replace

import pytest

from ragpilot.config import RetrievalSettings
from ragpilot.lexical import stem, term_id
from ragpilot.refusal import (
    bounds,
    evidence,
    gate_threshold,
    inverse_document_frequency,
    names,
    names_foreign,
    word_share,
)
from ragpilot.types import GateCalibration, TermStatistics
from tests.builders import chunk

CALIBRATION = GateCalibration(threshold=0.5, per_decade=0.1, reference_chunks=1000, word_weight=0.2, foreign_name=0.1)


def statistics(total: int, **held: int) -> TermStatistics:
    return TermStatistics(total, {term_id(stem(word)): count for word, count in held.items()})


@pytest.mark.parametrize(
    ("settings", "floor", "origin"),
    [
        (RetrievalSettings(min_score=0.2), 0.2, "retrieval.min_score"),
        (RetrievalSettings(), 0.4, "embedder mini"),
    ],
)
def test_the_floor_and_where_it_comes_from(settings: RetrievalSettings, floor: float, origin: str) -> None:
    found = bounds(settings, embedder="mini", default_floor=0.4, calibration=None, readable=5)
    assert (found.floor, found.floor_origin) == (floor, origin)


def test_without_any_floor_of_its_own_an_embedder_gets_035() -> None:
    found = bounds(RetrievalSettings(), embedder="mini", default_floor=None, calibration=None, readable=5)
    assert (found.floor, found.floor_origin) == (0.35, "default")


def test_a_configured_floor_does_not_switch_the_gate_off() -> None:
    settings = RetrievalSettings(min_score=0.1)
    found = bounds(settings, embedder="mini", default_floor=0.4, calibration=CALIBRATION, readable=1000)
    assert found.gate == 0.5


@pytest.mark.parametrize(("gate", "expected"), [("off", None), (0.7, 0.7), ("auto", 0.6)])
def test_the_gate_is_automatic_off_or_a_number(gate: str | float, expected: float | None) -> None:
    settings = RetrievalSettings.model_validate({"gate": gate})
    found = bounds(settings, embedder="mini", default_floor=0.4, calibration=CALIBRATION, readable=10_000)
    assert found.gate == expected


def test_an_embedder_without_calibration_has_no_gate_and_says_so() -> None:
    found = bounds(RetrievalSettings(), embedder="mini", default_floor=0.4, calibration=None, readable=10)
    assert found.gate is None
    assert "mini is not calibrated" in found.gate_origin


def test_the_gate_rises_by_decades_of_what_may_be_read() -> None:
    assert gate_threshold(CALIBRATION, 100) == pytest.approx(0.4)
    assert gate_threshold(CALIBRATION, 100_000) == pytest.approx(0.7)
    assert gate_threshold(CALIBRATION, 0) == pytest.approx(0.2)


def test_a_term_that_stands_nowhere_weighs_most() -> None:
    found = statistics(100, budget=3)
    assert inverse_document_frequency(found, stem("budget")) == pytest.approx(math.log(1 + 97.5 / 3.5))
    assert inverse_document_frequency(found, "zebra") > inverse_document_frequency(found, stem("budget"))


def test_the_share_of_the_questions_rare_words_in_one_chunk() -> None:
    found = statistics(100, context=50, budget=1)
    share = word_share([stem("context"), stem("budget")], chunk(text="the context"), found)
    assert 0.0 < share < 0.2
    assert word_share([stem("context"), stem("budget")], chunk(text="context budgets"), found) == pytest.approx(1.0)
    assert word_share([], chunk(), found) == 0.0


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("How does Django implement its middleware?", ("Django",)),
        ("Where is get_or_create defined?", ("get_or_create",)),
        ("what does isReady return", ("isReady",)),
        ("Requests are retried", ()),
        ("where is the context budget enforced?", ()),
    ],
)
def test_what_a_question_calls_by_name(question: str, expected: tuple[str, ...]) -> None:
    assert names(question) == expected


def test_a_name_that_stands_nowhere_speaks_against_the_question() -> None:
    known = statistics(100, django=4, middleware=9)
    unknown = statistics(100, django=0, middleware=9)
    question = "How does Django implement middleware?"
    assert not names_foreign(question, known)
    assert names_foreign(question, unknown)
    best = [chunk(text="middleware stack")]
    gained = evidence(question, 0.5, best, known, CALIBRATION) - evidence(question, 0.5, [], known, CALIBRATION)
    assert 0.0 < gained < 0.2
    without = replace(CALIBRATION, foreign_name=0.0)
    lost = evidence(question, 0.5, best, unknown, without) - evidence(question, 0.5, best, unknown, CALIBRATION)
    assert lost == pytest.approx(0.1)
