"""Runs of a question set as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ragpilot.counted import counted


def summary_table(summary: Mapping[str, Any]) -> str:
    """The figures of a run, a line each."""
    rows = [("questions", str(summary["questions"])), ("trees", str(summary["trees"]))]
    for name, figure in summary.get("file", {}).items():
        rows.append((f"file {name}", f"{figure['mean']:.3f}  [{figure['low']:.3f}, {figure['high']:.3f}]"))
    if "shown_ndcg@10" in summary:
        rows.append(("file ndcg@10 after floor and gate", f"{summary['shown_ndcg@10']:.3f}"))
    rows += [(f"symbol {name}", f"{value:.3f}") for name, value in summary.get("symbol", {}).items()]
    for title in ("file_by_category", "file_by_tree"):
        rows += [(f"  ndcg@10 {name}", f"{value:.3f}") for name, value in summary.get(title, {}).items()]
    for name in ("answered_with_a_relevant_source", "answerable_refused", "unanswerable_refused"):
        if name in summary:
            rows.append((name.replace("_", " "), f"{summary[name]:.1%}"))
    rows += [(f"  refused {kind}", f"{value:.1%}") for kind, value in summary.get("refused_by_kind", {}).items()]
    if "auroc" in summary:
        rows.append(("auroc", f"{summary['auroc']:.4f}"))
    rows.append(("milliseconds p50 / p95", "{p50:.0f} / {p95:.0f}".format(**summary["milliseconds"])))
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in rows)


def comparison_table(changes: Sequence[Mapping[str, Any]], *, once: int = 0) -> str:
    """What changed between two runs, a question a line: NDCG@10 gained or lost, answers and relevant sources too.

    ``once``: how many questions only one of the runs asked.
    """
    lines = ["No question changed."]
    if changes:
        count = counted(len(changes), "question")
        lines = [f"{count} changed; NDCG@10 of the ranking, and of what floor and gate let through:"]
        lines += [_changed(change) for change in changes]
    if once:
        lines.append(f"Asked in one of the two runs alone, and not compared: {once}.")
    return "\n".join(lines)


def _changed(change: Mapping[str, Any]) -> str:
    turns = [
        _turn(change["refused"], "now refused", "now answered"),
        _turn(change["relevant_source"], "now with a relevant source", "now without a relevant source"),
    ]
    figures = f"{change['ndcg@10']:+.3f}  {change['shown_ndcg@10']:+.3f}"
    return "  ".join(["", figures, f"{change['query']}  ({change['tree']})", *filter(None, turns)])


def _turn(states: Sequence[bool], on: str, off: str) -> str:
    before, after = states
    return "" if before == after else (on if after else off)
