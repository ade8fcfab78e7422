from __future__ import annotations

from dataclasses import replace

import pytest

from ragpilot.naming import Asked, defines, names_of
from ragpilot.ranking import collapse, fuse, is_example, is_history, is_test, rank, spread
from ragpilot.routing import is_symbol, named_files, named_symbols, plan
from ragpilot.types import Candidate, Chunk
from tests.builders import chunk


def candidate(item: Chunk, cosine: float | None = 0.5, lexical: float = 1.0) -> Candidate:
    return Candidate(item, header_score=None, body_score=cosine, lexical_score=lexical)


def order(question: str, *candidates: Candidate, focus: tuple[str, ...] = ()) -> list[str]:
    asked = Asked.of(
        question,
        symbols=named_symbols(question),
        bare_symbol=is_symbol(question),
        files=named_files(question),
        focus=focus,
    )
    retrieval_plan = plan(question, top_k=None, default_k=8, source_types=frozenset())
    # Scores are scaled between the best and the worst of a question, and a real one has a long tail.
    tail = Candidate(chunk("tail.css", "unrelated"), None, 0.05, 0.0)
    ranked = rank([*candidates, tail], asked, retrieval_plan)
    return [item.candidate.chunk.path for item in ranked if item.candidate is not tail]


def test_fusion_weighs_scaled_cosine_and_scaled_lexical_score() -> None:
    ranked = fuse(
        [candidate(chunk("a"), 0.8, 0.0), candidate(chunk("b"), 0.4, 10.0), candidate(chunk("c"), 0.6, 5.0)],
        dense_share=0.6,
    )
    assert {item.candidate.chunk.path: round(item.fused, 6) for item in ranked} == {"a": 0.6, "b": 0.4, "c": 0.5}


def test_a_cosine_is_the_larger_of_header_and_body() -> None:
    assert Candidate(chunk(), 0.3, 0.7, 0.0).cosine == 0.7
    assert Candidate(chunk(), 0.9, None, 0.0).cosine == 0.9
    assert Candidate(chunk(), None, None, 3.0).cosine is None


def test_candidates_without_any_vector_are_not_ranked() -> None:
    assert fuse([candidate(chunk(), None)], dense_share=0.6) == []


def test_the_definition_of_a_named_symbol_leads() -> None:
    user = candidate(chunk("user.py", "Depends() Depends()", symbol="use"), 0.6, 6.0)
    definition = candidate(chunk("params.py", "class Depends: ...", symbol="Depends"), 0.5, 4.0)
    assert order("Depends", user, definition)[0] == "params.py"
    assert order("what does `Depends` do", user, definition)[0] == "params.py"


def test_a_qualified_name_finds_its_definition_and_not_its_namesake() -> None:
    stack = candidate(chunk("stack.go", symbol="Stack.Push"), 0.5)
    queue = candidate(chunk("queue.go", symbol="Queue.Push"), 0.5)
    assert order("Stack.Push", queue, stack)[0] == "stack.go"


def test_tests_and_examples_step_back_unless_asked_for() -> None:
    source = candidate(chunk("src/cart.py"), 0.5)
    test = candidate(chunk("tests/test_cart.py"), 0.55)
    example = candidate(chunk("examples/cart.py"), 0.54)
    assert order("shopping cart total", source, test, example)[0] == "src/cart.py"
    assert order("test of the shopping total", source, test)[0] == "tests/test_cart.py"


def test_lists_of_changes_step_back_unless_asked_for() -> None:
    source = candidate(chunk("src/sessions.py"), 0.5)
    history = candidate(chunk("HISTORY.md", source_type="docs-markdown"), 0.55)
    assert order("where are redirects followed", source, history)[0] == "src/sessions.py"
    for question in (
        "what changed for redirects",
        "which version follows redirects",
        "redirects in the latest release",
    ):
        assert order(question, source, history)[0] == "HISTORY.md"


@pytest.mark.parametrize(
    "path", ["CHANGES.rst", "docs/changelog.md", "changelogs/1.2.yml", "NEWS", "Release-Notes.txt"]
)
def test_paths_of_lists_of_changes(path: str) -> None:
    assert is_history(path)


@pytest.mark.parametrize(
    "path", ["src/history.py", "web/news/views.py", "changelog_parser.py", "docs/history-of-art.md"]
)
def test_paths_that_only_sound_like_lists_of_changes(path: str) -> None:
    assert not is_history(path)


def lines_of(path: str, *given: tuple[int, float, str | None]) -> list[Candidate]:
    return [
        candidate(chunk(path, f"row {at}", start=at, end=at, symbol=symbol), cosine) for at, cosine, symbol in given
    ]


def firsts(question: str, *candidates: Candidate) -> list[int]:
    asked = Asked.of(question, symbols=(), bare_symbol=False)
    retrieval_plan = plan(question, top_k=None, default_k=8, source_types=frozenset())
    tail = Candidate(chunk("tail.css", "unrelated"), None, 0.05, 0.0)
    ranked = rank([*candidates, tail], asked, retrieval_plan)
    return [item.candidate.chunk.start_line for item in ranked if item.candidate is not tail]


def test_a_file_is_shown_by_what_it_declares_before_what_it_begins_with() -> None:
    declared = lines_of("src/compress.go", (1, 0.8, None), (29, 0.7, "Compress"), (90, 0.6, "Encoder"))
    assert firsts("compress middleware", *declared) == [29, 1, 90]
    # Unless nothing that it declares comes near, or what leads stands among the declarations.
    assert firsts("compress middleware", *lines_of("src/compress.go", (1, 0.8, None), (29, 0.2, "Compress")))[0] == 1
    assert firsts("levels", *lines_of("src/compress.go", (10, 0.5, "Compress"), (29, 0.8, None)))[0] == 29
    assert firsts("compress", *lines_of("src/compress.go", (1, 0.8, None)), *lines_of("a.go", (3, 0.7, "A")))[0] == 1


def test_the_file_that_bears_the_name_and_the_file_that_is_named() -> None:
    other = candidate(chunk("src/misc.py", start=1), 0.5)
    named = candidate(chunk("src/retry_policy.py"), 0.49)
    assert order("retry policy", other, named)[0] == "src/retry_policy.py"
    assert order("what is in src/misc.py about retry policy", other, named)[0] == "src/misc.py"


def test_several_good_chunks_of_a_file_raise_its_best_one() -> None:
    alone = candidate(chunk("alone.py"), 0.60)
    together = [candidate(chunk("together.py", f"part {n}", start=n, end=n), 0.59 - n / 100) for n in range(4)]
    low = candidate(chunk("low.py"), 0.2)
    assert order("something", alone, *together, low)[0] == "together.py"


def test_focus_raises_and_hides_nothing() -> None:
    near = candidate(chunk("a/near.py"), 0.6)
    focused = candidate(chunk("b/focused.py"), 0.55)
    found = order("something", near, focused, focus=("b",))
    assert found == ["b/focused.py", "a/near.py"]


def test_order_does_not_depend_on_the_order_of_arrival() -> None:
    candidates = [candidate(chunk(f"{name}.py"), 0.5, 1.0) for name in "cabd"]
    assert order("x", *candidates) == order("x", *reversed(candidates)) == ["a.py", "b.py", "c.py", "d.py"]


def ranked_of(*chunks: Chunk) -> list[object]:
    retrieval_plan = plan("something else", top_k=None, default_k=8, source_types=frozenset())
    asked = Asked.of("something else", symbols=(), bare_symbol=False)
    return list(rank([candidate(item, 0.9 - n / 100) for n, item in enumerate(chunks)], asked, retrieval_plan))


def test_near_duplicates_collapse_into_the_best_which_names_them() -> None:
    text = "def pay(order): total = sum(order.lines) ; return charge(total, order.card)"
    first, copy, other = chunk("a.py", text), chunk("b.py", text + " "), chunk("c.py", "quite another text here")
    kept = collapse(ranked_of(first, copy, other), most=8)  # type: ignore[arg-type]
    assert [item.candidate.chunk.path for item in kept] == ["a.py", "c.py"]
    assert kept[0].also_at == ["b.py:1-2"]


def test_a_document_gives_a_few_hits_until_others_run_out() -> None:
    own = [chunk("big.py", f"unique words number {n} {n * 7} x{n}", start=n, end=n) for n in range(6)]
    other = chunk("small.py", "something else entirely")
    ranked = ranked_of(*own, other)
    paths = [item.candidate.chunk.path for item in spread(ranked, per_document=2, k=3)]  # type: ignore[arg-type]
    assert sorted(paths) == ["big.py", "big.py", "small.py"]
    filled = spread(ranked, per_document=2, k=7)  # type: ignore[arg-type]
    assert len(filled) == 7


@pytest.mark.parametrize(
    "path",
    [
        "tests/a.py",
        "src/test_a.py",
        "a_test.go",
        "web/cart.spec.ts",
        "CartTest.java",
        "spec/cart_spec.rb",
        "x/conftest.py",
    ],
)
def test_paths_of_tests(path: str) -> None:
    assert is_test(path)


@pytest.mark.parametrize(
    "path", ["src/contest.py", "latest/a.py", "attestation.go", "testimony/views.py", "spectrum.c"]
)
def test_paths_that_only_sound_like_tests(path: str) -> None:
    assert not is_test(path)


def test_paths_of_examples() -> None:
    assert is_example("examples/app.py")
    assert not is_example("src/example_loader.py")


def test_lines_that_a_question_names_lead() -> None:
    asked = Asked.of(
        "src/app.py:30-35", symbols=(), bare_symbol=False, files=("src/app.py",), lines=(("src/app.py", 30, 35),)
    )
    pieces = [replace(chunk("src/app.py", f"part {at}"), start_line=at, end_line=at + 9) for at in (1, 11, 21, 31)]
    other = replace(chunk("lib/app.py", "part 31"), start_line=31, end_line=40)
    ranked = rank(
        [candidate(piece) for piece in (*pieces, other)],
        asked,
        plan("x", top_k=None, default_k=8, source_types=frozenset()),
    )
    leading = {(item.candidate.chunk.path, item.candidate.chunk.start_line) for item in ranked[:2]}
    assert leading == {("src/app.py", 21), ("src/app.py", 31)}


@pytest.mark.parametrize(
    ("named", "path", "right"),
    [
        ("readme", "README.md", True),
        ("README", "docs/README.rst", True),
        ("readme", "src/readme_tool.py", False),
        ("README.md", "docs/readme.md", True),
        ("docs/README.md", "README.md", False),
        ("app.py", "src/app.py", True),
        ("src/app.py", "lib/src/app.py", True),
    ],
)
def test_a_file_is_named_by_its_name_its_path_or_its_stem(named: str, path: str, right: bool) -> None:
    asked = Asked.of("x", symbols=(), bare_symbol=False, files=(named,))
    assert names_of(chunk(path), asked) == ([named] if right else [])


@pytest.mark.parametrize(
    ("named", "right"),
    [
        ("MAX_RETRIES", True),
        ("max_retries", True),
        ("queue_push", True),
        ("Paid", True),
        ("load", False),  # called, not defined
        ("RETRIES", False),
        ("settings.MAX_RETRIES", False),
    ],
)
def test_a_name_at_the_head_of_a_row_is_defined_by_the_chunk_that_several_share(named: str, right: bool) -> None:
    text = "HOST = load('x')\nexport const MAX_RETRIES: number = 3;\nint queue_push(int a);\n    Paid,\n"
    shared = replace(chunk("config.py", text), symbol=None, title="HOST, MAX_RETRIES, queue_push, …")

    assert bool(defines(shared, named)) is right
    assert not defines(replace(shared, title="HOST"), named)


def test_a_shared_name_is_defined_within_its_scope_alone() -> None:
    fields = replace(chunk("cart.ts", "  size = 1;\n  limit = 2;\n"), symbol="shop.Cart", title="shop.Cart.size, limit")

    assert names_of(fields, Asked.of("x", symbols=("Cart.limit",), bare_symbol=True)) == ["Cart.limit"]
    assert names_of(fields, Asked.of("x", symbols=("Basket.limit",), bare_symbol=True)) == []
