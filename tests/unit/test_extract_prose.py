"""Markdown, reStructuredText and plain text in extracts."""

from __future__ import annotations

from dataclasses import replace

from ragpilot.adapters.extractive import LABEL, extract
from ragpilot.citations import cited_numbers
from tests.builders import chunk
from tests.extracts import PLENTY, prompt


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
