"""Extracts: which passages are quoted, how they are named, and where an answer ends."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from ragpilot.adapters.extract_markup import around, code_span, fenced, name_span
from ragpilot.adapters.extractive import LABEL, ExtractiveModel, extract
from ragpilot.citations import cited_numbers
from ragpilot.types import NOT_FOUND_ANSWER, Chunk, ContextBlock, Prompt
from tests.builders import chunk, hit
from tests.extracts import PLENTY, code, passage, prompt


def test_a_short_chunk_is_shown_whole_under_its_name_place_and_citation() -> None:
    text = "    def fill(self):\n        return self.budget"
    item = chunk("src/prompting.py", text, symbol="Prompt.fill", start=10, end=11)
    assert extract(prompt("where is the budget?", item), PLENTY) == (
        f"{LABEL}\n\n"
        "**Prompt.fill** `src/prompting.py:10-11` [1]\n\n"
        "```python\ndef fill(self):\n    return self.budget\n```"
    )


def test_passages_near_the_best_are_quoted_and_others_only_named() -> None:
    near = [chunk(f"src/a{at}.py", f"def near_{at}():\n    pass", symbol=f"near_{at}") for at in range(3)]
    far = [chunk(f"src/b{at}.py", f"def far_{at}():\n    pass", symbol=f"far_{at}") for at in range(5)]
    scores = (0.7, 0.65, 0.4, 0.64, 0.4, 0.4, 0.4, 0.4)
    answer = extract(prompt("zz", near[0], near[1], far[0], near[2], *far[1:], scores=scores), PLENTY)
    assert re.findall(r"^\*\*(\w+)\*\* .* \[(\d)\]$", answer, re.MULTILINE) == [
        ("near_0", "1"),
        ("near_1", "2"),
        ("near_2", "4"),
    ]
    assert answer.split("\n")[-1] == "Also: [3] `src/b0.py:1-2`, [5] `src/b1.py:1-2`, [6] `src/b2.py:1-2`"


def test_a_weak_first_block_is_quoted_first_all_the_same() -> None:
    items = [chunk("a.py", "one = 1", symbol="one"), chunk("b.py", "two = 2", symbol="two")]
    answer = extract(prompt("zz", *items, scores=(0.4, 0.7)), PLENTY)
    assert answer.index("**one**") < answer.index("**two**")


def test_one_block_names_no_others() -> None:
    assert "Also" not in extract(prompt("budget", chunk()), PLENTY)


def test_no_block_has_the_not_found_answer() -> None:
    assert extract(prompt("budget"), PLENTY) == NOT_FOUND_ANSWER


def test_the_answer_fits_a_screen() -> None:
    items = [
        chunk(f"src/m{at}.py", code(40, at20="    budget()").replace("step", f"step_{at}"), symbol=f"run_{at}", end=40)
        for at in range(8)
    ]
    answer = extract(prompt("budget", *items), PLENTY)
    assert 40 <= answer.count("\n") + 1 <= 52
    assert len(re.findall(r"^\*\*", answer, re.MULTILINE)) == 3


def test_overlapping_and_repeated_text_is_shown_once() -> None:
    first = chunk("src/a.py", "one = 1\ntwo = 2\nthree = 3", start=1, end=3)
    overlapping = chunk("src/a.py", "three = 3\nfour = 4", start=3, end=4)
    copied = chunk("lib/copy.py", "  one = 1\n  two = 2\n\n  three = 3", start=9, end=12)
    other = chunk("src/b.py", "five = 5", start=1, end=1)
    answer = extract(prompt("zz", first, overlapping, copied, other), PLENTY)
    assert answer.count("three = 3") == 1
    assert cited_numbers(answer) == (1, 4)


def test_parts_of_one_thing_are_joined_and_all_of_them_cited() -> None:
    def part(number: int, text: str, start: int, end: int) -> Chunk:
        item = chunk("src/a.py", text, symbol="load", start=start, end=end)
        return replace(item, title=f"load ({number}/3)")

    parts = (part(3, "    return b", 6, 6), part(1, "def load():\n    a = 1", 1, 2), part(2, "    b = a", 4, 5))
    answer = extract(prompt("zz", *parts), PLENTY)
    assert (
        "**load** `src/a.py:1-6` [1][2][3]\n\n```python\ndef load():\n    a = 1\n\n    b = a\n    return b\n```"
        in answer
    )


def test_parts_with_a_part_missing_between_them_are_not_joined() -> None:
    first = replace(chunk("src/a.py", "def load():", symbol="load", start=1, end=1), title="load (1/3)")
    last = replace(chunk("src/a.py", "    return b", symbol="load", start=4, end=4), title="load (3/3)")
    answer = extract(prompt("zz", first, last), PLENTY)
    assert "**load (1/3)** `src/a.py:1` [1]" in answer
    assert "**load (3/3)** `src/a.py:4` [2]" in answer


def test_a_block_that_was_cut_is_quoted_as_far_as_it_stands_in_the_prompt() -> None:
    item = hit(chunk(text="def run():\n    one()\n    two()\n    three()", end=4))
    cut = ContextBlock(1, item, "", 9, "def run():\n    one()", cut=True)
    answer = extract(Prompt("", (cut,), "one"), PLENTY)
    assert "one()" in answer
    assert "two()" not in answer


def test_imports_alone_are_not_worth_a_passage() -> None:
    imports = chunk("src/a.py", "from budget import (\n    fill,\n)\nimport budget", end=4)
    real = chunk("src/b.py", "limit = budget", end=1)
    answer = extract(prompt("budget", imports, real, scores=(0.7, 0.4)), PLENTY)
    assert "**`src/b.py:1`** [2]\n\n```python\nlimit = budget\n```" in answer
    assert "import budget" not in answer
    assert "Also: [1] `src/a.py:1-4`" in answer


def test_imports_are_quoted_where_there_is_nothing_else() -> None:
    assert "import budget" in extract(prompt("budget", chunk(text="import budget\n", end=1)), PLENTY)


def test_a_fence_is_longer_than_any_run_of_backticks_in_it() -> None:
    assert fenced(["a", "````", "``` x"], "text") == ["`````text", "a", "````", "``` x", "`````"]
    assert passage("x = '```'\n```").startswith("````python\n")


def test_names_and_paths_cannot_become_markup() -> None:
    assert code_span("a.py") == "`a.py`"
    assert code_span("a`b\n``") == "``` a`b `` ```"
    assert name_span("App.run_all › part (1/2)") == "**App.run_all › part (1/2)**"
    assert name_span("App.__init__") == "**`App.__init__`**"
    assert name_span("operator*") == "**`operator*`**"
    assert name_span("[1]") == "**`[1]`**"
    assert len(name_span("x" * 500)) < 100


def test_controls_are_shown_and_odd_breaks_are_breaks() -> None:
    shown = passage("a\x1b[31m = '\0'\r\nb = '\u202e\ud800'\rc = 1\u2028d = 2\v\ttab")
    assert shown == "```python\na�[31m = '�'\nb = '��'\nc = 1\nd = 2\n\ttab\n```"


def test_a_huge_line_is_cut_around_its_match() -> None:
    shown = passage("x=1;" * 2000 + "budget=6000;" + "y=2;" * 50_000).split("\n")
    assert shown[0] == "```python"
    assert "budget=6000;" in shown[1]
    assert shown[1].startswith("…")
    assert shown[1].endswith("…")
    assert len(shown[1]) <= 160
    assert around("abcdefghij", 5, 9) == "…ghij"
    assert around("abcdefghij", 5, 0) == "abcd…"
    assert around("abcde", 5, 4) == "abcde"
    line = 'data: [{"filePath": "ragpilot/prompting.py", "symbol": "enforce_budget", "score": 0.5096, "id": "…"}]'
    place = line.index("enforce_budget")
    assert around(line, 120, place) == line
    assert around(line, 80, place) == '…prompting.py", "symbol": "enforce_budget", "score": 0.5096, "id": "…"}]'
    assert around(line, 40, place) == '…symbol": "enforce_budget", "score": 0.…'
    assert around(line[:80], 70, 30).startswith('data: [{"filePath"')


@pytest.mark.parametrize("text", ["", "\n\n", "   \n\t"])
def test_an_empty_block_is_still_named(text: str) -> None:
    assert (
        extract(prompt("budget", chunk(text=text, symbol="run")), PLENTY) == f"{LABEL}\n\n**run** `src/app.py:1-2` [1]"
    )


def test_a_cut_answer_ends_at_a_line_with_its_fence_closed() -> None:
    item = chunk(text="def run():\n    one()\n    two()\n    three()", symbol="run", end=4)
    whole = extract(prompt("zz", item), PLENTY)
    for limit in range(len(LABEL), len(whole)):
        answer = extract(prompt("zz", item), limit)
        assert len(answer) <= limit
        assert answer.count("```") in (0, 2)
        assert not answer.endswith("python\n```")
    assert extract(prompt("zz", item), len(whole) - 1).endswith("    two()\n```")
    assert extract(prompt("zz", item), 1) == LABEL


SIGNS = (
    "` ``` ~~~ ```` [1] [2,3] # === --- | |---| > - * ** __ \\ /* */ <b> <script> <!-- <x ![x](y) :: ( { } def budget "
    '""" ::\n\n .. \n \n\n \r\n \t \x1b[2J \0 \ud800 \u202e'
)


signs = st.sampled_from([*SIGNS.split(" "), "    ", ".. note:: ", "# ", "def f():\n"])


texts = st.one_of(st.text(max_size=80), *(st.lists(signs, max_size=40).map(join.join) for join in ("", " ", "\n")))


kinds = st.sampled_from(
    [
        ("code-python", "a.py"),
        ("docs-markdown", "a.md"),
        ("docs-text", "a.rst"),
        ("docs-text", "a.txt"),
        ("config", "a.yml"),
    ]
)


@given(st.lists(st.tuples(texts, kinds, st.floats(0, 1)), min_size=1, max_size=5), texts, st.integers(20, 4000))
def test_whatever_the_blocks_hold(found: list[tuple[str, tuple[str, str], float]], question: str, limit: int) -> None:
    items = [
        replace(chunk(path, source_type=kind, start=9 * at + 1, end=9 * at + 5), text=text)
        for at, (text, (kind, path), _) in enumerate(found)
    ]
    asked = prompt(question, *items, scores=tuple(score for *_, score in found))
    answer = extract(asked, PLENTY)
    own_lines = [line for line in answer.split("\n") if line.startswith(("**", "Also: "))]
    tokens = MarkdownIt("gfm-like", {"linkify": False}).parse(answer)
    assert cited_numbers(answer) == cited_numbers("\n".join(own_lines))
    assert set(cited_numbers(answer)) <= set(range(1, len(items) + 1))
    assert {token.type for token in tokens if token.level == 0} <= {
        "paragraph_open",
        "inline",
        "paragraph_close",
        "fence",
        "blockquote_open",
        "blockquote_close",
    }
    assert not re.search("[\0-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\ud800-\udfff]", answer)
    assert answer.count("\n") < 56
    assert len(extract(asked, limit)) <= max(limit, len(LABEL))


@pytest.mark.asyncio
async def test_words_come_one_by_one_and_others_get_their_turn() -> None:
    asked = prompt("budget", chunk(text="def run():\n\n\treturn  budget\n", symbol="run", end=3))
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with asyncio.timeout(10):
        task = asyncio.create_task(other())
        pieces = [piece async for piece in ExtractiveModel().stream(asked, temperature=0.9, max_tokens=500)]
        task.cancel()
    assert "".join(pieces) == extract(asked, 2000)
    assert all(len(piece.split()) == 1 for piece in pieces)
    assert turns >= len(pieces) - 1


@pytest.mark.asyncio
async def test_the_model_says_that_it_extracts() -> None:
    model = ExtractiveModel()
    assert model.identity.extract
    assert "no language model" in (await model.check()).detail
