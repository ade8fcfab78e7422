from __future__ import annotations

import textwrap

from tests.unit.chunkers.soundness import sound_spans


def sections(path: str, text: str) -> list[tuple[str, int, int]]:
    spans = sound_spans(path, textwrap.dedent(text), "docs-text")
    return [(span.title, span.start_line, span.end_line) for span in spans]


def test_restructured_text_levels_are_the_order_of_their_adornments() -> None:
    text = """\
    .. _top:

    =====
    Guide
    =====

    The guide to everything.

    Install
    =======

    Install it with :command:`pip` as usual.

    On ``Linux``
    ------------

    Use the package manager there.

    ::

        Not a title
        -----------

    Use
    ===

    +-----+-----+
    | a   | b   |
    +-----+-----+

    A simple table of some words:

    =====  =====
    one    two
    =====  =====
    """

    assert sections("docs/guide.rst", text) == [
        ("Guide", 1, 7),
        ("Guide › Install", 9, 12),
        ("Guide › Install › On Linux", 14, 22),
        ("Guide › Use", 24, 35),
    ]


def test_asciidoc_headings_outside_delimited_blocks() -> None:
    text = """\
    = Guide
    :toc:

    The guide to everything here.

    == Install

    ----
    == not a heading
    ----

    === On _Linux_

    Use the package manager there.
    """

    assert sections("guide.adoc", text) == [
        ("Guide", 1, 4),
        ("Guide › Install", 6, 10),
        ("Guide › Install › On Linux", 12, 14),
    ]


def test_org_and_latex_headings() -> None:
    org = "* Guide\nThe guide to everything here.\n** Install\nInstall it as you always do.\n"
    tex = "\\title{T}\n\\section{Guide}\nThe guide to it all here.\n\\subsection*{Use}\nUse it as we do it here.\n"

    assert sections("a.org", org) == [("Guide", 1, 2), ("Guide › Install", 3, 4)]
    assert sections("a.tex", tex) == [("Guide", 1, 3), ("Guide › Use", 4, 5)]


def test_plain_text_is_packed_by_paragraphs() -> None:
    paragraphs = [f"Paragraph {number}. " + "It has several words of text. " * 9 for number in range(6)]
    spans = sound_spans("NOTES.txt", "\n\n".join(paragraphs), "docs-text")

    assert [len(span.text.split("\n\n")) for span in spans] == [3, 3]
    assert spans[0].title == "NOTES.txt"


def test_an_unknown_source_type_is_plain_text() -> None:
    assert [span.text for span in sound_spans("a.xyz", "some\ntext\n", "no-such-type")] == ["some\ntext"]
