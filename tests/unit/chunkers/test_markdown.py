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


def test_a_long_table_has_its_head_on_every_piece() -> None:
    head = "| Setting | Meaning |\n|---|---|"
    rows = [f"| `key.{number}` | what the setting number {number} means to a reader |" for number in range(40)]
    text = "# Settings\n\nAll of them.\n\n" + head + "\n" + "\n".join(rows) + "\n\nThe end.\n"

    first, *others = sound_spans("docs/a.md", text, "docs-markdown", max_chars=600)

    assert first.text.startswith("# Settings\n\nAll of them.\n\n" + head + "\n| `key.0` |")
    assert len(others) > 3
    assert all(span.text.startswith(head + "\n| `key.") for span in others)
    assert others[0].start_line == first.end_line + 1
    assert others[-1].text.endswith("The end.")
    assert all(sum(row in span.text for span in (first, *others)) == 1 for row in rows)


def test_a_head_that_would_fill_a_piece_is_not_repeated() -> None:
    head = "| " + " | ".join(f"column number {number}" for number in range(12)) + " |\n|" + "---|" * 12
    text = head + "\n" + "\n".join("| " + " | ".join("cell" for _ in range(12)) + " |" for _ in range(20))

    spans = sound_spans("docs/a.md", text, "docs-markdown", max_chars=400)

    assert sum("column number 3" in span.text for span in spans) == 1


def test_a_heading_is_never_alone_where_something_stands_below_it() -> None:
    long = "\n\n".join(f"Paragraph {number} says something of its own. " * 4 for number in range(12))
    text = f"# Guide\n\n## New in this version\n\n{long}\n\n## Next\n\n```\n{long}\n```\n"

    spans = sound_spans("docs/a.md", text, "docs-markdown", max_chars=500)

    assert spans[0].text.startswith("# Guide\n\n## New in this version\n\nParagraph 0")
    assert spans[0].title.startswith("Guide › New in this version (1/")
    assert any(span.text.startswith("## Next\n\n```\nParagraph 0") for span in spans)


def test_a_rule_at_the_end_is_no_piece_of_its_own() -> None:
    text = "# A\n\n" + "\n\n".join("words " * 30 for _ in range(5)) + "\n\n---\n\n# B\n\nmore words below it\n"

    spans = sound_spans("docs/a.md", text, "docs-markdown", max_chars=400)

    assert not any(span.text.strip() == "---" for span in spans)


def test_a_fence_inside_an_indented_list_item_is_one_block() -> None:
    text = "# T\n\n1. Do it:\n\n    ```sh\n# at the margin\n    ```\n\nMore words at the end.\n"

    assert [title for title, _, _ in sections(text)] == ["T"]
