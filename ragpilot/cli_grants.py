"""`ragpilot grants`: who may read what, and why; and putting changed grants in force."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from ragpilot.cli import Start


@click.group(short_help="Say who may read what: apply and explain.")
def grants() -> None:
    """Say who may read what.

    A corpus has readers, and [[corpora.grants]] of path globs with readers of their own; the last grant that matches
    a document's path decides. A change to them counts with the next question: a running server and every command see
    to that by themselves, and `grants apply` says what it came to.

    Both commands are for whoever owns the configuration, and need no token.
    """


@grants.command()
@click.option("--corpus", metavar="NAME", help="Only this corpus.")
@click.pass_obj
def apply(start: Start, corpus: str | None) -> int:
    """Give every indexed document the readers that the configuration says. Nothing is read or embedded again."""
    from ragpilot.grants_report import run_apply

    return asyncio.run(run_apply(start.load_for(corpus), corpus))


@grants.command()
@click.argument("path")
@click.option("--actor", "-a", "name", metavar="NAME", help="Whether this actor may read it.")
@click.option("--corpus", metavar="NAME", help="In this corpus; otherwise where PATH lies.")
@click.option("--json", "as_json", is_flag=True, help="The same as one line of JSON for each corpus.")
@click.pass_obj
def explain(start: Start, path: str, name: str | None, corpus: str | None, *, as_json: bool) -> int:
    """Say who may read PATH, which grant decides it, and whether the index agrees.

    PATH is a file inside a corpus, or a path as answers cite it.
    """
    from ragpilot.grants_report import run_explain

    return run_explain(start.load_for(corpus), path, name, corpus, folder=Path.cwd(), as_json=as_json)
