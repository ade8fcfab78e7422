"""What `ragpilot grants` does: applying grants to an index, and explaining one path.

Both are for whoever owns configuration and state folder, and ask for no token: they read the one, which says who holds
which, and bring the other in line with it. Neither tells anything out of a document.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from ragpilot import cli_output as out
from ragpilot.actors import OWNER
from ragpilot.cli_session import open_parts
from ragpilot.config import CorpusSettings, Environment
from ragpilot.corpora import may_know
from ragpilot.errors import ConfigError, UnknownCorpusError
from ragpilot.exit_codes import DONE, FAILED
from ragpilot.ingest.grants import Decision, Grants
from ragpilot.ingest.manifest import FILE_NAME, Manifest, Row
from ragpilot.ingest.paths import shown_path
from ragpilot.ingest.roots import known_roots
from ragpilot.runtime import ServerRecord, access_in_force, find_server
from ragpilot.terminal_text import clean_line
from ragpilot.types import Actor

PATIENCE_SECONDS = 300.0
"""How long a server may take to apply grants; it answers nothing meanwhile."""


async def run_apply(environment: Environment, corpus: str | None) -> int:
    """Apply the grants of one corpus or of all, and say what changed. Gives 1 where a server did not take them."""
    corpora = _corpora(environment, corpus)
    for item in corpora:
        for problem in Grants(item).problems:
            out.note(f"Warning: {problem} What it may have meant is readable by nobody.")
    if (server := await find_server(environment.state)) is not None:
        code = await _through(server, environment, corpora)
    else:
        code = DONE
        async with open_parts(environment, "index") as application:
            for item in corpora:
                _told(item, await application.ingestion.apply_grants(OWNER, item))
    for _, sentence in await asyncio.to_thread(idle_grants, environment, corpora):
        out.note(f"Warning: {sentence}")
    return code


def idle_grants(environment: Environment, corpora: Iterable[CorpusSettings]) -> list[tuple[str, str]]:
    """Corpus and sentence for each grant that matches no indexed document; nothing where none is indexed. Blocking."""
    if not (environment.state / FILE_NAME).exists():
        return []
    found = []
    with Manifest(environment.state) as manifest:
        for item in [item for item in corpora if item.grants]:
            paths = [row.path for row in manifest.rows(item.name).values() if row.indexed]
            for place in Grants(item).unmatched(paths) if paths else ():
                globs = ", ".join(item.grants[place].paths)
                told = f"grant {place + 1} of corpus {item.name} matches no indexed document: {clean_line(globs)}"
                found.append((item.name, told))
    return found


async def _through(server: ServerRecord, environment: Environment, corpora: list[CorpusSettings]) -> int:
    """Have the running server put the grants in force. It does so at any request, for all corpora."""
    before = await asyncio.to_thread(_outdated, environment, corpora)
    with suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE_SECONDS):
            # What happens in another process has no event here.
            while not await access_in_force(server.address):  # noqa: ASYNC110
                await asyncio.sleep(0.5)
    after = await asyncio.to_thread(_outdated, environment, corpora)
    for item in corpora:
        _told(item, before[item.name] - after[item.name])
    left = sum(after.values())
    if left:
        out.note(f"Error: {_documents(left)} other readers than the configuration says.")
        out.note(f"The server at {server.address} (process {server.pid}) has not taken it; its log says why.")
    return FAILED if left else DONE


def _outdated(environment: Environment, corpora: list[CorpusSettings]) -> dict[str, int]:
    """How many documents of each corpus have other readers than the configuration says, by the manifest."""
    if not (environment.state / FILE_NAME).exists():
        return dict.fromkeys([item.name for item in corpora], 0)
    with Manifest(environment.state) as manifest:
        return {item.name: _differing(Grants(item), manifest.rows(item.name).values()) for item in corpora}


def _differing(grants: Grants, rows: Iterable[Row]) -> int:
    return sum(row.indexed and row.readers != grants.readers(row.path) for row in rows)


def _told(corpus: CorpusSettings, changed: int) -> None:
    out.line(f"{corpus.name}: {_documents(changed)} other readers now.")


def _documents(number: int) -> str:
    return f"{number:,} document has" if number == 1 else f"{number:,} documents have"


@dataclass(frozen=True, slots=True)
class Explanation:
    """One path in one corpus. ``row``: what the last run noted of it; None where it is not known."""

    corpus: CorpusSettings
    path: str
    decision: Decision
    row: Row | None
    actor: Actor | None

    @property
    def may_read(self) -> bool | None:
        """Whether the actor may read it by the configuration; None where none was named."""
        return None if self.actor is None else bool(self.decision.readers & self.actor.principals)

    @property
    def reason(self) -> str:
        """What decides, in words."""
        number, total = self.decision.grant, len(self.corpus.grants)
        if number is None:
            return "no grant matches it: the corpus's own readers count" if total else "the corpus's readers"
        place = f"grant {number + 1} of {total}"
        if self.decision.glob is None:
            return f"{place} cannot be read, so it may have meant this path: nobody reads it"
        return f"{place}, by {self.decision.glob!r}: the last one that matches"

    @property
    def in_index(self) -> str:
        """What the index holds of it, in words."""
        if self.row is None:
            return "not indexed"
        if not self.row.indexed:
            return f"left out of the index: {self.row.outcome}"
        if self.row.readers == self.decision.readers:
            return "indexed with these readers"
        return f"indexed with other readers ({_listed(self.row.readers)}) until grants are applied"


def run_explain(
    environment: Environment, path: str, name: str | None, corpus: str | None, *, folder: Path, as_json: bool
) -> int:
    """Print who may read ``path`` (relative to ``folder`` where it is a file's), in each corpus that it can lie in."""
    actor = None if name is None else _actor(environment, name)
    found = [(item, shown) for item in _corpora(environment, corpus) if (shown := _in_corpus(item, path, folder))]
    if not found:
        raise ConfigError(f"{path} lies in no corpus.", hint="Name a file inside a root, or a path as answers cite it.")
    explained = [_explained(environment, item, shown, actor) for item, shown in found]
    # Of several corpora those that know the path.
    for item in [item for item in explained if item.row is not None] or explained:
        if as_json:
            out.as_json(_as_json(item))
        else:
            _print(item)
    return DONE


def _explained(environment: Environment, corpus: CorpusSettings, path: str, actor: Actor | None) -> Explanation:
    decision, row = Grants(corpus).decide(path), None
    if (environment.state / FILE_NAME).exists():
        with Manifest(environment.state) as manifest:
            row = manifest.rows(corpus.name).get(path)
    return Explanation(corpus, path, decision, row, actor)


def _print(item: Explanation) -> None:
    out.line(f"{item.path} in corpus {item.corpus.name}")
    out.line(f"  readers: {_listed(item.decision.readers)}")
    out.line(f"  decided by: {item.reason}")
    out.line(f"  index: {item.in_index}")
    if item.actor is None:
        return
    held = item.decision.readers & item.actor.principals
    if held:
        out.line(f"  {item.actor.name} may read it, as {_listed(held)}")
    else:
        own = f"holds {_listed(item.actor.principals)}" if item.actor.principals else "holds no principal"
        out.line(f"  {item.actor.name} may not read it: {own}")
    if not may_know(item.actor, item.corpus):
        out.line(f"  {item.actor.name} may not know of the corpus")
    if not item.actor.may("ask"):
        out.line(f"  {item.actor.name} may not ask at all: the permission is missing")


def _as_json(item: Explanation) -> dict[str, Any]:
    row = item.row
    return {
        "corpus": item.corpus.name,
        "path": item.path,
        "readers": sorted(item.decision.readers),
        "grant": None if item.decision.grant is None else item.decision.grant + 1,
        "glob": item.decision.glob,
        "reason": item.reason,
        "indexed": row is not None and row.indexed,
        "indexedReaders": sorted(row.readers) if row is not None and row.indexed else None,
        "actor": None if item.actor is None else item.actor.name,
        "mayRead": item.may_read,
    }


def _actor(environment: Environment, name: str) -> Actor:
    settings = environment.settings
    for actor in settings.actors:
        if actor.name == name:
            return Actor(actor.name, frozenset(actor.principals), frozenset(actor.permissions))
    if not settings.actors and name == "local":
        return Actor(name, frozenset(settings.local.principals))
    if not settings.actors:
        raise ConfigError(f"There is no actor {name!r}: none is configured.", hint="Whoever is here asks as 'local'.")
    names = ", ".join(actor.name for actor in settings.actors)
    raise ConfigError(f"There is no actor {name!r}.", hint=f"There are: {names}.")


def _corpora(environment: Environment, name: str | None) -> list[CorpusSettings]:
    if name is None:
        return environment.settings.corpora
    corpus = environment.settings.corpus(name)
    if corpus is None:
        raise UnknownCorpusError(name)
    return [corpus]


def _in_corpus(corpus: CorpusSettings, path: str, folder: Path) -> str | None:
    """The path as the index of ``corpus`` shows it; None where it cannot lie in it."""
    place = Path(os.path.realpath(folder / path))
    roots = sorted(known_roots(corpus), key=lambda root: -len(root.folder.parts))
    holder = next((root for root in roots if place.is_relative_to(root.folder)), None)
    if holder is not None and place.exists():
        if place.is_dir():
            raise ConfigError(f"{path} is a folder; grants are decided file by file.")
        return holder.prefix + shown_path(os.fsencode(place.relative_to(holder.folder)))
    given = PurePosixPath(path)
    if not given.is_absolute() and ".." not in given.parts:
        return str(given)
    return None if holder is None else holder.prefix + shown_path(os.fsencode(place.relative_to(holder.folder)))


def _listed(principals: frozenset[str]) -> str:
    return ", ".join(sorted(principals)) or "nobody"
