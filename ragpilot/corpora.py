"""Which corpora an actor may know of."""

from __future__ import annotations

from ragpilot.config import CorpusSettings, Settings
from ragpilot.errors import UnknownCorpusError
from ragpilot.types import Actor

NOTHING = ""
"""The name of what an actor asks who may know of no corpus. No corpus can have it, so nothing is found in it, and its
actor learns no name of another."""

NO_CORPUS = "There is no collection that you may index."
"""What is told to who may index and knows of no corpus."""

_NONE = CorpusSettings.model_construct(name=NOTHING, roots=[], readers=[], grants=[])


def may_know(actor: Actor, corpus: CorpusSettings) -> bool:
    """Whether the configuration lets the actor read anything of the corpus; what is in it plays no part.

    Who holds ``admin`` knows of every corpus. ``ingest`` adds none: it is the right to index what one knows of.
    """
    readers = {reader for grant in corpus.grants for reader in grant.readers} | set(corpus.readers)
    return bool(readers & actor.principals) or actor.may("admin")


def known_corpora(settings: Settings, actor: Actor) -> list[CorpusSettings]:
    """The configured corpora that the actor may know of, in the configuration's order."""
    return [corpus for corpus in settings.corpora if may_know(actor, corpus)]


def default_corpus(settings: Settings, actor: Actor) -> CorpusSettings:
    """The corpus of a request that names none: the actor's own default, else the first that he may know of.

    A default that is not configured, or that he may not know of, is passed over without a word.
    """
    known = known_corpora(settings, actor)
    own = (corpus for corpus in known if corpus.name == actor.default_corpus)
    return next(own, known[0] if known else _NONE)


def resolve_corpus(settings: Settings, actor: Actor, name: str | None) -> CorpusSettings:
    """The named corpus, or the actor's default.

    Raises UnknownCorpusError, in the same words for one that does not exist and one that he may not know of.
    """
    if name is None:
        return default_corpus(settings, actor)
    found = next((corpus for corpus in known_corpora(settings, actor) if corpus.name == name), None)
    if found is None:
        raise UnknownCorpusError(name)
    return found
