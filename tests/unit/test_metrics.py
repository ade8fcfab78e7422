from __future__ import annotations

import math

import pytest

from ragpilot.evaluation.metrics import (
    Label,
    Retrieved,
    auroc,
    bootstrap_interval,
    file_metrics,
    mean_by_group,
    ndcg,
    symbol_metrics,
)


def run(*paths: str) -> list[Retrieved]:
    return [Retrieved(path, None, 1, 10) for path in paths]


def test_ndcg_of_a_perfect_and_of_an_imperfect_order() -> None:
    gains = {"a": 1.0, "b": 1.0}
    assert ndcg(["a", "b", "c"], gains) == 1.0
    assert ndcg(["c", "a", "b"], gains) == pytest.approx((1 / math.log2(3) + 1 / 2) / (1 + 1 / math.log2(3)))
    assert ndcg(["c"], gains) == 0.0
    assert ndcg(["a"], {}) == 0.0


def test_chunks_count_as_their_file_once() -> None:
    metrics = file_metrics(run("x", "a", "a", "a", "b"), [Label("a"), Label("b", grade=1)])
    assert metrics["mrr"] == 0.5
    assert metrics["recall@1"] == 0.0
    assert metrics["recall@5"] == 1.0
    assert metrics["ndcg@10"] == pytest.approx((1 / math.log2(3) + 1 / 2) / (1 + 1 / math.log2(3)))


def test_symbols_match_by_lines_or_by_their_last_part() -> None:
    found = [Retrieved("a", "App.run", 1, 9), Retrieved("a", "App.stop", 10, 20)]
    by_lines = symbol_metrics(found, [Label("a", None, 15, 30)])
    by_name = symbol_metrics(found, [Label("a", "Other::stop")])
    assert by_lines is not None
    assert by_name is not None
    assert by_lines["mrr"] == by_name["mrr"] == 0.5
    assert symbol_metrics(found, [Label("a")]) is None


def test_auroc_counts_ties_half() -> None:
    assert auroc([0.9, 0.8], [0.1, 0.2]) == 1.0
    assert auroc([0.5], [0.5]) == 0.5
    assert auroc([0.1], [0.9]) == 0.0


def test_a_bootstrap_interval_holds_the_mean_and_repeats() -> None:
    values = [0.0, 1.0] * 50
    low, high = bootstrap_interval(values)
    assert 0.35 < low < 0.5 < high < 0.65
    assert bootstrap_interval(values) == (low, high)


def test_means_by_group() -> None:
    assert mean_by_group([("a", 1.0), ("b", 0.0), ("a", 0.0)]) == {"a": 0.5, "b": 0.0}
