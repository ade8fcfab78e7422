"""Question sets: JSON Lines, one question a line, answerable or not.

An answerable row holds ``query`` and ``relevant`` ([{path, symbol?, start?, end?, grade?}]); a row without ``relevant``
must get the not-found answer. ``repo``, ``commit`` and ``index_root`` say which tree it is about, where a set spans
several; ``targets`` ("any" or a list of repositories) says over which trees an unanswerable one is asked.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragpilot.errors import RagPilotError
from ragpilot.evaluation.metrics import Label
from ragpilot.types import Chunk


class QuestionSetError(RagPilotError):
    """A question set cannot be read; the message names file and line."""

    code = "question_set_error"


@dataclass(frozen=True, slots=True)
class Question:
    """One row of a set. Without labels, the right answer is the not-found answer."""

    query: str
    labels: tuple[Label, ...] = ()
    repo: str | None = None
    commit: str | None = None
    category: str = ""
    """Of an answerable question its category, of the others its kind."""
    targets: tuple[str, ...] | None = None
    """None: any tree."""

    @property
    def answerable(self) -> bool:
        """Whether the corpus holds an answer."""
        return bool(self.labels)

    @property
    def tree(self) -> str | None:
        """Where the materialised tree of the question's repository lies, relative to the folder of all trees."""
        if self.repo is None:
            return None
        folder = self.repo.replace("/", "__")
        return f"{folder}/{self.commit[:12]}" if self.commit else folder


def load_questions(file: Path) -> list[Question]:
    """Read a set. Raises QuestionSetError naming file and line for what is no question."""
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise QuestionSetError(f"The question set {file} cannot be read: {error}.") from error
    questions = []
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            questions.append(_question(line, f"{file}:{number}"))
    if not questions:
        raise QuestionSetError(f"The question set {file} holds no question.")
    return questions


def _question(line: str, where: str) -> Question:
    try:
        row = json.loads(line)
    except json.JSONDecodeError as error:
        raise QuestionSetError(f"{where} is no JSON object: {error}.") from error
    if not isinstance(row, dict) or not isinstance(row.get("query"), str) or not row["query"].strip():
        raise QuestionSetError(f"{where} has no 'query' that is a text.")
    targets = row.get("targets")
    try:
        labels = tuple(_label(item) for item in row.get("relevant") or ())
    except (KeyError, TypeError, AttributeError) as error:
        raise QuestionSetError(f"{where}: each of 'relevant' needs at least a 'path'.") from error
    return Question(
        query=row["query"],
        labels=labels,
        repo=row.get("repo"),
        commit=row.get("commit"),
        category=row.get("category") or row.get("kind") or "",
        targets=tuple(targets) if isinstance(targets, list) else None,
    )


def _label(item: Mapping[str, Any]) -> Label:
    return Label(item["path"], item.get("symbol"), item.get("start"), item.get("end"), item.get("grade") or 2)


def by_tree(questions: Sequence[Question], root: Path) -> dict[Path, list[Question]]:
    """The questions of each tree under ``root``.

    ``root`` itself is the one tree where no materialised repository of the set lies under it. Unanswerable
    questions are asked over every tree that they are meant for.
    """
    trees = {
        question.tree: question.repo for question in questions if question.tree and (root / question.tree).is_dir()
    }
    if not trees:
        return {root: list(questions)}
    grouped: dict[Path, list[Question]] = {}
    for tree, repo in sorted(trees.items()):
        own = [question for question in questions if question.tree == tree]
        foreign = [q for q in questions if not q.answerable and (q.targets is None or repo in q.targets)]
        grouped[root / tree] = own + foreign
    return grouped


def draft(chunks: Iterable[Chunk], *, most: int = 60) -> list[dict[str, Any]]:
    """A question set drafted from an index, to be edited by hand: symbols that are documented, and headings.

    At most one question a document, taken evenly over the corpus, so that the draft covers it.
    """
    found: dict[str, dict[str, Any]] = {}
    for chunk in chunks:
        words = chunk.header.partition(":")[2].strip() or chunk.header
        heading = chunk.source_type.startswith("docs-")
        if chunk.path in found or not (chunk.symbol or heading) or len(words.split()) < 4:
            continue
        label = {
            "path": chunk.path,
            "symbol": chunk.symbol,
            "start": chunk.start_line,
            "end": chunk.end_line,
            "grade": 2,
        }
        found[chunk.path] = {"query": words, "relevant": [label], "category": "heading" if heading else "symbol"}
    rows = [found[path] for path in sorted(found)]
    step = max(1, -(-len(rows) // most))
    return rows[::step]
