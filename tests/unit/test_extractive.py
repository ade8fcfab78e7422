from __future__ import annotations

import asyncio
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from ragpilot.adapters.extract_code import dedented
from ragpilot.adapters.extract_markup import around, code_span, fenced, gap_mark, language_of, name_span
from ragpilot.adapters.extractive import LABEL, ExtractiveModel, extract
from ragpilot.citations import cited_numbers
from ragpilot.types import NOT_FOUND_ANSWER, Chunk, ContextBlock, Prompt
from tests.builders import block, chunk, hit

PLENTY = 1_000_000


def prompt(question: str, *chunks: Chunk, scores: tuple[float, ...] = ()) -> Prompt:
    """Blocks of these chunks, in order, of equal score unless told otherwise."""
    given = scores or (0.6,) * len(chunks)
    hits = [hit(item, score=score, rank=rank) for rank, (item, score) in enumerate(zip(chunks, given, strict=True), 1)]
    return Prompt("Use the context.", tuple(block(number, item) for number, item in enumerate(hits, 1)), question)


def passage(text: str, question: str = "where is the budget", **given: object) -> str:
    """The answer from a single chunk, without label, heading and the blank lines around them."""
    lines = text.count("\n") + 1
    item = replace(chunk(symbol="run", end=lines, **given), text=text)  # type: ignore[arg-type]
    label, _, _, _, *rest = extract(prompt(question, item), PLENTY).split("\n")
    assert label == LABEL
    return "\n".join(rest)


def code(count: int, **lines: str) -> str:
    """``count`` lines of a function body; ``at3=...`` replaces the third."""
    body = ["def run(self):"] + [f"    step_{at}()" for at in range(2, count + 1)]
    for name, line in lines.items():
        body[int(name.removeprefix("at")) - 1] = line
    return "\n".join(body)


# --- the whole answer


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


# --- lines of code


def test_a_long_function_shows_signature_documentation_and_the_matching_line() -> None:
    text = code(
        40,
        at2='    """Run all steps.',
        at3="",
        at4="    Long story.",
        at5='    """',
        at30="    if spent > budget:",
        at31="        refuse()",
    )
    assert passage(text).split("\n") == [
        "```python",
        "def run(self):",
        '    """Run all steps.',
        "",
        "    Long story.",
        '    """',
        "    # …",
        "    step_27()",
        "    step_28()",
        "    step_29()",
        "    if spent > budget:",
        "        refuse()",
        "    step_32()",
        "    step_33()",
        "    step_34()",
        "    step_35()",
        "    # …",
        "```",
    ]


def test_a_long_documentation_is_shown_to_its_first_paragraph_and_closed() -> None:
    story = "\n".join(["    Story."] * 20)
    shown = passage(f'def run():\n    """Run all\n    steps.\n\n{story}\n    """\n    return budget')
    assert shown.startswith('```python\ndef run():\n    """Run all\n    steps.\n')
    assert "\n    # …\n" in shown
    assert shown.endswith('\n    """\n    return budget\n```')


def test_comments_above_a_declaration_are_its_documentation() -> None:
    lines = ["// Fill puts hits in.", "//", *[f"// Story {at}." for at in range(20)], "func Fill(hits []Hit) {"]
    shown = passage("\n".join([*lines, "\tx()", "}"]), source_type="code-go", path="a.go")
    assert "// Fill puts hits in." in shown
    assert "func Fill(hits []Hit) {" in shown
    assert "// …" in shown


def test_a_match_brings_the_lines_that_enclose_it() -> None:
    lines = [f"step_{at}()" for at in range(20)]
    lines += [
        "for hit in hits:",
        "    a()",
        "    b()",
        "    if hit:",
        "        c()",
        "        d()",
        "        use(budget)",
    ]
    shown = passage("\n".join([*lines, *["        e()"] * 9]))
    for expected in ("for hit in hits:", "    if hit:", "        use(budget)"):
        assert expected in shown.split("\n")


def test_a_later_part_has_no_signature_to_show() -> None:
    lines = [f"    step_{at}()" for at in range(40)] + ["    budget()"]
    item = replace(chunk(text="\n".join(lines), symbol="run", end=41), title="run (2/3)")
    shown = extract(prompt("budget", item), PLENTY).split("\n")
    assert shown[4:6] == ["```python", "# …"]
    assert shown[-2:] == ["budget()", "```"]


def test_the_rare_word_of_a_question_counts_more() -> None:
    many = [f"    token_{at} = token" for at in range(20)]
    text = "\n".join(["def run():", *many, "    budget = 6000", *many])
    assert "    budget = 6000" in passage(text, "where is the token budget")


def test_shared_indentation_goes_and_the_rest_stays() -> None:
    assert dedented(["\t\tif x:", "", "\t\t\ty()", "  \t"]) == ["if x:", "", "\ty()", ""]
    assert dedented(["    a", "\tb"]) == ["    a", "\tb"]
    assert dedented(["", "  "]) == ["", ""]
    assert dedented(["a", "  b"]) == ["a", "  b"]


@pytest.mark.parametrize(
    ("source_type", "path", "language", "mark"),
    [
        ("code-python", "a.py", "python", "# …"),
        ("code-typescript", "a.tsx", "tsx", "// …"),
        ("code-csharp", "a.cs", "csharp", "// …"),
        ("code-lua", "a.lua", "lua", "-- …"),
        ("code-visualbasic", "a.vb", "vbnet", "' …"),
        ("code-odd name", "a.x", "odd name", "// …"),
        ("config", "a.yml", "yaml", "# …"),
        ("config", "deploy/Dockerfile", "dockerfile", "# …"),
        ("config", "CODEOWNERS", "text", "…"),
        ("data-schema", "a.sql", "sql", "-- …"),
        ("api-spec", "a.yaml", "text", "…"),
        ("template", "a.html", "html", "<!-- … -->"),
        ("style", "a.css", "css", "/* … */"),
        ("docs-text", "a.txt", "text", "…"),
        ("notebook", "a.ipynb", "text", "…"),
        ("", "a", "text", "…"),
    ],
)
def test_a_fence_is_labelled_and_a_gap_is_a_comment_in_its_language(
    source_type: str, path: str, language: str, mark: str
) -> None:
    assert language_of(chunk(path, source_type=source_type)) == language
    assert gap_mark(language) == mark


# --- text that could break out


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


@pytest.mark.parametrize("text", ["", "\n\n", "   \n\t"])
def test_an_empty_block_is_still_named(text: str) -> None:
    assert (
        extract(prompt("budget", chunk(text=text, symbol="run")), PLENTY) == f"{LABEL}\n\n**run** `src/app.py:1-2` [1]"
    )


# --- prose


def docs(text: str, question: str = "where is the budget", title: str = "Guide") -> str:
    item = replace(chunk("docs/guide.md", text, source_type="docs-markdown", end=text.count("\n") + 1), title=title)
    return extract(prompt(question, item), PLENTY).split("\n", 4)[4]


def test_markdown_is_quoted_with_its_code_in_fences_of_its_own() -> None:
    text = "# Guide\n\nThe budget is *fixed*.\nReally.\n\n## Example\n\n```toml\nbudget = [1]\n```\n\nDone."
    assert docs(text) == (
        "> The budget is *fixed*.\n> Really.\n>\n> **Example**\n\n```toml\nbudget = [1]\n```\n\n> Done."
    )


def test_of_long_markdown_the_paragraphs_that_match_are_quoted_with_their_heading() -> None:
    filler = "\n\n".join(f"Paragraph {at} of nothing." for at in range(20))
    shown = docs(f"{filler}\n\n## Limits\n\nThe budget is 6000 tokens.\n\n{filler}")
    assert "> **Limits**\n>\n> The budget is 6000 tokens." in shown
    assert shown.startswith("> …\n>\n> **Limits**")
    assert shown.endswith("> …")
    assert shown.count("\n") < 18


def test_an_underlined_heading_does_not_become_one_in_the_answer() -> None:
    assert docs("Intro.\n\nLimits\n------\n\nNone.") == "> Intro.\n>\n> **Limits**\n>\n> None."


def test_what_a_terminal_cannot_show_is_left_out_of_prose() -> None:
    text = (
        "[![build](https://ci/x.svg)](https://ci)\n![logo](logo.png)\n<p align='center'>\n\n"
        "See [the guide](guide.md), [the site](https://example.org) and a <b>bold</b> List<String>, 1 <2.\n"
        "<script>alert(1)</script> `<kept>`\n\n[ref]: https://example.org"
    )
    assert docs(text) == (
        "> logo\n>\n> See the guide, [the site](https://example.org) and a bold List, 1 <2.\n> alert(1) `<kept>`"
    )


def test_numbers_in_prose_are_no_citations() -> None:
    text = "As [1] and [2, 3] say, `[4]` [5](https://example.org).\n\n    at = [6]\n\n| a | b |\n|---|---|\n| [7] | x |"
    answer = extract(prompt("zz", chunk("a.md", text, source_type="docs-markdown", end=7)), PLENTY)
    assert "As \\[1\\] and \\[2, 3\\] say" in answer
    assert cited_numbers(answer) == (1,)


def test_a_long_table_keeps_its_head_and_its_best_rows() -> None:
    rows = "\n".join(f"| key_{at} | value |" for at in range(30))
    shown = docs(f"| key | meaning |\n|---|---|\n{rows}\n| budget | tokens |\n{rows}").split("\n")
    assert shown[:2] == ["> | key | meaning |", "> |---|---|"]
    assert "> | budget | tokens |" in shown
    assert shown[-1] == "> | … |"
    assert len(shown) < 12


def test_rows_of_a_table_without_its_head_are_shown_as_they_are() -> None:
    assert docs("| a | b |\n| c | d |") == "```text\n| a | b |\n| c | d |\n```"


def test_a_later_part_that_begins_within_a_fence_is_read_so() -> None:
    shown = docs("x = [1]\n```\n\nProse.\n\n```python\ny = 2\n```", title="Guide (2/3)")
    assert shown == "```text\nx = [1]\n```\n\n> Prose.\n\n```python\ny = 2\n```"


def test_a_fence_that_never_ends_ends_with_the_passage() -> None:
    assert docs("Prose.\n\n```python\ny = 2") == "> Prose.\n\n```python\ny = 2\n```"


def test_front_matter_is_not_quoted() -> None:
    assert docs("---\ntitle: Guide\n---\n\nProse.").endswith("> Prose.")


def rst(text: str) -> str:
    item = replace(chunk("docs/proxy.rst", text, source_type="docs-text", end=20), title="proxy.rst")
    label, _, place, _, *rest = extract(prompt("nginx", item), PLENTY).split("\n")
    assert (label, place) == (LABEL, "**`docs/proxy.rst:1-20`** [1]")
    return "\n".join(rest)


def test_restructuredtext_reads_like_markdown() -> None:
    text = (
        "Behind Nginx\n============\n\n.. _proxy:\n\nUse :class:`~werkzeug.ProxyFix` of `Werkzeug <https://w.org>`_\n"
        "with ``x_for=1``. Like this::\n\n    app = [1]\n\n.. code-block:: python\n    :caption: x\n\n    fix(app)\n"
    )
    assert rst(text) == (
        "> **Behind Nginx**\n>\n> Use `werkzeug.ProxyFix` of Werkzeug\n> with `x_for=1`. Like this:\n\n"
        "```text\napp = [1]\n```\n\n```python\nfix(app)\n```"
    )


def test_directives_and_lists_of_restructuredtext() -> None:
    text = (
        ".. note:: Only once.\n\n.. image:: a.png\n   :alt: x\n\n"
        ".. tabs::\n\n   .. group-tab:: Bash\n\n      Run it.\n\n* one\n* two\n  more"
    )
    assert rst(text) == "> **note** Only once.\n>\n> **Bash**\n>\n> Run it.\n>\n> * one\n> * two\n>   more"


def test_restructuredtext_that_begins_within_code_is_read_so() -> None:
    assert rst("    $ run [1]\n\n    done\n\nThen stop.") == "```text\n$ run [1]\n\ndone\n```\n\n> Then stop."


def test_plain_text_stands_in_a_fence() -> None:
    item = chunk("NOTES.txt", "One [1].\n\nTwo.", source_type="docs-text", end=3)
    assert extract(prompt("zz", item), PLENTY).endswith("```text\nOne [1].\n\nTwo.\n```")


# --- the limit


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


# --- any text


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


# --- streaming


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
