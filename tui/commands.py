"""The command palette: everything that can be done, by name."""

from __future__ import annotations

from collections.abc import Coroutine, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content

from tui.keys import REBUILD

if TYPE_CHECKING:
    from tui.app import RagPilotApp


class Command(NamedTuple):
    """A line of the palette; ``action`` is run as a key would run it."""

    title: str
    help: str
    action: str


COMMANDS = (
    Command("New conversation", "Forget what was said and begin anew", "screen.new_conversation"),
    Command("Ask again", "Try again what failed or was stopped", "screen.retry"),
    Command("Stop the answer", "The model stops with it", "screen.stop"),
    Command("Copy answer", "The last answer, as Markdown", "screen.copy_answer"),
    Command("Copy source path", "Path and lines of the chosen source", "app.copy_source_path"),
    Command("Index what has changed", "Read new and changed files; unchanged ones cost nothing", "app.index"),
    Command(REBUILD, "Read and cut everything anew; needed after a change of embedder", "app.rebuild"),
    Command("Switch corpus", "Ask another corpus", "app.switch_corpus"),
    Command("Toggle light and dark", "The other theme", "app.toggle_theme"),
    Command("Help", "Keys, and what the marks mean", "app.help"),
    Command("Quit", "Leave RagPilot", "app.quit"),
)


class RagPilotCommands(Provider):
    """Offers the commands that would do something now."""

    def _available(self) -> Iterator[Command]:
        for command in COMMANDS:
            place, _, name = command.action.partition(".")
            target = self.screen if place == "screen" else self.app
            if target.check_action(name, ()):
                yield command

    async def discover(self) -> Hits:
        """All of them, in their order."""
        for command in self._available():
            yield DiscoveryHit(Content(command.title), self._run(command), command.title, command.help)

    async def search(self, query: str) -> Hits:
        """Those whose title fits what is typed."""
        matcher = self.matcher(query)
        for command in self._available():
            if (score := matcher.match(command.title)) > 0:
                shown = matcher.highlight(command.title)
                yield Hit(score, shown, self._run(command), command.title, command.help)

    def _run(self, command: Command) -> partial[Coroutine[Any, Any, bool]]:
        app: RagPilotApp = self.app  # type: ignore[assignment]
        return partial(app.run_action, command.action)
