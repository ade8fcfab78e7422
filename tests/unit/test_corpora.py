"""Which corpora an actor may know of, and which one is meant where none is named."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from ragpilot.config import CorpusSettings, GrantSettings, Settings
from ragpilot.corpora import NOTHING, default_corpus, known_corpora, resolve_corpus
from ragpilot.errors import UnknownCorpusError
from ragpilot.types import Actor, Permission

SETTINGS = Settings(
    corpora=[
        CorpusSettings(name="vault", readers=["team:board"]),
        CorpusSettings(name="shop", readers=["team:core"]),
        CorpusSettings(
            name="people",
            readers=["team:people"],
            grants=[GrantSettings(paths=["handbook/**"], readers=["team:core"])],
        ),
    ]
)
CORE = frozenset({"user:ann", "team:core"})


def actor(*principals: str, default: str | None = None, may: Permission = "ask") -> Actor:
    return Actor("ann", frozenset(principals or CORE), frozenset({"ask", may}), default)


def test_a_corpus_is_known_by_its_readers_and_by_its_grants() -> None:
    assert [corpus.name for corpus in known_corpora(SETTINGS, actor())] == ["shop", "people"]
    assert known_corpora(SETTINGS, actor("team:nobody")) == []


def test_an_administrator_knows_every_corpus_and_who_may_index_those_that_he_may_read_of() -> None:
    assert len(known_corpora(SETTINGS, actor("team:nobody", may="admin"))) == 3
    assert known_corpora(SETTINGS, actor("team:nobody", may="ingest")) == []
    assert known_corpora(SETTINGS, actor(may="ingest")) == known_corpora(SETTINGS, actor())


@pytest.mark.parametrize(
    ("default", "meant"),
    [(None, "shop"), ("people", "people"), ("shop", "shop"), ("vault", "shop"), ("elsewhere", "shop")],
)
def test_an_actors_default_counts_where_he_may_know_of_it(default: str | None, meant: str) -> None:
    assert default_corpus(SETTINGS, actor(default=default)).name == meant
    assert resolve_corpus(SETTINGS, actor(default=default), None).name == meant
    assert resolve_corpus(SETTINGS, actor(default=default), "people").name == "people"


def test_an_unknown_corpus_and_a_hidden_one_are_refused_in_the_same_words() -> None:
    words = set()
    for name in ("vault", "vaulted"):
        with pytest.raises(UnknownCorpusError) as caught:
            resolve_corpus(SETTINGS, actor(), name)
        words.add(str(caught.value).replace(name, "NAME"))
    assert len(words) == 1


def test_who_may_know_of_none_asks_nothing_and_learns_no_name() -> None:
    for default in (None, "vault", "shop"):
        meant = resolve_corpus(SETTINGS, actor("team:nobody", default=default), None)
        assert (meant.name, meant.readers, meant.grants) == (NOTHING, [], [])
    with pytest.raises(ValidationError):
        CorpusSettings(name=NOTHING)
