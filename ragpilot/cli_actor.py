"""`ragpilot actor`: who may ask. Prints what belongs into the configuration, and edits a file only when told to.

For whoever owns the configuration, and therefore without a token: who can read it knows who is in it, and who can write
it could write himself in. Tokens stand in it as hashes, and are printed once, when they are made.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from ragpilot import cli_output as out
from ragpilot.exit_codes import DONE, FAILED

if TYPE_CHECKING:
    from ragpilot.cli import Start
    from ragpilot.config import ActorSettings, Environment
    from ragpilot.config_file import ConfigFile

FINGERPRINT: Final = 12
"""How many digits of a token's hash name it."""

ANONYMOUS: Final = "Without any actor, whoever is on this machine asks without a token."

_WRITE = click.option(
    "--write",
    "file",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Edit this configuration file; its comments stay. Otherwise no file is changed.",
)


@click.group(short_help="Say who may ask: add, list and revoke.")
def actor() -> None:
    """Say who may ask, and what each of them may read.

    Once there are actors, nobody asks without a token: every command takes one from RAGPILOT_TOKEN. The configuration
    holds only hashes of tokens. A running server goes by it from its next request on: a revoked token is refused.

    With `ingest`, an actor may have the index brought up to date, and is told of files that the actor may read; with
    `admin` too, of all. These commands are for whoever owns the configuration, and need no token.
    """


@actor.command()
@click.argument("name")
@click.option("--team", "-t", "teams", metavar="T", multiple=True, help="A team to be in; may be given several times.")
@click.option(
    "--permission",
    "-p",
    "permissions",
    type=click.Choice(["ask", "ingest", "admin"]),
    multiple=True,
    default=("ask",),
    show_default=True,
    help="May be given several times.",
)
@click.option("--corpus", metavar="C", help="The corpus of a question that names none.")
@_WRITE
@click.pass_obj
def add(
    start: Start, name: str, teams: tuple[str, ...], permissions: tuple[str, ...], corpus: str | None, file: Path | None
) -> int:
    """Make an actor NAME, with the principals user:NAME and team:T, and a token, which is shown this once."""
    from ragpilot.actor_file import checked, open_file, save
    from ragpilot.actors import new_token, token_hash
    from ragpilot.config_actors import table_of, with_actor
    from ragpilot.errors import ConfigError

    token = new_token()
    principals = [f"user:{name}", *(f"team:{team}" for team in dict.fromkeys(teams))]
    may = list(dict.fromkeys(permissions))
    given = {"name": name, "principals": principals, "permissions": may, "tokens": [token_hash(token)]}
    made = checked(given if corpus is None else {**given, "corpus": corpus})
    environment = start.load()
    found = None if file is None else open_file(file)
    if corpus is not None:
        _check_corpus(environment, found, corpus)
    if any(known.name.casefold() == name.casefold() for known in environment.settings.actors):
        raise ConfigError(
            f"There is an actor {name!r} already.", hint=f"`ragpilot actor token {name}` makes another token."
        )
    table = table_of(name, principals, made.permissions, corpus, made.tokens[0])
    if found is not None:
        save(found, with_actor(found, table), home=environment.shared)
    out.note(f"The token of {name}, shown this once; it goes into RAGPILOT_TOKEN:")
    out.line(token)
    if file is None:
        out.note("The configuration takes:")
        out.line(f"\n{table}")
    _tell_corpora(environment, made)
    if not environment.settings.actors:
        out.note("With its first actor the configuration ends anonymous access: every command needs a token then.")
    return _after(start, environment, file)


@actor.command()
@click.argument("name")
@_WRITE
@click.pass_obj
def token(start: Start, name: str, file: Path | None) -> int:
    """Make one more token for the actor NAME; it is shown this once. The others stay as they are."""
    from ragpilot.actor_file import open_file, place_of, save
    from ragpilot.actors import new_token, token_hash
    from ragpilot.config_actors import with_token

    environment = start.load()
    made = new_token()
    if file is None:
        _known(environment, name)
    else:
        found = open_file(file)
        save(found, with_token(found, place_of(found, name), token_hash(made)), home=environment.shared)
    out.note(f"A further token of {name}, shown this once; it goes into RAGPILOT_TOKEN:")
    out.line(made)
    if file is None:
        out.note(f"Its tokens, {_where(environment)}, take:")
        out.line(f'"{token_hash(made)}"')
    return _after(start, environment, file)


@actor.command("list")
@click.option("--json", "as_json", is_flag=True, help="The same as one line of JSON.")
@click.pass_obj
def list_actors(start: Start, *, as_json: bool) -> int:
    """Say who may ask, what each may do, and the fingerprints of their tokens."""
    environment = start.load()
    actors = environment.settings.actors
    if as_json:
        out.as_json([_described(item) for item in actors])
        return DONE
    if not actors:
        principals = ", ".join(environment.settings.local.principals) or "no principals"
        out.line(f"No actors: whoever is on this machine asks, as {principals}.")
    for item in actors:
        may = ", ".join(item.permissions) or "nothing"
        out.line(f"{item.name}: {', '.join(item.principals) or 'no principals'}; may {may}")
        if item.corpus is not None:
            known = environment.settings.corpus(item.corpus) is not None
            out.line(f"  asks corpus {item.corpus}{'' if known else ', which is not configured here'}")
        for fingerprint in _described(item)["tokens"]:
            unset = fingerprint.startswith("env:") and not os.environ.get(fingerprint.removeprefix("env:"))
            out.line(f"  token {fingerprint}{' (not set here)' if unset else ''}")
    return DONE


@actor.command()
@click.argument("name")
@click.argument("fingerprint", required=False)
@click.option("--allow-anonymous", is_flag=True, help="Also the last actor: everybody on this machine asks then.")
@_WRITE
@click.pass_obj
def revoke(start: Start, name: str, fingerprint: str | None, *, allow_anonymous: bool, file: Path | None) -> int:
    """Take a token from the actor NAME, by its FINGERPRINT as `actor list` shows it; without one, the actor itself.

    Without --write this says what is to be removed, and where. The last actor stays unless --allow-anonymous is given:
    without any, whoever is on this machine asks without a token.
    """
    from ragpilot.actor_file import open_file, place_of, save, token_of
    from ragpilot.config_actors import without_actor, without_token
    from ragpilot.errors import ConfigError

    environment = start.load()
    if file is None:
        tokens = _known(environment, name).tokens
        held = None if fingerprint is None else token_of(tokens, name, fingerprint)
        what = "the table of that actor" if held is None else f'"{held}"'
        out.line(f"Remove {what}, {_where(environment)}.")
        if held is None and len(environment.settings.actors) == 1:
            out.note(f"Warning: {name} is the last actor. {ANONYMOUS}")
        return _after(start, environment, file)
    found = open_file(file)
    place = place_of(found, name)
    actors = found.data["actors"]
    held = None if fingerprint is None else token_of(actors[place]["tokens"], name, fingerprint)
    last = held is None and len(actors) == 1
    if last and not allow_anonymous:
        raise ConfigError(
            f"{name} is the last actor of {file}, and stays. {ANONYMOUS}",
            hint="If that is meant: --allow-anonymous. Else add another actor first.",
        )
    changed = without_actor(found, place) if held is None else without_token(found, place, held)
    save(found, changed, home=environment.shared)
    out.note(f"Removed from {file}: {'the actor' if held is None else 'a token of'} {name}.")
    if held is not None and held.startswith("env:"):
        out.note(f"Unset {held.removeprefix('env:')} as well, wherever it is set.")
    if last:
        out.note(f"Warning: {file} has no actor any more. {ANONYMOUS}")
    return _after(start, environment, file, reopened=last)


def _described(item: ActorSettings) -> dict[str, Any]:
    tokens = [known if known.startswith("env:") else known[:FINGERPRINT] for known in item.tokens]
    return {**item.model_dump(), "tokens": tokens}


def _known(environment: Environment, name: str) -> ActorSettings:
    from ragpilot.errors import ConfigError

    names = {item.name: item for item in environment.settings.actors}
    if name not in names:
        raise ConfigError(f"There is no actor {name!r}.", hint=f"There are: {', '.join(names) or 'none'}.")
    return names[name]


def _where(environment: Environment) -> str:
    """Where the actors in force stand."""
    return f"in {environment.origins.get('actors', 'the configuration')}"


def _tell_corpora(environment: Environment, made: ActorSettings) -> None:
    from ragpilot.corpora import known_corpora
    from ragpilot.types import Actor

    who = Actor(made.name, frozenset(made.principals), frozenset(made.permissions))
    names = ", ".join(corpus.name for corpus in known_corpora(environment.settings, who))
    out.note(f"{made.name} may know of these corpora: {names or 'none; their readers decide'}.")
    out.note("`ragpilot grants explain PATH --actor NAME` says what an actor may read, and why.")


def _check_corpus(environment: Environment, file: ConfigFile | None, name: str) -> None:
    """Raise ConfigError where neither the settings in force nor the file to be written has a corpus of that name."""
    from ragpilot.errors import ConfigError

    names = [corpus.name for corpus in environment.settings.corpora]
    tables = file.data.get("corpora", []) if file is not None else []
    names += [str(table.get("name", "default")) for table in tables if isinstance(table, dict)]
    if name not in names:
        listed = ", ".join(dict.fromkeys(names))
        raise ConfigError(
            f"There is no corpus {name!r} that an actor could ask by default.", hint=f"There are: {listed}."
        )


def _after(start: Start, environment: Environment, file: Path | None, *, reopened: bool = False) -> int:
    """Say what becomes of a change, or what is still to be done for it to count; gives the exit code.

    ``reopened``: the last actor has gone, which a running server does not take for leave to let everybody in.
    """
    from ragpilot.errors import RagPilotError, UntrustedConfigError
    from ragpilot.runtime import owner

    if file is not None:
        try:
            start.load()
        except UntrustedConfigError as error:
            out.note(f"It does not count yet. {error.message}")
            out.note(error.hint)
            return DONE
        except RagPilotError as error:
            out.problem(error)
            return FAILED
    holder = owner(environment.state)
    if holder is None or holder.role != "serve":
        return DONE
    if reopened:
        out.note(f"{holder} lets nobody in until it is restarted.")
    elif file is not None:
        out.note(f"{holder} goes by it from its next request on, if {file} is a file that it reads.")
    else:
        out.note(f"{holder} goes by the configuration from its next request on.")
    return DONE
