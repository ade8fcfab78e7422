"""The `ragpilot` command."""

from __future__ import annotations

import asyncio
import os
import sys
import traceback
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import click

from ragpilot import cli_output as out
from ragpilot.adhoc import environment_of, known
from ragpilot.cli_actor import actor
from ragpilot.cli_calibrate import calibrate
from ragpilot.cli_doctor import doctor
from ragpilot.cli_embed_bench import embed_bench
from ragpilot.cli_grants import grants
from ragpilot.cli_mcp import mcp
from ragpilot.config import Environment
from ragpilot.errors import ConfigError, InvalidRequestError, RagPilotError, UnknownCorpusError
from ragpilot.exit_codes import DONE, FAILED, INTERRUPTED, PIPE_CLOSED, WRONG_USE
from ragpilot.files import write_private
from ragpilot.settings_loader import load, state_home, trust_folder
from ragpilot.terminal_text import clean_line
from ragpilot.types import QUESTION_MAX_CHARS, TOP_K_RANGE

EPILOG: Final = """
\b
Examples:
  ragpilot index                            index the working folder
  ragpilot ask "where are tokens counted?"  answer, with sources
  ragpilot search "token counter" -k 20     the passages alone
  ragpilot -C ~/src/shop                    the terminal UI, for another folder
  ragpilot ask "how is a refund booked?" --json | jq .sources

\b
Exit codes:
  0  done                       3  not found in the indexed sources (ask)
  1  failed                     4  partly done: some files failed (index)
  2  wrong use or configuration
"""


@dataclass(frozen=True, slots=True)
class Start:
    """What stands before the command."""

    config: str | None
    directory: Path | None

    def load(self) -> Environment:
        """The settings in force; what the user should know about them goes to stderr."""
        environment = load(config=self.config, directory=self.directory, environ=os.environ)
        for text in environment.notes:
            out.note(f"Note: {text}")
        return environment

    def place(self, path: Path | None, *, gone: bool = False) -> Path | None:
        """A PATH argument as if the command had been started in ``--directory``.

        Raises UsageError where nothing is there; ``gone``: not then.
        """
        if path is None:
            return None
        found = path if self.directory is None else self.directory / path
        if not gone and not os.path.lexists(found):
            raise click.UsageError(f"Path '{clean_line(str(found))}' does not exist.")
        return found

    def load_for(self, corpus: str | None) -> Environment:
        """As ``load``, but for an ad-hoc corpus of that name where the configuration has none."""
        environment = self.load()
        if corpus is None or environment.settings.corpus(corpus) is not None:
            return environment
        made = next((item for item in known(environment.state.parent) if item.name == corpus), None)
        return environment if made is None else environment_of(made, environment)


@click.group(invoke_without_command=True, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--config", metavar="FILE", help="Configuration file; otherwise RAGPILOT_CONFIG, then your own.")
@click.option(
    "--directory",
    "-C",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Work as if started in DIR.",
)
@click.version_option(version("ragpilot"), prog_name="ragpilot", message="%(prog)s %(version)s")
@click.pass_context
def cli(context: click.Context, config: str | None, directory: Path | None) -> int | None:
    """Ask questions about a codebase, and get answers from it alone, with sources.

    Without a command, the terminal UI opens.
    """
    context.obj = Start(config, directory)
    if context.invoked_subcommand is not None:
        return None
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise click.UsageError("The terminal UI needs a terminal. `ragpilot ask QUESTION` answers without one.")
    from ragpilot.cli_commands import run_tui

    return run_tui(context.obj.load())


@cli.command()
@click.argument("question", nargs=-1, required=True)
@click.option(
    "--top-k", metavar="N", type=click.IntRange(*TOP_K_RANGE), help="At most N passages (1 to 50); default: 8."
)
@click.option("--corpus", metavar="NAME", help="Which corpus to ask; `ragpilot status` lists them.")
@click.option("--json", "as_json", is_flag=True, help="Answer, sources and all else as one JSON object.")
@click.option("--explain", is_flag=True, help="Also what became of each candidate, and by which scores.")
@click.pass_obj
def ask(
    start: Start, question: tuple[str, ...], top_k: int | None, corpus: str | None, *, as_json: bool, explain: bool
) -> int:
    """Answer QUESTION from the indexed sources.

    The answer goes to stdout as it comes, then its sources. Exit code 3: not found in the indexed sources.
    """
    from ragpilot.cli_commands import run_ask

    text = _question(question)
    asked = run_ask(start.load_for(corpus), text, top_k=top_k, corpus=corpus, as_json=as_json, explain=explain)
    return asyncio.run(asked)


@cli.command()
@click.argument("question", nargs=-1, required=True)
@click.option("-k", metavar="N", type=click.IntRange(1, 200), default=8, show_default=True, help="At most N hits.")
@click.option("--corpus", metavar="NAME", help="Which corpus to search; `ragpilot status` lists them.")
@click.option("--json", "as_json", is_flag=True, help='{"hits": [as sources], "floor", "gate", …}')
@click.pass_obj
def search(start: Start, question: tuple[str, ...], k: int, corpus: str | None, *, as_json: bool) -> int:
    """Find passages for QUESTION, best first, without an answer."""
    from ragpilot.cli_commands import run_search

    text = _question(question)
    return asyncio.run(run_search(start.load_for(corpus), text, k=k, corpus=corpus, as_json=as_json))


@cli.command()
@click.argument("path", required=False, type=click.Path(path_type=Path))
@click.option("--rebuild", is_flag=True, help="Throw the index away first; needed for another embedder.")
@click.option("--quiet", is_flag=True, help="Say only what went wrong.")
@click.option("--no-bodies", is_flag=True, help="Leave body vectors to a server or a later run: done sooner.")
@click.option("--yes", is_flag=True, help="Index a home folder, or a folder that holds one.")
@click.option("--watch", is_flag=True, help="Then keep up with what changes, until Ctrl-C.")
@click.option("--plan", is_flag=True, help="Say what would be indexed, what left out and why; do nothing.")
@click.option("--json", "as_json", is_flag=True, help="A report a corpus, each as one line of JSON.")
@click.pass_obj
def index(
    start: Start,
    path: Path | None,
    *,
    rebuild: bool,
    quiet: bool,
    no_bodies: bool,
    yes: bool,
    watch: bool,
    plan: bool,
    as_json: bool,
) -> int:
    """Index what has changed: all corpora, or only PATH.

    A PATH inside a corpus narrows the run to it; one that is gone is removed from the index. A PATH outside every
    corpus becomes a corpus of its own, named after its folder.
    """
    from ragpilot.cli_index import IndexOptions, run_index

    path = start.place(path, gone=not (plan or watch))
    options = IndexOptions(rebuild=rebuild, quiet=quiet, bodies=not no_bodies, broad=yes, as_json=as_json)
    if plan:
        from ragpilot.cli_plan import run_plan

        if watch or rebuild:
            raise click.UsageError("--plan does nothing, so neither --watch nor --rebuild goes with it.")
        return asyncio.run(run_plan(start.load(), path, options))
    if watch:
        from ragpilot.cli_watch import run_watch

        if yes:
            raise click.UsageError("A home folder is too much to watch: --yes does not go with --watch.")
        return asyncio.run(run_watch(start.load(), path, options))
    return asyncio.run(run_index(start.load(), path, options))


@cli.command(short_help="Serve over HTTP until Ctrl-C.")
@click.option("--host", metavar="HOST", help="Address to listen on; anything but loopback needs [[actors]].")
@click.option("--port", metavar="N", type=click.IntRange(0, 65535), help="Port; 0: any that is free. Default: 5200.")
@click.pass_obj
def serve(start: Start, host: str | None, port: int | None) -> int:
    """Serve over HTTP until Ctrl-C: POST /ask, POST /search, GET /health and others."""
    from ragpilot.cli_commands import run_serve

    return run_serve(start.load(), host=host, port=port)


@cli.command(short_help="Say what is indexed and whether all is well.")
@click.option("--json", "as_json", is_flag=True, help="The same as one JSON object.")
@click.pass_obj
def status(start: Start, *, as_json: bool) -> int:
    """Say what is indexed, by what, whether the parts are well, and where everything lies."""
    from ragpilot.cli_status import run_status

    return asyncio.run(run_status(start.load(), as_json=as_json))


@cli.command("eval", short_help="Measure retrieval and refusal with a question set.")
@click.argument("questions", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--root", metavar="DIR", required=True, type=click.Path(path_type=Path), help="The folder, or of all trees."
)
@click.option("--json", "as_json", is_flag=True, help="Figures and every question as one JSON object.")
@click.option("--compare", metavar="FILE", type=click.Path(exists=True, path_type=Path), help="An earlier --json run.")
@click.option("--no-bodies", is_flag=True, help="Measure as it is before body vectors are in.")
@click.option("--make", is_flag=True, help="Print a question set drafted from DIR, to be edited by hand.")
@click.pass_obj
def evaluate(
    start: Start,
    questions: Path | None,
    root: Path,
    *,
    as_json: bool,
    compare: Path | None,
    no_bodies: bool,
    make: bool,
) -> int:
    """Measure retrieval and refusal over DIR with QUESTIONS, a file of JSON Lines.

    A line holds "query" and "relevant": [{"path", "symbol"?, "start"?, "end"?, "grade"?}]; one without "relevant" must
    get the not-found answer. Where lines name a "repo" (and "commit"), its tree is DIR/<owner>__<name>/<commit>.
    """
    from ragpilot.cli_eval import run_eval, run_make

    if make:
        return asyncio.run(run_make(start.load(), root))
    if questions is None:
        raise click.UsageError("Give a question set, or --make to draft one.")
    run = run_eval(start.load(), questions, root, as_json=as_json, bodies=not no_bodies, earlier=compare)
    return asyncio.run(run)


@cli.command(short_help="Let the folder's config.toml set everything.")
@click.pass_obj
def trust(start: Start) -> int:
    """Let the config.toml of the working folder set everything, as it is now.

    Until then, and again once it has changed by a byte, such a file may set only [retrieval], [prompt] and corpora
    inside its folder, for it may have come with a repository. Read it first.
    """
    found = trust_folder(directory=start.directory, environ=os.environ)
    out.line(f"Trusted: {found.file.path}")
    for wish in found.wishes:
        out.line(f"  it sets {wish}")
    if not found.wishes:
        out.line("  it sets nothing that would need this")
    return DONE


cli.add_command(calibrate)
cli.add_command(doctor)
cli.add_command(embed_bench)
cli.add_command(mcp)
cli.add_command(actor)
cli.add_command(grants)


def main() -> None:
    """Entry point of the console script."""
    # The folder this starts in may be somebody's repository: no interpreter started from here on, that of the
    # embedded store among them, may import a module from it.
    os.environ["PYTHONSAFEPATH"] = "1"
    out.prepare_streams()
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run one command; gives its exit code. No expected error comes out as a traceback."""
    try:
        with suppress(click.exceptions.Exit):
            result: Any = cli.main(arguments, prog_name="ragpilot", standalone_mode=False)
            return result if isinstance(result, int) else DONE
        return DONE
    except click.ClickException as error:
        with suppress(OSError):  # where not even that can be written, the exit code says it
            error.show()
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except out.PipeClosed:
        out.mute()
        return PIPE_CLOSED
    except out.OutputError as error:
        out.problem(error)
        out.mute()
        return FAILED
    except UnknownCorpusError as error:
        out.problem(RagPilotError(error.message, hint="`ragpilot status` lists the corpora."))
        return WRONG_USE
    except RagPilotError as error:
        out.problem(error)
        return WRONG_USE if isinstance(error, ConfigError | InvalidRequestError) else FAILED
    except Exception as error:  # noqa: BLE001 - the outermost handler: the user is told, and where to read on
        if isinstance(error, OSError) and _is_of_printing(error):
            out.problem(out.unwritable(error))
            out.mute()
        else:
            _unexpected(error)
        return FAILED


def _is_of_printing(error: OSError) -> bool:
    """Whether help or a version, which click prints by itself, could not be written."""
    return any(frame.f_code is click.echo.__code__ for frame, _ in traceback.walk_tb(error.__traceback__))


def _question(words: tuple[str, ...]) -> str:
    # Bytes that are no UTF-8 reach us as half characters, which nothing behind here could encode.
    text = " ".join(words).encode(errors="surrogateescape").decode(errors="replace")
    if not any(character.isprintable() and not character.isspace() for character in text):
        raise click.UsageError("The question is empty.")
    if len(text) > QUESTION_MAX_CHARS:
        raise click.UsageError(f"The question has {len(text):,} characters; at most {QUESTION_MAX_CHARS:,} are taken.")
    return text


def _unexpected(error: Exception) -> None:
    if os.environ.get("RAGPILOT_DEBUG"):
        out.note("".join(traceback.format_exception(error)))
        return
    out.note(f"Error: RagPilot failed unexpectedly ({type(error).__name__}).")
    # The place and the kind, as in every log: a message may quote a question, a passage or a token.
    trace = "".join(traceback.format_tb(error.__traceback__)) + f"{type(error).__name__}\n"
    try:
        log = state_home(os.environ) / "error.log"
        write_private(log, trace.encode(errors="backslashreplace"))
    except RagPilotError:
        out.note("RAGPILOT_DEBUG=1 shows where.")
    else:
        out.note(f"Where stands in {log}; RAGPILOT_DEBUG=1 shows why.")
