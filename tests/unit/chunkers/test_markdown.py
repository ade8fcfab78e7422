from __future__ import annotations

import textwrap

from ragpilot.ingest.chunkers import Span
from tests.unit.chunkers.soundness import sound_spans


def spans_of(text: str, path: str = "docs/guide.md", max_chars: int = 1000) -> list[Span]:
    return sound_spans(path, textwrap.dedent(text), "docs-markdown", max_chars=max_chars)


def sections(text: str) -> list[tuple[str, int, int]]:
    return [(span.title, span.start_line, span.end_line) for span in spans_of(text)]


def test_breadcrumbs_follow_the_levels_of_both_kinds_of_headings() -> None:
    text = """\
    Words above every heading.

    Guide
    =====

    The guide to everything here.

    Install
    -------

    Install it with the installer.

    ### Linux ###

    On Linux, use the package manager.

    ## Use `it` [now](https://example.org)

    Use it as you like it best.
    """

    assert sections(text) == [
        ("guide.md", 1, 1),
        ("Guide", 3, 6),
        ("Guide › Install", 8, 11),
        ("Guide › Install › Linux", 13, 15),
        ("Guide › Use it now", 17, 19),
    ]


def test_a_header_holds_path_headings_and_first_sentence() -> None:
    spans = spans_of("# Install\n\nRun *the* `installer` once. Then restart.\n", "docs/en/getting-started.md")

    assert spans[0].header == "docs en getting started: install. Run the installer once"


def test_hashes_in_fences_comments_and_indented_code_are_no_headings() -> None:
    text = """\
    # Example

    ```python
    # a comment in code
    print("x")
    ```

    ~~~sh
    ## not a heading
    ~~~

    # Next

    ````md
    ```
    # not a heading either
    ```
    ````

    ## Steps

    - first of all do this

       ```sh
       # in an item
       ```

        # indented code

    #NoSpace

    <!--
    # in a comment
    -->

    ## Last

    ```unterminated
    # swallowed by the fence
    """

    assert sections(text) == [
        ("Example", 1, 10),
        ("Next", 12, 18),
        ("Next › Steps", 20, 34),
        ("Next › Last", 36, 39),
    ]


def test_front_matter_is_no_heading_but_stays() -> None:
    text = "---\ntitle: Guide to it\nauthor: somebody else\n---\n# Guide\n\nText that says something.\n"

    assert sections(text) == [("guide.md", 1, 4), ("Guide", 5, 7)]


def test_a_rule_or_a_table_is_no_underlined_heading() -> None:
    text = "# A\n\nSome words of text here.\n\n---\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n- item\n---\n"

    assert [title for title, _, _ in sections(text)] == ["A"]


def test_a_heading_with_nothing_below_goes_with_its_first_section() -> None:
    text = (
        "# Guide\n\n## Install\n\nInstall it with the installer.\n\n## Use\n\n## Remove\n\nRemove it again when done.\n"
    )

    assert sections(text) == [("Guide › Install", 1, 5), ("Guide › Use, Remove", 7, 11)]


def test_long_sections_are_cut_at_paragraphs_and_numbered() -> None:
    paragraph = "A sentence of about fifty characters, more or less. " * 6
    text = "# Long\n\n" + "\n\n".join(paragraph + str(number) for number in range(9)) + "\n"

    spans = spans_of(text)

    assert [span.title for span in spans] == ["Long (1/3)", "Long (2/3)", "Long (3/3)"]
    assert all(span.text.startswith(("# Long", "A sentence")) for span in spans)


def test_a_fence_or_a_table_that_fits_is_not_cut() -> None:
    filler = "Some words that fill the space above what follows here.\n" * 9
    code = "```sh\n" + "".join(f"make target-{number}\n\n" for number in range(25)) + "```\n"
    table = "| name | what |\n|---|---|\n" + "".join(f"| row {number} | words |\n" for number in range(30))
    for block in (code, table):
        spans = spans_of(f"# T\n\n{filler}\n{block}\n{filler}")
        assert any(block.strip() in span.text for span in spans)


def test_a_fence_inside_an_indented_list_item_is_one_block() -> None:
    text = "# T\n\n1. Do it:\n\n    ```sh\n# at the margin\n    ```\n\nMore words at the end.\n"

    assert [title for title, _, _ in sections(text)] == ["T"]
