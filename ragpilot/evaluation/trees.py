"""Which questions of a set are asked over which tree, and whether their labels name anything there."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from ragpilot.counted import counted
from ragpilot.evaluation.metrics import Label, last_part
from ragpilot.evaluation.questions import Question, QuestionSetError

MOST_NAMED = 10
"""How many missing things a message names; of the others it gives the number."""

ReadText = Callable[[str], str | None]
"""The text of a path of the tree as it is indexed; None for what is not there, or is left out."""


def by_tree(questions: Sequence[Question], root: Path) -> dict[Path, list[Question]]:
    """The questions of each tree under ``root``; ``root`` itself is the one tree of a set that names no repository.

    Unanswerable questions are asked over every tree that they are meant for. ``left_out`` tells what is not asked.
    Raises QuestionSetError where repositories are named and the tree of none is there.
    """
    wanted = {question.tree: question for question in reversed(questions) if question.tree}
    if not wanted:
        return {root: list(questions)}
    present = sorted(tree for tree in wanted if (root / tree).is_dir())
    if not present:
        missing = [f"{question.where}: no folder {root / tree}" for tree, question in reversed(wanted.items())]
        raise QuestionSetError(
            f"No repository of the set has its tree under {root}.\n" + "\n".join(_bounded(missing)),
            hint='Give the folder of all trees with --root, or take "repo" out of the lines to ask them over --root.',
        )
    grouped: dict[Path, list[Question]] = {}
    for tree in present:
        repo = wanted[tree].repo
        grouped[root / tree] = [
            question
            for question in questions
            if question.tree == tree
            or (not question.answerable and (question.targets is None or repo in question.targets))
        ]
    return grouped


def left_out(questions: Sequence[Question], grouped: dict[Path, list[Question]], root: Path) -> list[str]:
    """A line for every reason why questions are asked over no tree, with their number; most frequent first."""
    asked = {id(question) for group in grouped.values() for question in group}
    reasons = Counter(_reason(question, root) for question in questions if id(question) not in asked)
    lines = [f"{reason}: {counted(count, 'question')}" for reason, count in reasons.most_common()]
    return [f"{counted(reasons.total(), 'question')} of the set left out:", *_bounded(lines)] if lines else []


def _reason(question: Question, root: Path) -> str:
    if question.tree and question.answerable:
        return f"no folder {root / question.tree}"
    if question.answerable:
        return "no 'repo', in a set of several trees"
    return f"no tree of {', '.join(question.targets or ())[:200]} under {root}"


def unknown_labels(questions: Iterable[Question], read: ReadText, symbols: Callable[[str, str], set[str]]) -> list[str]:
    """Labels that name no file of the tree, or no symbol of their file: their number, and the first of them.

    No error, for a tree may be a part of its repository. ``symbols`` gives those of a path and its text.
    """
    texts: dict[str, str | None] = {}
    wrong = []
    for question in questions:
        for label in question.labels:
            if label.path not in texts:
                texts[label.path] = read(label.path)
            fault = _fault(label, texts[label.path], symbols)
            if fault:
                wrong.append(f"{question.where}: {fault}")
    if not wrong:
        return []
    return [f"{counted(len(wrong), 'label')} cannot be found by any search:", *_bounded(wrong)]


def _fault(label: Label, text: str | None, symbols: Callable[[str, str], set[str]]) -> str | None:
    if text is None:
        return f"no file {label.path} in the tree, or it is not indexed"
    if label.start and label.start > text.count("\n") + 1:
        return f"{label.path} has no line {label.start}"
    if label.symbol is None:
        return None
    name = last_part(label.symbol)
    # What a chunk holds besides its first symbol is in the text alone.
    known = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) or name in map(last_part, symbols(label.path, text))
    return None if known else f"no symbol {label.symbol} in {label.path}"


def _bounded(lines: Sequence[str]) -> list[str]:
    more = len(lines) - MOST_NAMED
    return [f"  {line}" for line in lines[:MOST_NAMED]] + ([f"  … and {more} more"] if more > 0 else [])
