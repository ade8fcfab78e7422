from __future__ import annotations

import pytest

from ragpilot.citations import citation_line, cited_numbers, mark_cited, sources_of
from tests.builders import block, chunk, hit


@pytest.mark.parametrize(
    ("answer", "numbers"),
    [
        ("It is [1].", (1,)),
        ("Both [2][1] agree.", (1, 2)),
        ("See [1, 3] and [5-7].", (1, 3, 5, 6, 7)),
        ("`items[0]` is code, [2] is not.", (2,)),
        ("```\nrows[3] = [4]\n```\nas in [1]", (1,)),
        ("~~~\n[9]\n", ()),
        ("a [link](http://x) and [1](http://y)", ()),
        ("items[2] outside of code", ()),
        ("[x] done, [ ] open", ()),
        ("[99] and [0]", (0, 99)),
        ("", ()),
    ],
)
def test_numbers_that_an_answer_cites(answer: str, numbers: tuple[int, ...]) -> None:
    assert cited_numbers(answer) == numbers


def test_a_citation_line_holds_path_lines_and_symbol() -> None:
    assert citation_line("src/app.py", 10, 42, "App.run") == "src/app.py:10-42 (App.run)"
    assert citation_line("src/app.py", 7, 7) == "src/app.py:7"


def test_sources_follow_the_blocks_and_carry_the_cosine_to_four_places() -> None:
    blocks = [block(1, hit(chunk("a.py", symbol="A", start=3, end=9), score=0.712345)), block(2, hit(chunk("b.py")))]
    sources = sources_of(blocks, stale=frozenset({blocks[1].hit.chunk.id}))
    assert [source.file_path for source in sources] == ["a.py", "b.py"]
    assert sources[0].score == 0.7123
    assert sources[0].citation == "a.py:3-9 (A)"
    assert [source.stale for source in sources] == [False, True]


def test_cited_sources_are_marked_and_unknown_numbers_reported() -> None:
    sources = sources_of([block(n, hit(chunk(f"{n}.py"))) for n in (1, 2, 3)])
    marked, unsupported = mark_cited(sources, "As [1] and [7] say, but [99] not; [0] neither. [3]")
    assert [source.cited for source in marked] == [True, False, True]
    assert unsupported == (0, 7, 99)
