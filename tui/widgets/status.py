"""The status bar: corpus, points, model, health; while a run is under way, how far it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from textual.content import Content
from textual.widgets import Static

from ragpilot.types import Health, IndexStats, IngestProgress
from tui.text import clean_line, count, duration, shorten_end

_STAGES: Final = {
    "scan": "looking at files",
    "chunks": "reading files",
    "headers": "header vectors",
    "bodies": "body vectors",
}
_BAR: Final = 12
EXTRACT: Final = "extract"
"""Stands for the model where none speaks."""
_SEPARATOR: Final = "  "


@dataclass(frozen=True, slots=True)
class Status:
    """What the bar shows. ``notice`` stands in for what is not known yet, or is wrong."""

    corpus: str = ""
    stats: IndexStats | None = None
    health: Mapping[str, Health] = field(default_factory=dict)
    model: str = ""
    progress: IngestProgress | None = None
    notice: str = ""
    trouble: bool = False
    """``notice`` tells of something wrong."""


class StatusBar(Static):
    """One line. What does not fit is left out from the least important on."""

    def __init__(self) -> None:
        super().__init__(markup=False)
        self.status = Status()

    def change(self, **changes: object) -> None:
        """Show something else of the fields of Status."""
        self.status = replace(self.status, **changes)  # type: ignore[arg-type]
        self.refresh()

    def render(self) -> Content:
        """The line in the width there is."""
        width = max(self.size.width, 1)
        status = self.status
        right = _health(status)
        room = width - right.cell_length - 2
        parts = [part for part in (_corpus(status), *_middle(status)) if part]
        while len(parts) > 1 and sum(part.cell_length for part in parts) + len(_SEPARATOR) * (len(parts) - 1) > room:
            parts.pop()
        left = Content(_SEPARATOR).join(parts).truncate(max(room, 0), ellipsis=True)
        gap = " " * max(width - left.cell_length - right.cell_length, 0)
        return Content.assemble(left, gap, right)


def _corpus(status: Status) -> Content:
    return Content.styled(clean_line(status.corpus or (status.stats.corpus if status.stats else "")), "bold")


def _middle(status: Status) -> list[Content]:
    """Most important first."""
    parts = []
    if status.notice:
        parts.append(Content.styled(clean_line(status.notice), "$text-warning" if status.trouble else "$muted"))
    if status.progress is not None:
        return [*parts, *_progress(status.progress)]
    if status.stats is not None:
        parts.append(Content(count(status.stats.point_count, "point")))
        if words := _vectors(status.stats):
            parts.append(Content.styled(words, "$muted"))
    if model := _model(status):
        parts.append(Content.styled(model, "$muted"))
    return parts


def _vectors(stats: IndexStats) -> str:
    """What is still to come; nothing where all is in."""
    for name, share in (("header", stats.header_share), ("body", stats.body_share)):
        if stats.point_count and share < 1:
            return f"{name} vectors {int(share * 100)} % in"
    return ""


def _model(status: Status) -> str:
    """The model as its last answer named it; before the first answer, as its health does."""
    model = status.health.get("model")
    if status.model or model is None or not model.ok:
        return clean_line(status.model)
    return EXTRACT if model.detail.startswith(EXTRACT) else clean_line(model.detail)


def _progress(progress: IngestProgress) -> list[Content]:
    stage = _STAGES.get(progress.stage, progress.stage)
    share = progress.done / progress.total if progress.total else 0.0
    filled = round(min(share, 1.0) * _BAR)
    bar = Content.assemble(("━" * filled, "$primary"), ("━" * (_BAR - filled), "$faint"))
    doing = Content(f"{stage} {progress.done:,}/{progress.total:,}" if progress.total else f"{stage} …")
    parts = [bar, doing] if progress.total else [doing]
    if progress.per_second:
        parts.append(Content.styled(f"{progress.per_second:,.0f}/s", "$muted"))
    if progress.seconds_left is not None:
        parts.append(Content.styled(f"{duration(progress.seconds_left)} left", "$muted"))
    parts.append(Content.styled(count(progress.files, "file"), "$muted"))
    return parts


def _health(status: Status) -> Content:
    if not status.health:
        return Content("")
    away = [name for name, part in status.health.items() if not part.ok]
    if not away:
        return Content.assemble(("● ", "$text-success"), ("ready", "$muted"))
    return Content.styled(shorten_end(f"● {clean_line(', '.join(away))} away", 30), "$text-error")
