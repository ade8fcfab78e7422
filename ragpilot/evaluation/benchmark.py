"""Running a question set over an index, and summing up what came of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from ragpilot.evaluation.metrics import (
    Retrieved,
    auroc,
    bootstrap_interval,
    file_metrics,
    mean_by_group,
    symbol_metrics,
)
from ragpilot.evaluation.questions import Question
from ragpilot.found import Retrieval

Search = Callable[[str], Awaitable[Retrieval]]
"""A search deep enough to hold ten files."""

EVALUATION_K = 50
"""Hits asked for, so that ten different files can be among them."""
WITHOUT_CATEGORY = "without a category"
"""Where the figures of questions that have none stand."""
ANSWER_K = 8
"""Hits that an answer would stand on."""


@dataclass(frozen=True, slots=True)
class Result:
    """What one question got."""

    query: str
    tree: str
    category: str
    answerable: bool
    refused: bool
    evidence: float
    best_cosine: float
    file: Mapping[str, float]
    """File-level metrics of the ranking; empty for an unanswerable question."""
    symbol: Mapping[str, float] | None
    shown: float
    """File-level NDCG@10 of what floor and gate let through."""
    relevant_source: bool
    """Whether one of the first ANSWER_K hits lies in a relevant file."""
    milliseconds: float
    top: tuple[str, ...]
    """Files of the first hits, for reading."""


async def run_questions(questions: Iterable[Question], tree: str, search: Search, rank: Search) -> list[Result]:
    """Ask every question, in order.

    Args:
        questions: What is asked.
        tree: What the results are filed under.
        search: As the product searches: what floor and gate let through.
        rank: The same order without floor and gate: how good the ranking is, apart from refusal.
    """
    results = []
    for question in questions:
        ranked = await rank(question.query) if question.answerable else None
        results.append(_judge(question, tree, await search(question.query), ranked))
    return results


def _run(found: Retrieval) -> list[Retrieved]:
    return [Retrieved(hit.chunk.path, hit.chunk.symbol, hit.chunk.start_line, hit.chunk.end_line) for hit in found.hits]


def _judge(question: Question, tree: str, found: Retrieval, ranked: Retrieval | None) -> Result:
    shown = _run(found)
    run = _run(ranked) if ranked else []
    relevant = {label.path for label in question.labels}
    return Result(
        query=question.query,
        tree=tree,
        category=question.category,
        answerable=question.answerable,
        refused=not found.hits,
        evidence=found.evidence,
        best_cosine=max((row["cosine"] for row in found.trace), default=0.0),
        file=file_metrics(run, question.labels) if question.answerable else {},
        symbol=symbol_metrics(run, question.labels),
        shown=file_metrics(shown, question.labels)["ndcg@10"] if question.answerable else 0.0,
        relevant_source=any(chunk.path in relevant for chunk in shown[:ANSWER_K]),
        milliseconds=round(sum(found.timings.values()), 2),
        top=tuple(dict.fromkeys(chunk.path for chunk in shown))[:5],
    )


def summarise(results: Sequence[Result]) -> dict[str, Any]:
    """The figures of a run: ranking (means over trees, with 95 % bootstrap intervals) and refusal, by category."""
    answerable = [result for result in results if result.answerable]
    foreign = [result for result in results if not result.answerable]
    latencies = sorted(result.milliseconds for result in results)
    summary: dict[str, Any] = {"questions": len(results), "trees": len({result.tree for result in results})}
    if answerable:
        summary["file"] = {name: _over_trees(answerable, name) for name in answerable[0].file}
        summary["shown_ndcg@10"] = fmean(mean_by_group((r.tree, r.shown) for r in answerable).values())
        summary["file_by_category"] = mean_by_group((_category(r), r.file["ndcg@10"]) for r in answerable)
        summary["file_by_tree"] = mean_by_group((r.tree, r.file["ndcg@10"]) for r in answerable)
        named = [result.symbol for result in answerable if result.symbol is not None]
        if named:
            summary["symbol"] = {name: fmean(metrics[name] for metrics in named) for name in named[0]}
        summary["answerable_refused"] = fmean(result.refused for result in answerable)
        summary["answered_with_a_relevant_source"] = fmean(result.relevant_source for result in answerable)
    if foreign:
        summary["unanswerable_refused"] = fmean(result.refused for result in foreign)
        summary["refused_by_kind"] = mean_by_group((_category(r), float(r.refused)) for r in foreign)
    if answerable and foreign:
        summary["auroc"] = auroc([r.evidence for r in answerable], [r.evidence for r in foreign])
    summary["milliseconds"] = {"p50": _quantile(latencies, 0.5), "p95": _quantile(latencies, 0.95)}
    return summary


def _category(result: Result) -> str:
    return result.category or WITHOUT_CATEGORY


def _over_trees(results: Sequence[Result], name: str) -> dict[str, float]:
    """The mean over trees of each tree's mean, so that a tree with many questions does not count for more."""
    per_tree = mean_by_group((result.tree, result.file[name]) for result in results)
    low, high = bootstrap_interval([result.file[name] for result in results])
    return {"mean": fmean(per_tree.values()), "low": low, "high": high}


def _quantile(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


def compare(before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Question by question, what changed between two runs (their rows as JSON), the largest change first.

    A change is one of the ranking, of what floor and gate let through, of being refused, or of having a relevant
    source. Questions that only one of the runs asked are passed over (``asked_once`` counts them).
    """
    earlier = {_key(row): row for row in before}
    changes = [_change(earlier[_key(row)], row) for row in after if _key(row) in earlier]
    return sorted((change for change in changes if _differs(change)), key=lambda change: -_size(change))


def asked_once(before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]) -> int:
    """How many questions only one of two runs asked, so that nothing can be said about them."""
    return len({_key(row) for row in before} ^ {_key(row) for row in after})


def _key(row: Mapping[str, Any]) -> tuple[str, str]:
    return row["tree"], row["query"]


def _change(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "tree": new["tree"],
        "query": new["query"],
        "ndcg@10": new["file"].get("ndcg@10", 0.0) - old["file"].get("ndcg@10", 0.0),
        "shown_ndcg@10": new["shown"] - old["shown"],
        "refused": [old["refused"], new["refused"]],
        "relevant_source": [old["relevant_source"], new["relevant_source"]],
        "top": [old["top"], new["top"]],
    }


def _size(change: Mapping[str, Any]) -> float:
    return max(abs(float(change[name])) for name in ("ndcg@10", "shown_ndcg@10"))


def _differs(change: Mapping[str, Any]) -> bool:
    turned = any(before != after for before, after in (change["refused"], change["relevant_source"]))
    return turned or _size(change) > 1e-9
