"""Question sets: JSON Lines, one question a line, answerable or not.

An answerable row holds ``query`` and ``relevant`` ([{path, symbol?, start?, end?, grade?}]); a row without ``relevant``
must get the not-found answer. ``repo``, ``commit`` and ``index_root`` say which tree it is about, where a set spans
several; ``targets`` ("any" or a list of repositories) says over which trees an unanswerable one is asked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragpilot.errors import RagPilotError
from ragpilot.evaluation.metrics import Label

PRIMARY, SUPPORTING = 2, 1
_REPO = re.compile(r"(?!\.)[\w.-]+(?:/(?!\.)[\w.-]+)*")
_COMMIT = re.compile(r"\w[\w.-]*")


class QuestionSetError(RagPilotError):
    """A question set cannot be read or asked; the message names file and line."""

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
    where: str = ""
    """``file:line``, for messages."""

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
    """Read a set. Raises QuestionSetError naming file and line, and what is wrong there."""
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
    except (ValueError, RecursionError) as error:
        raise QuestionSetError(f"{where} is no JSON object: {error}.") from error
    if not isinstance(row, dict) or not isinstance(row.get("query"), str) or not row["query"].strip():
        raise QuestionSetError(f"{where} has no 'query' that is a text.")
    relevant = row.get("relevant")
    if not isinstance(relevant, list | None):
        raise QuestionSetError(f"{where}: 'relevant' is {_shown(relevant)}; it must be a list.")
    return Question(
        query=row["query"],
        labels=tuple(_label(item, f"{where}: 'relevant' {at}") for at, item in enumerate(relevant or (), start=1)),
        repo=_text(row, "repo", where, _REPO),
        commit=_text(row, "commit", where, _COMMIT),
        category=_text(row, "category", where) or _text(row, "kind", where) or "",
        targets=_targets(row.get("targets"), where),
        where=where,
    )


def _label(item: Any, where: str) -> Label:
    if not isinstance(item, dict) or not isinstance(item.get("path"), str) or not item["path"].strip():
        raise QuestionSetError(f"{where} needs at least a 'path' that is a text.")
    start, end = _line(item, "start", where), _line(item, "end", where)
    if start and end and end < start:
        raise QuestionSetError(f"{where}: 'end' {end} lies before 'start' {start}.")
    grade = PRIMARY if item.get("grade") is None else item["grade"]
    if isinstance(grade, bool) or grade not in (PRIMARY, SUPPORTING):
        raise QuestionSetError(
            f"{where}: 'grade' is {_shown(grade)}; it must be {PRIMARY} (primary) or {SUPPORTING} (supporting)."
        )
    return Label(item["path"], _text(item, "symbol", where), start, end, int(grade))


def _line(item: Mapping[str, Any], key: str, where: str) -> int | None:
    value = item.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise QuestionSetError(f"{where}: {key!r} is {_shown(value)}; it must be a line, counted from 1.")
    return value


def _text(row: Mapping[str, Any], key: str, where: str, form: re.Pattern[str] | None = None) -> str | None:
    value = row.get(key)
    if value is None:
        return None
    if not isinstance(value, str) or (form is not None and not form.fullmatch(value)):
        needed = "a text" if form is None else "a name, without dots before it"
        raise QuestionSetError(f"{where}: {key!r} is {_shown(value)}; it must be {needed}.")
    return value


def _targets(value: Any, where: str) -> tuple[str, ...] | None:
    if value is None or value == "any":
        return None
    if not isinstance(value, list) or not all(isinstance(repo, str) for repo in value):
        raise QuestionSetError(f"{where}: 'targets' is {_shown(value)}; it must be \"any\" or a list of repositories.")
    return tuple(value)


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:59]}…"
