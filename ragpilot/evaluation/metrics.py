"""Metrics of ranked retrieval and of refusal. Pure.

A run is a ranked list; labels are graded 2 (primary) or 1 (supporting). File-level NDCG is binary over both grades,
over files by their best chunk, as the published figures for code search are.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean


@dataclass(frozen=True, slots=True)
class Label:
    """A place that answers a question: a file, and where known its symbol or lines."""

    path: str
    symbol: str | None = None
    start: int | None = None
    end: int | None = None
    grade: int = 2


@dataclass(frozen=True, slots=True)
class Retrieved:
    """A chunk of a run."""

    path: str
    symbol: str | None
    start: int
    end: int


def ndcg(ranked: Sequence[str], gains: Mapping[str, float], k: int = 10) -> float:
    """Normalised discounted cumulative gain at ``k`` (Järvelin and Kekäläinen, 2002), 0 to 1."""
    found = sum(gains.get(item, 0.0) / math.log2(at + 2) for at, item in enumerate(ranked[:k]))
    ideal = sum(gain / math.log2(at + 2) for at, gain in enumerate(sorted(gains.values(), reverse=True)[:k]))
    return found / ideal if ideal else 0.0


def file_metrics(run: Sequence[Retrieved], labels: Sequence[Label]) -> dict[str, float]:
    """``ndcg@10``, ``mrr`` and ``recall@1/5/10`` at file level; chunks count as their file, by its best rank."""
    files = list(dict.fromkeys(chunk.path for chunk in run))
    wanted = dict.fromkeys((label.path for label in labels), 1.0)
    primary = {label.path for label in labels if label.grade == 2} or set(wanted)
    first = next((at for at, path in enumerate(files, start=1) if path in primary), None)
    recalls = {f"recall@{k}": sum(path in files[:k] for path in wanted) / len(wanted) for k in (1, 5, 10)}
    return {"ndcg@10": ndcg(files, wanted), "mrr": 1 / first if first else 0.0, **recalls}


def symbol_metrics(run: Sequence[Retrieved], labels: Sequence[Label]) -> dict[str, float] | None:
    """The same at symbol level, over primary labels that name lines or a symbol; None where none does."""
    named = [label for label in labels if label.grade == 2 and (label.start or label.symbol)]
    if not named:
        return None
    ranks = [next((at for at, chunk in enumerate(run, start=1) if _answers(chunk, label)), None) for label in named]
    reached = [rank for rank in ranks if rank]
    found = sum(1 / math.log2(rank + 1) for rank in set(reached) if rank <= 10)
    ideal = sum(1 / math.log2(at + 2) for at in range(min(10, len(named))))
    recalls = {f"recall@{k}": sum(bool(rank and rank <= k) for rank in ranks) / len(named) for k in (1, 5, 10)}
    return {"ndcg@10": min(1.0, found / ideal), "mrr": 1 / min(reached) if reached else 0.0, **recalls}


def _answers(chunk: Retrieved, label: Label) -> bool:
    """Same file, and shared lines where the label has lines, else the same last part of the symbol."""
    if chunk.path != label.path:
        return False
    if label.start and label.end:
        return chunk.start <= label.end and label.start <= chunk.end
    if not (chunk.symbol and label.symbol):
        return False
    return last_part(chunk.symbol) == last_part(label.symbol)


def last_part(symbol: str) -> str:
    """``run`` of ``App.run`` and ``App::run``: what symbols are compared by."""
    return symbol.replace("::", ".").rpartition(".")[2]


def auroc(positive: Sequence[float], negative: Sequence[float]) -> float:
    """The chance that an answerable question scores above an unanswerable one; ties count half."""
    if not positive or not negative:
        return 0.5
    below = sorted(negative)
    wins = 0.0
    for score in positive:
        less = sum(other < score for other in below)
        equal = sum(other == score for other in below)
        wins += less + equal / 2
    return wins / (len(positive) * len(negative))


def bootstrap_interval(
    values: Sequence[float], *, level: float = 0.95, rounds: int = 2000, seed: int = 0
) -> tuple[float, float]:
    """The percentile bootstrap interval of the mean (Efron, 1979); the same for the same values and seed."""
    if not values:
        return (0.0, 0.0)
    draw = random.Random(seed)  # noqa: S311 - resampling, not secrecy
    means = sorted(fmean(draw.choices(values, k=len(values))) for _ in range(rounds))
    tail = (1 - level) / 2
    return means[int(tail * rounds)], means[min(rounds - 1, int((1 - tail) * rounds))]


def mean_by_group(pairs: Iterable[tuple[str, float]]) -> dict[str, float]:
    """The mean of each group's values."""
    groups: dict[str, list[float]] = {}
    for group, value in pairs:
        groups.setdefault(group, []).append(value)
    return {group: fmean(values) for group, values in groups.items()}
