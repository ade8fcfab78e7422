"""Which corpora an actor may know of."""

from __future__ import annotations

from ragpilot.config import CorpusSettings, Settings
from ragpilot.errors import UnknownCorpusError
from ragpilot.types import Actor


def may_know(actor: Actor, corpus: CorpusSettings) -> bool:
    """Whether the configuration lets the actor read anything of the corpus; what is in it plays no part."""
    readers = {reader for grant in corpus.grants for reader in grant.readers} | set(corpus.readers)
    return bool(readers & actor.principals) or actor.may("ingest")


def known_corpora(settings: Settings, actor: Actor) -> list[CorpusSettings]:
    """The configured corpora that the actor may know of, in the configuration's order."""
    return [corpus for corpus in settings.corpora if may_know(actor, corpus)]


def resolve_corpus(settings: Settings, actor: Actor, name: str | None) -> CorpusSettings:
    """The named corpus, or the actor's default: the first that he may know of.

    An actor who may know of none gets the first one: whatever he asks of it, he finds nothing. Raises
    UnknownCorpusError, in the same words for one that does not exist and one that he may not know of.
    """
    known = known_corpora(settings, actor)
    if name is None:
        return known[0] if known else settings.corpora[0]
    found = next((corpus for corpus in known if corpus.name == name), None)
    if found is None:
        raise UnknownCorpusError(name)
    return found
