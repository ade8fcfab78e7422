"""Every key of the program in one place. The ids are what a keymap remaps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from textual.binding import Binding

QUESTION: Final = (
    Binding("enter", "submit", "Ask", id="question.ask", priority=True, show=False, tooltip="Ask the question"),
    Binding(
        "shift+enter,ctrl+j",
        "newline",
        "New line",
        id="question.newline",
        priority=True,
        show=False,
        tooltip="Begin a new line in the question",
    ),
    Binding("ctrl+u", "clear", "Clear", id="question.clear", show=False, tooltip="Clear the question"),
    Binding("up", "earlier", "Earlier question", id="question.earlier", show=False, tooltip="Bring back a question"),
    Binding("down", "later", "Later question", id="question.later", show=False, tooltip="Go on to a later question"),
    # The same keys move the cursor wherever there is a line to move to.
    Binding("up", "cursor_up", show=False, system=True),
    Binding("down", "cursor_down", show=False, system=True),
)

ASK: Final = (
    Binding("escape", "stop", "Stop", id="answer.stop", tooltip="Stop the answer; the model stops with it"),
    Binding("escape", "focus_question", "Question", id="question.focus", show=False, tooltip="Back to the question"),
    Binding("f2", "focus_sources", "Sources", id="sources.focus", tooltip="Go to the sources; Enter opens one"),
    Binding("ctrl+r", "retry", "Again", id="answer.retry", tooltip="Try again what failed or was stopped"),
    Binding("ctrl+n", "new_conversation", "New", id="conversation.new", tooltip="Begin a new conversation"),
    Binding("f4", "copy_answer", "Copy", id="answer.copy", tooltip="Copy the last answer"),
    Binding(
        "pageup",
        "scroll_conversation(-1)",
        "Page up",
        id="conversation.up",
        priority=True,
        show=False,
        tooltip="Scroll the conversation up",
    ),
    Binding(
        "pagedown",
        "scroll_conversation(1)",
        "Page down",
        id="conversation.down",
        priority=True,
        show=False,
        tooltip="Scroll the conversation down",
    ),
)

SOURCES: Final = (
    Binding("enter", "select_cursor", "Open", id="source.open", show=False, tooltip="Show the source's text"),
    Binding(
        "c",
        "app.copy_source_path",
        "Copy path",
        id="source.copy",
        show=False,
        tooltip="Copy the source's path and line",
    ),
)

APP: Final = (
    Binding("f5", "index", "Index", id="index.run", show=False, tooltip="Index what has changed"),
    Binding("ctrl+o", "switch_corpus", "Corpus", id="corpus.switch", show=False, tooltip="Ask another corpus"),
    Binding("ctrl+t", "toggle_theme", "Theme", id="app.theme", show=False, tooltip="Light or dark"),
    Binding(
        "ctrl+p",
        "command_palette",
        "Commands",
        id="app.commands",
        priority=True,
        show=False,
        tooltip="All commands, to search through",
    ),
    Binding("f1", "help", "Help", id="app.help", tooltip="Keys and what the marks mean"),
    Binding("ctrl+q", "quit", "Quit", id="app.quit", priority=True, tooltip="Leave RagPilot"),
)

REBUILD: Final = "Rebuild the index"
"""A command without a key."""

CLOSE: Final = (Binding("escape,q", "dismiss", "Close", id="screen.close", tooltip="Back to the conversation"),)


def name_of(key: str) -> str:
    """A key as people write it: ``ctrl+r`` -> ``Ctrl+R``, of several alternatives the first."""
    parts = key.split(",")[0].split("+")
    return "+".join(_NAMES.get(part, part.capitalize() if len(part) > 1 else part.upper()) for part in parts)


_NAMES: Final = {"escape": "Esc", "pageup": "PgUp", "pagedown": "PgDn"}


class Keymap:
    """The keys in force: the defaults here, as far as ``remapped`` (binding id -> keys) does not say otherwise."""

    def __init__(self, remapped: Mapping[str, str] | None = None) -> None:
        self.remapped = dict(remapped or {})

    def name(self, binding_id: str) -> str:
        """How the first key of a binding is written."""
        return name_of(self._key(binding_id))

    def names(self, binding_id: str) -> str:
        """All its keys."""
        return ", ".join(map(name_of, self._key(binding_id).split(",")))

    def _key(self, binding_id: str) -> str:
        return self.remapped.get(binding_id) or _DEFAULTS[binding_id]


SECTIONS: Final = (("Question", QUESTION), ("Answer and conversation", ASK), ("Sources", SOURCES), ("Program", APP))
"""As the help screen shows them."""

_DEFAULTS: Final = {
    binding.id: binding.key for _, bindings in (*SECTIONS, ("", CLOSE)) for binding in bindings if binding.id
}
