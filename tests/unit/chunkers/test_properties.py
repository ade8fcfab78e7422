"""Whatever the text: nothing is lost, nothing is too long, nothing fails."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.chunkers.soundness import sound_spans

KINDS = [
    ("a.py", "code-python"),
    ("a.ts", "code-typescript"),
    ("a.tsx", "code-typescript"),
    ("a.js", "code-javascript"),
    ("a.cs", "code-csharp"),
    ("a.java", "code-java"),
    ("a.go", "code-go"),
    ("a.rs", "code-rust"),
    ("a.h", "code-c"),
    ("a.cpp", "code-cpp"),
    ("a.rb", "code-ruby"),
    ("a.php", "code-php"),
    ("a.kt", "code-kotlin"),
    ("a.sh", "code-bash"),
    ("a.swift", "code-swift"),
    ("a.scala", "code-scala"),
    ("a.lua", "code-lua"),
    ("a.html", "template"),
    ("a.pug", "template"),
    ("a.vue", "template"),
    ("a.svelte", "template"),
    ("a.scss", "style"),
    ("a.yaml", "api-spec"),
    ("a.json", "api-spec"),
    ("a.md", "docs-markdown"),
    ("a.rst", "docs-text"),
    ("a.adoc", "docs-text"),
    ("a.org", "docs-text"),
    ("a.tex", "docs-text"),
    ("a.txt", "docs-text"),
    ("a.ipynb", "notebook"),
    ("a.toml", "config"),
    ("a.yml", "config"),
    ("package.json", "config"),
    ("Makefile", "config"),
    ("pom.xml", "config"),
    ("a.sql", "data-schema"),
    ("a.proto", "data-schema"),
    ("a.prisma", "data-schema"),
    ("a.graphql", "data-schema"),
]
KIND_IDS = [f"{source_type} {path}" for path, source_type in KINDS]

FRAGMENTS = st.sampled_from(
    [
        "def f(", "):", "class A", "{", "}", "(", ")", "[", "]", "<", ">", "</a>", "<a href='", "fn f() ", "func ",
        "end",
        "impl X for Y ", "namespace a.b;", "import x", "const a = ", "=> ", "#", "# H", "## H2", "===", "---", "~~~",
        "```", "````", "\"", "'", "`", '"""', "/*", "*/", "//", "--", "<!--", "-->", "<script>", "</script>", "<style>",
        "$$", ";", "SELECT 1;", "BEGIN", "END", "CREATE TABLE a (", "openapi: 3.0.0", "paths:", "  /a:", "    get:",
        "&a", "*a", "<<: *a", "- x", "key: value", "[table]", "|", "|---|", "\n", "\n\n", "\r\n", "\r", "\t", "    ",
        "é漢👩‍👩‍👧", "\u2028", "\x0c", "\x00", "\ud800", "x" * 70, "@decorator", "#[attr]", "@media (a) {", "\\",
    ]
)  # fmt: skip
TEXTS = st.lists(FRAGMENTS, max_size=40).map("".join)


@pytest.mark.parametrize(("path", "source_type"), KINDS, ids=KIND_IDS)
@settings(max_examples=30)
@given(text=TEXTS, max_chars=st.sampled_from([1, 7, 60, 1000]))
def test_arbitrary_text(path: str, source_type: str, text: str, max_chars: int) -> None:
    sound_spans(path, text, source_type, max_chars=max_chars)


FIXTURES = sorted((Path(__file__).parent / "fixtures").iterdir())


@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda path: path.name)
def test_every_fixture_under_every_kind(fixture: Path) -> None:
    text = fixture.read_text(encoding="utf-8")
    for path, source_type in KINDS:
        sound_spans(path, text, source_type)
        sound_spans(path, text.replace("\n", "\r\n"), source_type, max_chars=90)
