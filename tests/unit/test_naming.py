"""What a question names, and which chunks are called so."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ragpilot import routing
from ragpilot.naming import Asked, holds, names_of, says, spelt
from ragpilot.ranking import rank
from ragpilot.routing import plan
from ragpilot.types import Candidate, Chunk
from tests.builders import chunk

TEXT = 'raise KumquatError(f"pomegranate  exhausted: {left}")\napp.run_simple(use_evalex=True)\n'


def asked_of(question: str) -> Asked:
    return Asked.of(
        question,
        symbols=routing.named_symbols(question),
        bare_symbol=routing.is_symbol(question),
        files=routing.named_files(question),
        phrases=routing.named_phrases(question),
    )


@pytest.mark.parametrize(
    ("name", "right"),
    [
        ("use_evalex", True),
        ("KumquatError", True),
        ("app.run_simple", True),
        ("kumquaterror", False),
        ("evalex", False),
        ("run_simple_app", False),
    ],
)
def test_an_identifier_is_held_as_it_is_written_and_whole(name: str, right: bool) -> None:
    assert holds(chunk("a.py", TEXT), name) is right


@pytest.mark.parametrize(
    ("phrase", "right"),
    [
        ("pomegranate exhausted", True),
        ("Pomegranate: Exhausted", True),
        ("pomegranate exhausted left", True),
        ("exhausted pomegranate", False),
        ("granate exhausted", False),
        ("", False),
    ],
)
def test_a_phrase_is_said_where_its_words_follow_each_other(phrase: str, right: bool) -> None:
    assert says(chunk("a.py", TEXT), phrase) is right


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("use_evalex", ["use_evalex"]),
        ("where is use_evalex used?", ["use_evalex"]),
        ("pomegranate exhausted", ["pomegranate exhausted"]),
        ('who says "pomegranate exhausted"?', ["pomegranate exhausted"]),
        ("where is pomegranate used?", ["pomegranate"]),
        ("exhausted", ["exhausted"]),
        ('what is the "exhausted" concept of botany?', []),
        ("how are fruits counted?", []),
    ],
)
def test_what_a_question_spells_names_the_chunk_it_stands_in(question: str, names: list[str]) -> None:
    assert spelt(chunk("a.py", TEXT), asked_of(question)) == names


def test_a_chunk_is_called_by_its_symbol_its_file_and_its_words_each_once() -> None:
    defining = replace(chunk("run.py", "def use_evalex(): ..."), symbol="use_evalex")
    asked = asked_of("is use_evalex in run.py?")

    assert names_of(defining, asked) == ["use_evalex", "run.py"]


def test_an_operation_is_named_by_its_method_and_its_path() -> None:
    read, write = (replace(chunk("api.yaml", "…"), symbol=f"{method} /users") for method in ("GET", "POST"))
    asked = asked_of("what does GET /users do?")

    assert (names_of(read, asked), names_of(write, asked)) == (["GET /users"], [])


def ordered(question: str, *chunks: Chunk) -> list[str]:
    retrieval_plan = plan(question, top_k=None, default_k=8, source_types=frozenset())
    candidates = [
        Candidate(item, 0.6 - at / 100, None, float("teardown_bp" in item.text)) for at, item in enumerate(chunks)
    ]
    return [item.candidate.chunk.path for item in rank(candidates, asked_of(question), retrieval_plan)]


def test_what_few_chunks_spell_leads_even_in_a_test_and_what_many_do_does_not() -> None:
    others = [chunk(f"a{number}.py", f"something else {number}") for number in range(6)]
    rare = chunk("tests/test_z.py", "teardown_bp(app)")
    assert ordered("where is teardown_bp used?", *others, rare)[0] == "tests/test_z.py"
    assert ordered("where is teardown_bp used?", *others, *[replace(rare, id=f"{n}") for n in range(40)])[0] == "a0.py"
