"""What a newcomer sees first."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from ragpilot.errors import RagPilotError
from tui.keys import Keymap
from tui.text import clean_line, plain
from tui.widgets.refusal import Failure

EXAMPLES = (
    "Where is the configuration read, and what overrides what?",
    "What happens when a request fails?",
    "Which tests cover the parser?",
)


class Welcome(Vertical):
    """The idle state: what this is, how to begin; or why it cannot begin yet."""

    def __init__(self, label: str, keymap: Keymap) -> None:
        super().__init__()
        self._label = label
        self._keymap = keymap
        self._news = Static(markup=False, classes="news")

    def compose(self) -> ComposeResult:
        """A greeting, examples, and a line of news."""
        label = clean_line(self._label) or "this codebase"
        yield Static(Content.assemble("Ask about ", (label, "bold $primary")), markup=False, classes="headline")
        yield Static("Answers come from the indexed sources only, each with its place.", markup=False, classes="lead")
        yield Static(
            Content("\n").join([Content("For example"), *(Content(f"  {example}") for example in EXAMPLES)]),
            markup=False,
            classes="examples",
        )
        yield self._news

    def tell(self, news: str) -> None:
        """Say what goes on meanwhile; an empty text says nothing."""
        self._news.update(plain(news))

    async def fail(self, error: RagPilotError) -> None:
        """There is no server: what happened, what to do, and the key that tries again."""
        await self.clear_failure()
        again = f"{self._keymap.name('answer.retry')} tries again."
        self.tell("")
        self.add_class("-failed")
        await self.mount(Failure(error, again, title="RagPilot cannot start"))

    async def clear_failure(self) -> None:
        """Another attempt is made."""
        self.remove_class("-failed")
        await self.query(Failure).remove()
