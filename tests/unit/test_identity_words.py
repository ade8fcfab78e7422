from __future__ import annotations

from dataclasses import replace

import pytest

from ragpilot.identity_words import CUT_ANEW, REBUILD, cut_anew, misfit, only_cut_otherwise, remedy
from ragpilot.types import EmbedderIdentity, IndexIdentity

BUILT = IndexIdentity(EmbedderIdentity("minilm", 384, revision="a1", truncation=128), "5;max_chars=1000")


def test_another_embedder_is_named_by_what_tells_the_two_apart() -> None:
    other = replace(BUILT, embedder=EmbedderIdentity("nomic", 768, "query: ", revision="a1", truncation=128))
    assert misfit(BUILT, other) == (
        "was built with minilm (384 dimensions, question prefix ''); "
        "configured is nomic (768 dimensions, question prefix 'query: ')"
    )
    newer = replace(BUILT, embedder=replace(BUILT.embedder, revision="b2"), chunker="6;max_chars=1000")
    told = "was built with minilm (384 dimensions, revision 'a1'); configured is minilm (384 dimensions, revision 'b2')"
    assert misfit(BUILT, newer) == told


def test_other_rules_of_cutting_are_not_taken_for_another_embedder() -> None:
    assert misfit(BUILT, replace(BUILT, chunker="6;max_chars=1000")) == (
        "was cut into passages by other rules (5;max_chars=1000) than are in force (6;max_chars=1000), "
        "as after an update of RagPilot or a change of [ingest]"
    )


def test_what_makes_an_index_fit_is_a_run_where_only_the_cuts_differ() -> None:
    newer = replace(BUILT, chunker="6;max_chars=1000")
    other = replace(newer, embedder=replace(BUILT.embedder, dimensions=768))
    assert [remedy(BUILT, now) for now in (newer, other)] == [CUT_ANEW, REBUILD]
    assert [only_cut_otherwise(BUILT, now) for now in (BUILT, newer, other)] == [False, True, False]


@pytest.mark.parametrize(
    ("built", "why"),
    [
        ("9;max_chars=1000", "This index was cut by an earlier version of RagPilot"),
        ("9;max_chars=300", "This index was cut by an earlier version of RagPilot"),
        ("11;max_chars=1000", "This index was cut by another version of RagPilot"),
        ("dev;max_chars=1000", "This index was cut by another version of RagPilot"),
        ("10;max_chars=300", "[ingest] was changed since this index was cut"),
    ],
)
def test_why_an_index_is_cut_anew(built: str, why: str) -> None:
    kept = "vectors of texts that did not change are kept."
    assert cut_anew(built, "10;max_chars=1000") == f"{why}: it is cut anew; {kept}"
    assert cut_anew(built, "10;max_chars=1000", doing="so it goes") == f"{why}: so it goes; {kept}"
