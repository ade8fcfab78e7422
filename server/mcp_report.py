"""The report of a run as an agent is told it: what was indexed, and what was left out and why, by path in the root."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from ragpilot.config import CorpusSettings, Settings
from ragpilot.errors import IngestError
from ragpilot.events import to_wire
from ragpilot.types import IngestReport, LeftOut
from server.mcp_schemas import FailedFile, IngestResult, LeftOutFile

FILES_TOLD: Final = 20
"""Files that the structured result names, of each kind."""
NAMES_TOLD: Final = 5
"""And that one line of the text names."""

_WHY: Final = {
    "ignored": "ignored by .gitignore, .ragpilotignore or the usual excludes",
    "ignore file": "an ignore file, which only says what is ignored",
    "secret file": "known by its name to hold secrets, and never indexed",
    "access configuration": "RagPilot's own actors and grants, never indexed",
    "symlink": "a link; what it leads to is indexed where it lies, if that is inside a root",
    "special file": "no regular file",
    "linked worktree": "another working copy of the repository",
    "binary": "not text",
    "empty": "empty",
    "minified": "minified code",
    "generated": "generated code",
    "lock file": "a lock file of dependencies",
    "data": "data, not text to be read",
    "vanished": "gone before it could be read",
    "no permission": "not to be read by the server",
}


def result_of(settings: Settings, corpus: CorpusSettings, report: IngestReport) -> IngestResult:
    """The result of a run that has ended."""
    wire: dict[str, Any] = to_wire(report)
    told = {
        "collection": corpus.name,
        "leftOut": _counted(report.left_out),
        "leftOutFiles": [
            LeftOutFile(path=one.path, reason=one.reason, why=_why(settings, one))
            for one in _worth_telling(report.left_out)[:FILES_TOLD]
        ],
        "failed": [FailedFile(path=one.path, reason=one.reason) for one in report.failed[:FILES_TOLD]],
        "redacted": [FailedFile(path=one.path, reason=one.reason) for one in report.redacted[:FILES_TOLD]],
        "warnings": [in_roots(corpus, warning) for warning in report.warnings],
    }
    return IngestResult.model_validate({**wire, **told})


def words_for(result: IngestResult) -> str:
    """The result in sentences."""
    name = result.collection
    if result.outcome == "running":
        return (
            f"{name} is still being indexed, and the run goes on in the server. What is indexed so far can be asked "
            "about; rag_collections shows whether it is still being indexed."
        )
    counts = {"new": result.added, "changed": result.changed, "unchanged": result.unchanged, "removed": result.removed}
    changes = ", ".join(f"{number:,} {word}" for word, number in counts.items() if number)
    lines = [f"{name}: {changes or 'no document there'}; {result.chunks:,} passages in all; {result.seconds:.1f} s."]
    if result.outcome == "nothing" and not result.warnings:
        lines.append("Nothing is indexed there.")
    lines += [_left_out_line(result, reason, number) for reason, number in result.left_out.items()]
    lines += [f"Failed: {one.path}: {one.reason}" for one in result.failed]
    lines += [f"Secret replaced: {one.path} ({one.reason})" for one in result.redacted]
    lines += result.notes
    lines += [f"Warning: {warning}" for warning in result.warnings]
    return "\n".join(lines)


def error_in_roots(corpus: CorpusSettings, error: IngestError) -> IngestError:
    """The same error without a place of this machine in its words."""
    return type(error)(in_roots(corpus, error.message), hint=in_roots(corpus, error.hint))


def in_roots(corpus: CorpusSettings, text: str) -> str:
    """``text`` with every place of the corpus named from its root on, and what lies above a root not at all."""
    folders = [Path(root).expanduser().resolve() for root in corpus.roots]
    names = {str(folder): folder.name for folder in folders}
    names |= {root: folder.name for root, folder in zip(corpus.roots, folders, strict=True) if Path(root).is_absolute()}
    for place in sorted(names, key=len, reverse=True):
        inside = names[place] + "/" if len(folders) > 1 else ""
        text = inside.join(re.split(_whole(place) + "/", text))
        text = names[place].join(re.split(_whole(place), text))
    for above in sorted({str(folder.parent) for folder in folders} - {"/"}, key=len, reverse=True):
        text = re.sub(_whole(above), "the folder above", text)
    return text


def _whole(place: str) -> str:
    """A pattern for a folder's path that is not the beginning of another's name."""
    return re.escape(place.rstrip("/")) + r"(?![\w-])"


def _counted(files: Sequence[LeftOut]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for one in files:
        counts[one.reason] = counts.get(one.reason, 0) + 1
    return dict(sorted(counts.items(), key=lambda item: -item[1]))


def _worth_telling(files: Sequence[LeftOut]) -> list[LeftOut]:
    """Each reason's first few in turn, so that a thousand ignored files hide no other; those ignored come last."""
    places: dict[str, int] = {}
    ranked = []
    for one in files:
        places[one.reason] = places.get(one.reason, 0) + 1
        ranked.append((places[one.reason] > NAMES_TOLD, one.reason == "ignored", one))
    return [one for _, _, one in sorted(ranked, key=lambda item: item[:2])]


def _why(settings: Settings, one: LeftOut) -> str:
    if one.reason == "too large":
        return f"larger than the {settings.ingest.max_file_bytes:,} bytes that a file may have (ingest.max_file_bytes)"
    return _WHY.get(one.reason, one.reason)


def _left_out_line(result: IngestResult, reason: str, number: int) -> str:
    files = [one for one in result.left_out_files if one.reason == reason][:NAMES_TOLD]
    more = f" and {number - len(files):,} more" if number > len(files) else ""
    why = f" ({files[0].why})" if files and files[0].why != reason else ""
    names = ", ".join(one.path for one in files)
    return f"Left out: {number:,} {reason}{why}{': ' + names if names else ''}{more if names else ''}"
