"""How far a run of ingestion is: a bar on a terminal, now and then a line elsewhere, nothing when it is not wanted."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Final, Protocol, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

from ragpilot.cli_output import note
from ragpilot.counted import counted
from ragpilot.types import IngestProgress

STAGES: Final = {
    "scan": "Looking for changes",
    "chunks": "Indexing words",
    "headers": "Embedding names",
    "bodies": "Embedding text",
}
LINE_SECONDS: Final = 10.0


class Reporter(Protocol):
    """A context manager that is shown each step."""

    def __enter__(self) -> Self:
        """Begin."""
        ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End, leaving nothing half drawn."""
        ...

    def show(self, progress: IngestProgress, /) -> None:
        """Show where the run stands."""
        ...

    def tell(self, text: str, /) -> None:
        """A line that stays, once; nothing where it is empty."""
        ...


def reporter(*, quiet: bool) -> Reporter:
    """The right one for stderr as it is."""
    if quiet:
        return _Nothing()
    return _Bar() if sys.stderr.isatty() else _Lines()


class _Nothing:
    """Shows nothing, at no time."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def show(self, _: IngestProgress, /) -> None:
        return None

    def tell(self, _: str, /) -> None:
        return None


class _Telling(_Nothing):
    """Tells a line at most once."""

    def __init__(self) -> None:
        self._said = {""}

    def tell(self, text: str, /) -> None:
        if text not in self._said:
            self._said.add(text)
            note(text)


class _Lines(_Telling):
    """A line when a stage begins, and every ten seconds while it lasts."""

    def __init__(self) -> None:
        super().__init__()
        self._stage = ""
        self._told = 0.0

    def show(self, progress: IngestProgress, /) -> None:
        self.tell(progress.note)
        now = time.monotonic()
        if progress.stage == self._stage and now - self._told < LINE_SECONDS:
            return
        self._stage, self._told = progress.stage, now
        counted = f": {progress.done:,} of {progress.total:,}{_figures(progress)}" if progress.total else " …"
        note(f"{STAGES[progress.stage]}{counted}")


class _Bar(_Telling):
    """One bar a stage; only the current one is shown, below the lines that stay."""

    def __init__(self) -> None:
        super().__init__()
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TaskProgressColumn(),
            TextColumn("{task.fields[figures]}", markup=False),
            console=Console(stderr=True, highlight=False),
            transient=True,
        )
        self._task = self._progress.add_task("", total=None, figures="")

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def show(self, progress: IngestProgress, /) -> None:
        self.tell(progress.note)
        self._progress.update(
            self._task,
            description=f"{STAGES[progress.stage]:<19}",
            completed=progress.done,
            total=progress.total or None,
            figures=_figures(progress).removeprefix("; "),
        )


def _figures(progress: IngestProgress) -> str:
    parts = [counted(progress.files, "file"), counted(progress.chunks, "chunk")]
    if progress.per_second >= 0.5:
        unit = "files" if progress.stage == "scan" else "chunks"
        parts.append(f"{progress.per_second:,.0f} {unit}/s")
    if progress.seconds_left is not None:
        parts.append(f"{_duration(progress.seconds_left)} left")
    return "; " + ", ".join(parts)


def _duration(seconds: float) -> str:
    minutes, rest = divmod(max(0, round(seconds)), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
