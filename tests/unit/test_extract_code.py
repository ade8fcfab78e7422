"""Which lines of a long piece of code an extract shows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ragpilot.adapters.extract_code import dedented
from ragpilot.adapters.extract_markup import gap_mark, language_of
from ragpilot.adapters.extractive import extract
from tests.builders import chunk
from tests.extracts import PLENTY, code, passage, prompt


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
