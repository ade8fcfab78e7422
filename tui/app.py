"""RagPilotApp: finds the server, keeps its state in sight, and leaves the conversation to its screen."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from functools import partial
from pathlib import PurePath
from typing import ClassVar, Literal

from textual import on, work
from textual.app import App
from textual.binding import Binding, BindingType
from textual.command import Provider
from textual.screen import Screen

from ragpilot.errors import AuthenticationError, IngestRunningError, PermissionDeniedError, ServerUnreachableError
from ragpilot.types import Health, IngestReport
from tui import keys, themes
from tui.backend import Backend
from tui.commands import RagPilotCommands
from tui.keys import Keymap
from tui.messages import (
    Connected,
    ConnectFailed,
    CorporaArrived,
    IndexAdvanced,
    IndexEnded,
    IndexFailed,
    ScreenReady,
    ServerLost,
    StatusArrived,
    Trouble,
    as_error,
)
from tui.screens.ask import AskScreen
from tui.screens.help import HelpScreen
from tui.text import clean, clean_line, count, duration

_POLL_SECONDS = 2.0
_CALM_POLLS = 15
"""While nothing goes on, only every so many polls ask the server."""
_SEARCHABLE_STAGES = ("headers", "bodies")
"""When a run gets here, every chunk is stored and can be found."""


class RagPilotApp(App[None]):
    """The terminal UI.

    Args:
        connect: Finds or starts the server; awaited while the screen says so, and again after a failure. Whatever
            it raises is shown.
        corpus: The corpus to ask; None for the server's default.
        label: What is asked about, in the header: as a rule the folder's name.
        dark: Which of the two themes to begin with.
        keymap: Binding id -> keys, for those that are to differ from ``tui.keys``.
        clock: Seconds, for elapsed times.
    """

    # Of a default screen Textual does not read the CSS itself.
    CSS_PATH: ClassVar[str | PurePath | list[str | PurePath] | None] = ["app.tcss", "screens/ask.tcss"]
    TITLE = "RagPilot"
    COMMANDS: ClassVar[set[type[Provider] | Callable[[], type[Provider]]]] = {RagPilotCommands}
    BINDINGS: ClassVar[list[BindingType]] = [*keys.APP]

    def __init__(
        self,
        connect: Callable[[], Awaitable[Backend]],
        *,
        corpus: str | None = None,
        label: str = "",
        dark: bool = True,
        keymap: Mapping[str, str] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__()
        self._find_server = connect
        self._corpus = corpus
        self._dark = dark
        self._remapped = Keymap(keymap)
        self._backend: Backend | None = None
        self._fresh = False
        """The first status of a connection or corpus is still to come; a run of ingestion follows it."""
        self._indexing = False
        self._noted: set[str] = set()
        """What the run under way has said of itself."""
        self._filling = False
        self._polls = 0
        self.ask = AskScreen(label, self._remapped, clock)

    def get_default_screen(self) -> Screen[None]:
        """The conversation."""
        return self.ask

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """The variables of our themes, for as long as another one is in force."""
        return themes.VARIABLES

    def get_key_display(self, binding: Binding) -> str:
        """Keys are written in one way, in the footer as in the texts."""
        return binding.key_display or keys.name_of(binding.key)

    def on_mount(self) -> None:
        """Take on theme and keys."""
        self.register_theme(themes.DARK)
        self.register_theme(themes.LIGHT)
        self.theme = (themes.DARK if self._dark else themes.LIGHT).name
        self.set_keymap(self._remapped.remapped)
        self.set_interval(_POLL_SECONDS, self._poll)

    async def on_unmount(self) -> None:
        """Leave no connection behind."""
        if self._backend is not None:
            await self._backend.aclose()

    # the server

    @on(ScreenReady)
    @on(ServerLost)
    def _start(self) -> None:
        self.ask.starting()
        self._connect(self._backend)

    @work(exclusive=True, group="connect", exit_on_error=False)
    async def _connect(self, lost: Backend | None) -> None:
        try:
            if lost is not None:
                await lost.aclose()
            self.post_message(Connected(await self._find_server()))
        except Exception as error:  # noqa: BLE001 - whatever keeps the server away is told, with the key to try again
            self.post_message(ConnectFailed(as_error(error)))

    @on(Connected)
    async def _connected(self, event: Connected) -> None:
        self._backend = event.backend
        await self.ask.connected(event.backend, self._corpus)
        self._fresh = True
        self._refresh(event.backend, self._corpus)

    @on(ConnectFailed)
    async def _connect_failed(self, event: ConnectFailed) -> None:
        self._backend = None
        await self.ask.start_failed(event.error)

    # its state

    def _poll(self) -> None:
        self._polls += 1
        if self._backend is not None and (self._indexing or self._filling or self._polls % _CALM_POLLS == 0):
            self._refresh(self._backend, self._corpus)

    @work(exclusive=True, group="status", exit_on_error=False)
    async def _refresh(self, backend: Backend, corpus: str | None) -> None:
        health: dict[str, Health] = {}
        try:
            health = await backend.health()
            self.post_message(StatusArrived(await backend.stats(corpus), health))
        except Exception as error:  # noqa: BLE001 - a defect must be seen, and the next poll must come
            self.post_message(StatusArrived(None, health, as_error(error)))

    @on(StatusArrived)
    async def _status_arrived(self, event: StatusArrived) -> None:
        status, stats = self.ask.status, event.stats
        first, self._fresh = self._fresh, False
        status.change(health=event.health)
        if stats is not None:
            self._filling = bool(stats.point_count) and min(stats.header_share, stats.body_share) < 1
            status.change(corpus=stats.corpus, stats=stats, notice="", trouble=False)
            if stats.point_count and first:
                await self.ask.set_searchable(True)
            elif first:
                self.ask.conversation.welcome.tell("Nothing is indexed yet: indexing now. You can ask already.")
        else:
            lost = isinstance(event.error, ServerUnreachableError)
            status.change(notice="server away" if lost else str(event.error), trouble=True)
        if first:
            self._index(rebuild=False, asked=False)

    # indexing

    def _index(self, *, rebuild: bool, asked: bool) -> None:
        if self._backend is None or self._indexing:
            if asked:
                self._tell("A run is under way." if self._indexing else "There is no server yet.")
            return
        self._indexing = True
        self._noted.clear()
        self.ask.status.change(progress=None, notice="looking for changes …", trouble=False)
        self._run_index(self._backend, self._corpus, rebuild=rebuild, asked=asked)

    @work(exclusive=True, group="index", exit_on_error=False)
    async def _run_index(self, backend: Backend, corpus: str | None, *, rebuild: bool, asked: bool) -> None:
        try:
            async with aclosing(backend.index(corpus=corpus, rebuild=rebuild)) as run:
                async for item in run:
                    if isinstance(item, IngestReport):
                        self.post_message(IndexEnded(item, asked))
                    else:
                        self.post_message(IndexAdvanced(item))
        except Exception as error:  # noqa: BLE001 - a run that ended must not look like one that goes on
            self.post_message(IndexFailed(as_error(error), asked))

    @on(IndexAdvanced)
    async def _index_advanced(self, event: IndexAdvanced) -> None:
        self.ask.status.change(progress=event.progress, notice="", trouble=False)
        self._tell_once(event.progress.note)
        if event.progress.stage in _SEARCHABLE_STAGES:
            await self._searchable()

    @on(IndexEnded)
    async def _index_ended(self, event: IndexEnded) -> None:
        await self._run_over()
        report = event.report
        changes = [
            f"{number:,} {word}"
            for number, word in ((report.added, "added"), (report.changed, "changed"), (report.removed, "removed"))
            if number
        ]
        if report.failed:
            first = report.failed[0]
            self._tell(
                f"{count(len(report.failed), 'file')} failed; the first: {first.path}: {first.reason}", "warning"
            )
        if report.outcome == "nothing":
            self._tell(
                "There was nothing to index here. `ragpilot index --plan` lists what is left out, and why.", "warning"
            )
        elif event.asked or report.added > report.unchanged:
            what = f"Files: {', '.join(changes)}" if changes else "Nothing has changed"
            self._tell(f"{what}; {count(report.chunks, 'point')}, {duration(report.seconds)}.")
        for note in report.notes:
            self._tell_once(note)
        for warning in report.warnings:
            self._tell(warning, "warning")

    @on(IndexFailed)
    async def _index_failed(self, event: IndexFailed) -> None:
        await self._run_over()
        error = event.error
        quiet = (PermissionDeniedError, AuthenticationError, IngestRunningError, ServerUnreachableError)
        if event.asked or not isinstance(error, quiet):
            self._tell(str(error), "error")
        if isinstance(error, IngestRunningError):
            self._filling = True  # someone else's run: polled as if it were ours

    async def _run_over(self) -> None:
        self._indexing = False
        self.ask.status.change(progress=None, notice="", trouble=False)
        await self._searchable()
        if self._backend is not None:
            self._refresh(self._backend, self._corpus)

    async def _searchable(self) -> None:
        self.ask.conversation.welcome.tell("")
        await self.ask.set_searchable(True)

    # keys and commands

    def action_index(self) -> None:
        """Index what has changed."""
        self._index(rebuild=False, asked=True)

    def action_rebuild(self) -> None:
        """Index everything anew."""
        self._index(rebuild=True, asked=True)

    def action_toggle_theme(self) -> None:
        """Light or dark."""
        self.theme = themes.OTHER.get(self.theme, themes.DARK.name)

    async def action_help(self) -> None:
        """Keys and marks."""
        if not isinstance(self.screen, HelpScreen):
            await self.push_screen(HelpScreen(self._remapped))

    def action_copy_source_path(self) -> None:
        """Copy path and lines of the chosen source."""
        self.ask.copy_source_path()

    def action_switch_corpus(self) -> None:
        """Choose among the corpora that the server tells of."""
        if self._backend is not None:
            self._load_corpora(self._backend)

    @work(exclusive=True, group="corpora", exit_on_error=False)
    async def _load_corpora(self, backend: Backend) -> None:
        try:
            self.post_message(CorporaArrived(await backend.corpora()))
        except Exception as error:  # noqa: BLE001 - who asked for the list must learn why there is none
            self.post_message(Trouble(as_error(error)))

    @on(CorporaArrived)
    async def _choose_corpus(self, event: CorporaArrived) -> None:
        choices = [
            (clean_line(each.name), partial(self._switch, each.name), count(each.point_count, "point"))
            for each in event.corpora
        ]
        await self.search_commands(choices, placeholder="Ask which corpus?")

    async def _switch(self, corpus: str) -> None:
        self._corpus = corpus
        self._fresh = True
        await self.ask.set_corpus(corpus)
        self.ask.status.change(corpus=corpus, stats=None)
        if self._backend is not None:
            self._refresh(self._backend, corpus)

    @on(Trouble)
    def _trouble(self, event: Trouble) -> None:
        self._tell(str(event.error), "error")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keys are offered where they do something."""
        if action == "copy_source_path":
            return self.ask.sources.chosen is not None
        return super().check_action(action, parameters)

    def _tell_once(self, note: str) -> None:
        """Tell what a run says of itself with every step."""
        if note and note not in self._noted:
            self._noted.add(note)
            self._tell(note)

    def _tell(self, words: str, severity: Literal["information", "warning", "error"] = "information") -> None:
        self.notify(clean(words), severity=severity, markup=False)
