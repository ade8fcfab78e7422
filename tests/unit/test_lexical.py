from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragpilot.lexical import (
    document_terms,
    document_vector,
    parts,
    path_words,
    question_terms,
    question_vector,
    stem,
    term_id,
    words,
)


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("getHTTPResponseCode", ("get", "http", "response", "code")),
        ("_get_server_data_file_path", ("get", "server", "data", "file", "path")),
        ("HTTPServer_start2", ("http", "server", "start", "2")),
        ("naïve_Größe", ("naïve", "größe")),
        ("数据库连接", ("数据", "据库", "库连", "连接")),
        ("日", ("日",)),
    ],
)
def test_identifiers_come_apart(word: str, expected: tuple[str, ...]) -> None:
    assert parts(word) == expected


def test_three_spellings_of_one_name_share_all_of_its_parts() -> None:
    spoken = set(question_terms("get server data file path"))
    snake = set(question_terms("_get_server_data_file_path"))
    pascal = set(question_terms("GetServerDataFilePath"))
    assert spoken < snake == pascal


def test_a_question_keeps_what_it_names_and_drops_what_only_asks() -> None:
    assert question_terms("where is the context budget enforced?") == ["context", "budget", stem("enforced")]


def test_a_question_of_nothing_but_question_words_keeps_them() -> None:
    assert question_terms("what is it") != []


def test_every_word_to_the_last_is_in_the_vector() -> None:
    text = " ".join(f"word{n}tail" for n in range(2000)) + " lastone"
    dimensions = set(document_vector(text, path="a.py", symbol=None, header="").indices)
    assert term_id(stem("lastone")) in dimensions
    assert term_id("word1999tail") in dimensions


def test_path_and_symbol_words_are_terms_and_the_stem_counts_twice() -> None:
    counted = document_terms("x = 1", path="billing/retry_policy.py", symbol="Retry.backoff", header="")
    assert counted[stem("retry")] == 3
    assert counted[stem("policy")] == 2
    assert counted["backoff"] == 1
    assert counted[stem("billing")] == 1


def test_a_header_adds_only_what_is_not_there() -> None:
    counted = document_terms("alpha alpha", path="p.py", symbol=None, header="alpha beta")
    assert counted["alpha"] == 2
    assert counted["beta"] == 1


def test_path_words_of_odd_names() -> None:
    assert path_words(".gitignore") == [".gitignore", ".gitignore", ""]
    assert path_words("a/b/Makefile") == ["a", "b", "Makefile", "Makefile", ""]
    assert path_words("a/x.test.ts") == ["a", "x.test", "x.test", "ts"]


def test_repetition_saturates_and_length_discounts() -> None:
    once = document_vector("needle hay", path="", symbol=None, header="")
    often = document_vector("needle " * 50 + "hay", path="", symbol=None, header="")
    long = document_vector("needle " + "hay " * 2000, path="", symbol=None, header="")
    weight = {v: dict(zip(v.indices, v.values, strict=True))[term_id("needl")] for v in (once, often, long)}
    assert weight[once] < weight[often] < 2.2
    assert weight[long] < weight[once]


@given(st.text(max_size=400))
def test_any_text_gives_a_valid_vector(text: str) -> None:
    for vector in (document_vector(text, path=text[:20], symbol=text[:5], header=text), question_vector(text)):
        assert list(vector.indices) == sorted(set(vector.indices))
        assert all(0 <= index < 2**32 for index in vector.indices)
        assert all(value > 0 for value in vector.values)
        assert len(vector.indices) == len(vector.values)


def test_words_are_kept_as_written() -> None:
    assert words("a_b.cD(e) # f-g") == ["a_b", "cD", "e", "f", "g"]
