"""The lines of a long piece of code that answer best: signature, first words of its documentation, matching lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from ragpilot.adapters.extract_markup import WIDEST, around, comment_sign, gap_mark
from ragpilot.adapters.extract_notices import notice_in
from ragpilot.adapters.extract_opening import opening_of
from ragpilot.adapters.extract_words import Words

MATCHES = 3
"""How many matching lines are shown with what stands around them."""
TELLING = 0.5
"""What a further matching line must add, as a share of what the best one holds."""
ENCLOSING = 3
NARROW = 3
"""Lines of a gap that is rather closed than marked."""

_IMPORT = re.compile(
    r"\s*(?:(?:import|from\s+\S+\s+import|using|use|pub\s+use|package|#\s*include|require|require_relative"
    r"|extern\s+crate|export\s.*\sfrom)(?=[\s\"'<{]|$)(?!\s*[:=])|require\()"
)


def dedented(lines: Sequence[str]) -> list[str]:
    """``lines`` without the indentation that all of them share, tabs and blanks told apart."""
    full = [line for line in lines if line.strip()]
    if not full:
        return ["" for _ in lines]
    low, high = min(full), max(full)
    shared = next((at for at, sign in enumerate(low) if sign not in " \t" or high[at] != sign), 0)
    return [line[shared:] if line.strip() else "" for line in lines]


def depth_of(line: str) -> int:
    """How far a line is indented, in columns."""
    expanded = line.expandtabs(4)
    return len(expanded) - len(expanded.lstrip())


def excerpt(lines: Sequence[str], words: Words, language: str, *, limit: int, begins: bool) -> list[str]:
    """At most ``limit`` of ``lines``, with a mark for each gap; all of them where they fit.

    Args:
        lines: without blank ones at either end.
        words: what is looked for.
        language: as a fence is labelled.
        limit: rows, marks included.
        begins: whether something is declared where the lines begin, rather than going on from before.
    """
    lines = dedented(lines)
    selection = _Selection(lines, limit)
    sign = comment_sign(language)
    notice = notice_in(lines, sign, words)
    if not selection.add(at for at in range(len(lines)) if at not in notice):
        _select(selection, words, sign, notice, begins=begins)
    return [_fitting(line, words) for line in selection.rows(gap_mark(language))]


def imports_in(lines: Sequence[str]) -> set[int]:
    """The rows that only bring in names from elsewhere, lists of several rows included."""
    found: set[int] = set()
    closing = ""
    for at, line in enumerate(lines):
        if closing or _IMPORT.match(line):
            found.add(at)
            opened = next((sign for sign in "({" if sign in line), "")
            closing = closing or {"(": ")", "{": "}"}.get(opened, "")
            if closing and closing in line:
                closing = ""
    return found


def _select(selection: _Selection, words: Words, sign: str, notice: range, *, begins: bool) -> None:
    lines = selection.lines
    imports = {*notice, *(imports_in(lines) if sign else ())}  # prose may well begin a line with "use"
    anchors: list[int] = []
    if begins:
        opening = opening_of(lines, sign)
        selection.add(opening.signature)
        selection.add(opening.documentation)
        anchors = [max(opening.signature, default=0)]
    found = [at for at in words.best_first(lines, worth=TELLING) if at not in imports]
    for at in found[:MATCHES]:
        if selection.add([at, *_enclosing(lines, at)]) or selection.add([at]):
            anchors.insert(0, at)
    for gap in sorted(selection.gaps(), key=len):
        if len(gap) <= NARROW and not {*notice} & {*gap}:
            selection.add(gap)
    for distance in range(1, len(lines)):
        for anchor in anchors or [-1]:
            if not imports & {anchor + distance}:
                selection.add([anchor + distance])
            if distance <= NARROW and not imports & {anchor - distance}:
                selection.add([anchor - distance])


class _Selection:
    """Which lines are shown, never more of them and their gap marks together than ``limit``."""

    def __init__(self, lines: Sequence[str], limit: int) -> None:
        self.lines = lines
        self.limit = limit
        self.shown: set[int] = set()

    def add(self, wanted: Iterable[int]) -> bool:
        """Show these lines too, if all of them fit."""
        more = self.shown | {at for at in wanted if 0 <= at < len(self.lines)}
        if len(more) + sum(1 for _ in self.gaps(more)) > self.limit:
            return False
        self.shown = more
        return True

    def gaps(self, shown: set[int] | None = None) -> Iterator[range]:
        """The runs of lines that are not shown."""
        after = 0
        for at in (*sorted(self.shown if shown is None else shown), len(self.lines)):
            if at > after:
                yield range(after, at)
            after = at + 1

    def rows(self, mark: str) -> list[str]:
        """The shown lines in order; a gap of one line is that line, a longer one is ``mark``, indented as its end."""
        rows = {at: self.lines[at] for at in self.shown}
        for gap in self.gaps():
            text = self.lines[gap.start]
            if len(gap) > 1 and any(self.lines[at].strip() for at in gap):
                beside = self.lines[gap.stop] if gap.stop < len(self.lines) else self.lines[gap.start - 1]
                text = beside[: len(beside) - len(beside.lstrip())] + mark
                for blank in (gap.start - 1, gap.stop):
                    if not rows.get(blank, mark).strip():
                        del rows[blank]
            rows[gap.start] = text
        ordered = [rows[at] for at in sorted(rows)]
        return [row for at, row in enumerate(ordered) if not (at and row.strip() == mark == ordered[at - 1].strip())]


def _enclosing(lines: Sequence[str], at: int) -> list[int]:
    """The neighbours of ``at``, and above it the lines that are indented less, each less than the one before."""
    found = [near for near in (at - 1, at + 1) if 0 <= near < len(lines) and lines[near].strip()]
    depth, outer = depth_of(lines[at]), 0
    for above in range(at - 1, -1, -1):
        if lines[above].strip() and depth_of(lines[above]) < depth and outer < ENCLOSING:
            depth = depth_of(lines[above])
            found.append(above)
            outer += 1
    return found


def _fitting(line: str, words: Words) -> str:
    return line if len(line) <= WIDEST else around(line, WIDEST, words.place(line))
