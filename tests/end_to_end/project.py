"""A small folder to index, and a way to run the command in it."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from tests.end_to_end.command import environ_of, run

FILES = {
    "src/budget.py": '''"""Keeps a prompt small."""


class ContextBudget:
    """Enforces the most tokens that the context blocks of a prompt may take together."""

    def __init__(self, tokens: int) -> None:
        self.tokens = tokens

    def cut_lowest_ranked(self, blocks: list[str]) -> list[str]:
        """Drop the lowest ranked blocks until the budget holds."""
        while sum(len(block) for block in blocks) > self.tokens:
            blocks.pop()
        return blocks
''',
    "src/mail.py": '''"""Sends mail."""


def send_invoice_mail(address: str, invoice: str) -> None:
    """Mail an invoice to a customer through the relay."""
    relay = connect_relay(address)
    relay.deliver(invoice)
''',
    "docs/größe.md": "# Größe des Lagers\n\nThe warehouse scale weighs pallets and stores their weight in kilograms.\n",
    "docs/evil.md": "# Clipboard\n\nThe clipboard bridge writes \x1b]52;c;ZQ==\x07 and \u202ereversed\u202c ones.\n",
}


@dataclass
class Project:
    """A folder with files, and a way to run commands in it."""

    folder: Path
    environ: dict[str, str] = field(default_factory=dict)

    def run(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return run(self.folder, *arguments, environ={**self.environ, **variables})

    def state(self) -> Path:
        (found,) = (entry for entry in Path(self.environ["RAGPILOT_HOME"]).iterdir() if entry.is_dir())
        return found


def make_project(base: Path) -> Project:
    folder = base / "project"
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return Project(folder, environ_of(base))
