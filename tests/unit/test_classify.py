from __future__ import annotations

import pytest

from ragpilot.classify import SourceTypeClassifier


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("which endpoint deletes an order?", {"api-spec"}),
        ("What does the API return for a missing user?", {"api-spec"}),
        ("list every route of the billing service", {"api-spec"}),
        ("who calls GET /orders/{id}", {"api-spec"}),
        ("where is the cart component?", {"code-typescript", "template"}),
        ("which template shows the login form?", {"code-typescript", "template"}),
        ("what colour has the primary button in css", {"style", "code-typescript", "template"}),
        ("columns of the invoice table in sql", {"data-schema"}),
        ("which environment variable sets the timeout", {"config"}),
        ("how is docker compose set up", {"config"}),
        ("installation guide", {"docs-markdown", "docs-text"}),
        ("what does the readme say about licences", {"docs-markdown", "docs-text"}),
        ("jupyter notebook that trains the model", {"notebook"}),
        ("python function that parses dates", {"code-python"}),
        ("the C# order handler", {"code-csharp"}),
        ("c++ allocator", {"code-cpp"}),
        ("how are goroutines stopped", {"code-go"}),
        ("Dockerfile of the worker", {"config"}),
    ],
)
def test_obvious_words_imply_their_source_types(question: str, expected: set[str]) -> None:
    assert SourceTypeClassifier().classify(question) == expected


@pytest.mark.parametrize(
    "question",
    [
        "where is the context budget enforced?",
        "who repairs the bicycle",
        "rapid therapist",
        "src/api/routes.py",
        "",
        "going rusty",
    ],
)
def test_words_inside_words_and_paths_imply_nothing(question: str) -> None:
    assert SourceTypeClassifier().classify(question) == frozenset()


def test_case_does_not_matter() -> None:
    classifier = SourceTypeClassifier()
    assert classifier.classify("ENDPOINT") == classifier.classify("endpoint") == {"api-spec"}
