from __future__ import annotations

import pytest

from ragpilot import routing
from ragpilot.routing import Intent, classify_intent, is_symbol, named_files, named_lines, named_symbols, plan


@pytest.mark.parametrize(
    ("question", "intent"),
    [
        ("hi", Intent.SMALL_TALK),
        ("Hello there!", Intent.SMALL_TALK),
        ("thanks a lot", Intent.SMALL_TALK),
        ("how are you?", Intent.SMALL_TALK),
        ("who are you", Intent.SMALL_TALK),
        ("?!…", Intent.SMALL_TALK),
        ("please tell me your age", Intent.SMALL_TALK),
        ("so, what is your first name?", Intent.SMALL_TALK),
        ("what is your retry policy name", Intent.DEFINITION),
        ("hello world program in main", Intent.GENERAL),
        ("thanks page component", Intent.GENERAL),
        ("APIRouter", Intent.SYMBOL),
        ("Stack.Push", Intent.SYMBOL),
        ("serde::de::Visitor", Intent.SYMBOL),
        ("_get_server_data_file_path", Intent.SYMBOL),
        ('where does "connection refused by peer" come from', Intent.EXACT_QUOTE),
        ('Where is the "current_app" proxy defined?', Intent.DEFINITION),
        ("what is the difference between a chunk and a document", Intent.COMPARISON),
        ("Token vs Done", Intent.COMPARISON),
        ("What is a floor?", Intent.DEFINITION),
        ("what happens when the store dies", Intent.RESEARCH),
        ("how does retrieval work", Intent.RESEARCH),
        ("why is there a gate", Intent.RESEARCH),
        ("how do I install ragpilot", Intent.TOPIC_GUIDE),
        ("getting started tutorial", Intent.TOPIC_GUIDE),
        ("what stands in src/app/main.py", Intent.ONE_DOCUMENT),
        ("request validation and error handling", Intent.GENERAL),
    ],
)
def test_the_kind_of_a_question(question: str, intent: Intent) -> None:
    assert classify_intent(question) is intent


def test_top_k_of_the_request_wins_over_every_plan() -> None:
    for question in ('"connection refused by peer"', "APIRouter", "how does it work"):
        assert plan(question, top_k=17, default_k=8, source_types=frozenset()).k == 17


def test_without_top_k_the_default_holds_and_a_quote_needs_fewer() -> None:
    assert plan("how does it work", top_k=None, default_k=8, source_types=frozenset()).k == 8
    assert plan('"connection refused by peer"', top_k=None, default_k=8, source_types=frozenset()).k == 5
    assert plan('"connection refused by peer"', top_k=None, default_k=3, source_types=frozenset()).k == 3


def test_guides_prefer_prose_and_definitions_are_strict() -> None:
    assert plan("installation guide", top_k=None, default_k=8, source_types=frozenset()).document_prior > 0
    assert plan("what is a floor", top_k=None, default_k=8, source_types=frozenset()).strictness == "strict"


def test_source_types_are_carried_into_the_plan() -> None:
    types = frozenset({"api-spec"})
    assert plan("endpoint", top_k=None, default_k=8, source_types=types).source_types == types


def test_symbols_that_prose_names() -> None:
    assert named_symbols("what does `build_prompt` do with Stack.Push and getHTTPCode()?") == (
        "build_prompt",
        "Stack.Push",
        "getHTTPCode",
    )
    assert named_symbols('where is the "route" decorator') == ("route",)
    assert named_symbols("how are routes registered") == ()


def test_a_bare_word_is_a_symbol_and_a_sentence_is_none() -> None:
    assert is_symbol("Depends")
    assert is_symbol("`build_prompt()`")
    assert not is_symbol("where is it")
    assert not is_symbol("a b")
    for word in ("why?", "How", "really?", "yes"):
        assert not is_symbol(word)


def test_files_that_a_question_names() -> None:
    assert named_files("what do README.md and the changelog say about go.mod?") == ("README.md", "changelog", "go.mod")
    assert named_files("does gin.H differ from c.JSON in a LICENSE? not for a driver's license") == ("LICENSE",)
    assert named_files("compare server/app.py with config.toml, please") == ("server/app.py", "config.toml")
    assert named_files("see https://example.org/page") == ()


def test_places_that_a_question_names() -> None:
    assert named_lines("what happens at src/app.py:1074-1087 and b.go:L7?") == (
        ("src/app.py", 1074, 1087),
        ("b.go", 7, 7),
    )
    assert named_lines("src/app.py at 10:30") == ()


@pytest.mark.parametrize(
    ("question", "phrase"),
    [
        ("what raises 'Could not import'?", "Could not import"),
        ('what raises "Could not import"?', "Could not import"),
        ("what raises `Could not import`?", "Could not import"),
        ("what raises \u2018Could not import\u2019?", "Could not import"),
        ("why do I get the error unknown type?", "unknown type"),
        ("who says key pair missing", "key pair missing"),
        ("pomegranate exhausted", "pomegranate exhausted"),
        ("where is frobnicate called?", "frobnicate"),
    ],
)
def test_a_message_that_a_question_asks_for(question: str, phrase: str) -> None:
    assert phrase in routing.named_phrases(question)


def test_an_apostrophe_quotes_nothing() -> None:
    assert routing.classify_intent("what's the user's and the group's name?") is not Intent.EXACT_QUOTE
    assert routing.named_symbols("don't they've 'x'?") == ("x",)


def test_operations_that_a_question_names() -> None:
    assert routing.named_symbols("what does GET /orders/{id} do?") == ("GET /orders/{id}",)
    assert routing.named_symbols("get the /orders") == ()
