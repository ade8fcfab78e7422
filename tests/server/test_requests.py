from __future__ import annotations

import json
from typing import Any

import pytest

from ragpilot.errors import InvalidRequestError
from ragpilot.types import QUESTION_MAX_CHARS, Turn
from server.problems import ProblemError
from server.requests import AskBody, IndexBody, SearchBody, SourceQuery, check, parse

USER = {"role": "user", "content": "and then?"}


def refusal(kind: type[Any], data: dict[str, Any]) -> InvalidRequestError:
    with pytest.raises(InvalidRequestError) as caught:
        parse(kind, json.dumps(data).encode())
    return caught.value


def test_every_field_of_a_question_arrives() -> None:
    body = {
        "question": " where? ",
        "topK": 50,
        "corpus": "open",
        "focus": ["src/*.py"],
        "conversation": [USER, {"role": "assistant", "content": ""}],
        "page": "/orders/3",
    }
    asked = parse(AskBody, json.dumps(body).encode()).request("id-1")
    assert (asked.question, asked.request_id, asked.top_k, asked.corpus) == (" where? ", "id-1", 50, "open")
    assert (asked.focus, asked.page) == (("src/*.py",), "/orders/3")
    assert asked.conversation == (Turn("user", "and then?"), Turn("assistant", ""))


def test_what_is_not_given_is_left_to_the_plan() -> None:
    asked = parse(AskBody, b'{"question": "x", "topK": null}').request("id-1")
    assert (asked.top_k, asked.corpus, asked.focus, asked.conversation, asked.page) == (None, None, (), (), None)
    search = parse(SearchBody, b'{"question": "x"}')
    assert (search.k, search.corpus, search.focus) == (8, None, [])


@pytest.mark.parametrize(
    "question",
    ['"', "NEAR(", '"foo" OR bar*', "SELECT * FROM x; --", "%s {0.__class__}", "🤖", "<|endoftext|>", "a\0b",
     "[/b] [0]", "x" * QUESTION_MAX_CHARS, "\u202eesrever"],
)  # fmt: skip
def test_any_text_with_something_to_see_is_a_question(question: str) -> None:
    assert parse(AskBody, json.dumps({"question": question}).encode()).question == question


@pytest.mark.parametrize(
    ("data", "field", "limit"),
    [
        ({"question": ""}, "question", "16,000"),
        ({"question": " \n\t"}, "question", "not blank"),
        ({"question": "\u200b\u2060"}, "question", "not blank"),
        ({"question": "\0"}, "question", "not blank"),
        ({"question": None}, "question", "text"),
        ({"question": 7}, "question", "text"),
        ({"question": ["x"]}, "question", "text"),
        ({"question": "x" * (QUESTION_MAX_CHARS + 1)}, "question", "It has 16,001."),
        ({"question": "\ud800"}, "question", "text"),
        ({}, "question", "missing"),
        ({"question": "x", "topK": 0}, "topK", "from 1 to 50"),
        ({"question": "x", "topK": -1}, "topK", "from 1 to 50"),
        ({"question": "x", "topK": 51}, "topK", "from 1 to 50"),
        ({"question": "x", "topK": 10**40}, "topK", "from 1 to 50"),
        ({"question": "x", "topK": "8"}, "topK", "whole number"),
        ({"question": "x", "topK": 8.0}, "topK", "whole number"),
        ({"question": "x", "topK": True}, "topK", "whole number"),
        ({"question": "x", "corpus": 1}, "corpus", "name"),
        ({"question": "x", "corpus": "c" * 201}, "corpus", "200"),
        ({"question": "x", "focus": "src"}, "focus", "at most 50"),
        ({"question": "x", "focus": [1]}, "focus", "at most 50"),
        ({"question": "x", "focus": ["a"] * 51}, "focus", "at most 50"),
        ({"question": "x", "focus": [""]}, "focus", "4,000"),
        ({"question": "x", "focus": ["a\0"]}, "focus", "4,000"),
        ({"question": "x", "conversation": USER}, "conversation", "at most 50"),
        ({"question": "x", "conversation": [USER] * 51}, "conversation", "at most 50"),
        ({"question": "x", "conversation": ["x"]}, "conversation", "at most 50"),
        ({"question": "x", "conversation": [{**USER, "role": "system"}]}, "conversation[0].role", '"assistant"'),
        ({"question": "x", "conversation": [USER, {"role": "user"}]}, "conversation[1].content", "missing"),
        ({"question": "x", "conversation": [{**USER, "content": 1}]}, "conversation[0].content", "16,000"),
        ({"question": "x", "page": " "}, "page", "4,000"),
    ],
)
def test_a_broken_rule_is_named_with_its_field_and_limit(data: dict[str, Any], field: str, limit: str) -> None:
    error = refusal(AskBody, data)
    assert error.field == field
    assert f"'{field}'" in str(error)
    assert limit in str(error)


@pytest.mark.parametrize(
    ("data", "field", "words"),
    [
        ({"question": "x", "topk": 3}, "topk", "Did you mean 'topK'?"),
        ({"question": "x", "top_k": 3}, "top_k", "Did you mean 'topK'?"),
        ({"Question": "x"}, "Question", "Did you mean 'question'?"),
        ({"query": "x"}, "query", "question, topK, corpus, focus, conversation, page"),
        ({"question": 1, "temperature": 1}, "temperature", "There is no field"),
        ({"question": "x", "conversation": [{**USER, "name": "n"}]}, "conversation[0].name", "role, content"),
    ],
)
def test_an_unknown_field_is_refused_by_name_with_the_nearest_right_one(
    data: dict[str, Any], field: str, words: str
) -> None:
    error = refusal(AskBody, data)
    assert error.field == field
    assert words in str(error)


def test_a_name_that_is_no_text_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="name of a field"):
        parse(AskBody, b'{"question": "x", "\\ud800": 1}')


@pytest.mark.parametrize("k", [0, 201, "8", 8.5, False, None])
def test_the_limits_of_a_search(k: object) -> None:
    error = refusal(SearchBody, {"question": "x", "k": k})
    assert (error.field, str(error)) == ("k", "'k' must be a whole number from 1 to 200.")


@pytest.mark.parametrize(
    ("data", "field"),
    [({"path": ""}, "path"), ({"path": "a\0b"}, "path"), ({"path": 1}, "path"), ({"rebuild": "true"}, "rebuild"),
     ({"rebuild": 1}, "rebuild"), ({"bodies": False}, "bodies")],
)  # fmt: skip
def test_the_body_of_a_run_is_strict(data: dict[str, Any], field: str) -> None:
    assert refusal(IndexBody, data).field == field


def test_a_number_in_a_query_is_a_text() -> None:
    assert check(SourceQuery, {"context": "0"}).context == 0
    assert check(SourceQuery, {}).context == 10
    for wrong in ("201", "-1", "1.0", "ten", ""):
        with pytest.raises(InvalidRequestError, match="whole number from 0 to 200"):
            check(SourceQuery, {"context": wrong})


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b'{"question": NaN}', b'{"question": "x", "topK": -Infinity}', b"\xff\xfe{}", b"[" * 60_000,
     b'{"question": "x", "topK": ' + b"9" * 5_000 + b"}", b'{"question": "x"} and more', b"{'question': 'x'}"],
)  # fmt: skip
def test_what_is_not_json_is_malformed(content: bytes) -> None:
    with pytest.raises(ProblemError) as caught:
        parse(AskBody, content)
    assert (caught.value.problem.status, caught.value.problem.code) == (400, "malformed_json")


@pytest.mark.parametrize("content", [b"[]", b"null", b"3", b'"question"'])
def test_a_body_is_an_object(content: bytes) -> None:
    with pytest.raises(ProblemError, match="must be a JSON object"):
        parse(AskBody, content)


def test_a_byte_order_mark_does_no_harm() -> None:
    assert parse(AskBody, b'\xef\xbb\xbf{"question": "x"}').question == "x"
