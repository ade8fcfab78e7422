from __future__ import annotations

from dataclasses import replace

from ragpilot.identity_words import misfit
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
