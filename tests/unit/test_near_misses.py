from __future__ import annotations

import pytest

from ragpilot.events import to_wire
from ragpilot.found import Found
from ragpilot.near_misses import against, gate_missed, score_of
from ragpilot.passages import format_passages
from ragpilot.ranking import Ranked
from ragpilot.types import Bounds, Candidate, NearMiss
from tests.builders import chunk


def ranked(path: str, cosine: float) -> Ranked:
    return Ranked(Candidate(chunk(path), None, cosine, 0.0), fused=cosine, cosine=cosine)


def found(*items: Ranked, floor: float = 0.35, gate: float | None = 0.5, evidence: float = 0.4) -> Found:
    return Found(items, Bounds(floor, "embedder", gate, "calibrated"), evidence)


def told(misses: tuple[NearMiss, ...]) -> list[tuple[str, float, str, float]]:
    return [(miss.path, miss.score, miss.bound, miss.needed) for miss in misses]


def test_hits_that_the_gate_rejects_keep_their_own_cosines_and_ranking_order() -> None:
    items = [ranked("a.py", 0.41), ranked("b.py", 0.62), ranked("c.py", 0.3), ranked("d.py", 0.1), ranked("e.py", 0.5)]
    assert told(found(*items).near_misses()) == [
        ("a.py", 0.41, "gate", 0.5),
        ("b.py", 0.62, "gate", 0.5),
        ("c.py", 0.3, "floor", 0.35),
    ]


def test_hits_under_the_floor_come_in_ranking_order_and_the_far_ones_not() -> None:
    items = [ranked("far.py", 0.2), ranked("a.py", 0.28), ranked("b.py", 0.34)]
    assert told(found(*items, gate=None).near_misses()) == [
        ("a.py", 0.28, "floor", 0.35),
        ("b.py", 0.34, "floor", 0.35),
    ]


def test_a_question_far_from_the_gate_has_no_near_miss_there() -> None:
    assert told(found(ranked("a.py", 0.36), evidence=0.34).near_misses()) == []
    assert told(found(ranked("a.py", 0.36), evidence=0.35).near_misses()) == [("a.py", 0.36, "gate", 0.5)]


@pytest.mark.parametrize(
    ("value", "needed", "shown"),
    [
        (0.4, 0.5, ("0.40", "0.50")),
        (0.498, 0.501, ("0.498", "0.501")),
        (0.4996, 0.5004, ("0.4996", "0.5004")),
        (0.5, 0.5, ("0.5000", "0.5000")),
    ],
)
def test_numbers_that_look_alike_get_more_decimals(value: float, needed: float, shown: tuple[str, str]) -> None:
    assert against(value, needed) == shown


GATED = (NearMiss("a.py", "f", 1, 9, 0.61, "gate", 0.5), NearMiss("b.py", None, 3, 3, 0.58, "gate", 0.5))
FLOORED = (NearMiss("c.py", None, 3, 3, 0.3496, "floor", 0.35),)


def test_the_evidence_is_told_once_and_each_hit_by_its_cosine() -> None:
    assert gate_missed(GATED, 0.4) == "evidence 0.40, the gate needs 0.50"
    assert gate_missed(FLOORED, 0.4) is None
    assert [score_of(miss) for miss in (*GATED, *FLOORED)] == ["0.61", "0.58", "0.3496, the floor needs 0.3500"]


def test_agents_are_told_the_same() -> None:
    result = {"hits": [], "nearMisses": to_wire((*GATED, *FLOORED)), "evidence": 0.4}
    assert format_passages(result).splitlines() == [
        "Nothing in the index is near enough: evidence 0.40, the gate needs 0.50.",
        "Close: a.py:1-9 (f) has 0.61",
        "Close: b.py:3 has 0.58",
        "Close: c.py:3 has 0.3496, the floor needs 0.3500",
    ]
    assert format_passages({**result, "nearMisses": []}) == "Nothing in the index is near enough."
