from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from ragpilot.ingest.chunkers import CHUNKER_VERSION, chunk_text, chunk_text_with_notes, self_test
from ragpilot.ingest.chunkers.code import grammar
from ragpilot.ingest.chunkers.code.language import Kind
from ragpilot.ingest.chunkers.code.languages.go import GO
from ragpilot.ingest.chunkers.code.languages.python import PYTHON
from ragpilot.ingest.chunkers.code.macros import without_macros
from ragpilot.ingest.chunkers.code.selfcheck import problem
from tests.linear import assert_linear
from tests.unit.chunkers.soundness import assert_sound, sound_spans, symbols


def nested(opening: str, closing: str, depth: int) -> str:
    return opening * depth + closing * depth


DEEP = [
    ("parens.py", "code-python", "x = " + nested("(", ")", 4000) + "\n"),
    ("rows.py", "code-python", "x = " + nested("(\n", ")\n", 2500)),
    ("blocks.py", "code-python", "".join(" " * depth + "if x:\n" for depth in range(95)) + " " * 95 + "pass\n"),
    ("generics.ts", "code-typescript", "type D = " + nested("Array<", ">", 2000) + ";\n"),
    ("chain.js", "code-javascript", "a" + "".join(f".m{number}()\n" for number in range(3000)) + ";\n"),
    ("classes.js", "code-javascript", nested("class A { m() {\n", "} }\n", 700)),
    ("pairs.cpp", "code-cpp", "typedef " + nested("std::pair<int,", ">", 1500) + " deep;\n"),
    ("namespaces.cs", "code-csharp", nested("namespace A {\n", "}\n", 1200)),
    ("blocks.rs", "code-rust", "fn f() {\n" + nested("{\n", "}\n", 2000) + "}\n"),
    ("deep.html", "template", nested("<div>\n", "</div>\n", 2500)),
    ("deep.css", "style", nested("a {\n", "}\n", 2500)),
    ("deep.json", "config", nested("[\n", "]\n", 5000)),
    ("deep.json", "api-spec", '{"openapi": "3.0.0", "paths": ' + nested('{"a":', "}", 5000).replace(":}", ":1}") + "}"),
    ("deep.yaml", "config", "".join("  " * depth + "k:\n" for depth in range(400))),
    ("deep.md", "docs-markdown", "".join(">" * depth + " quote\n" for depth in range(400))),
    ("deep.sql", "data-schema", "CREATE PROCEDURE p() " + nested("BEGIN\n", "END;\n", 3000)),
]


@pytest.mark.parametrize(("path", "source_type", "text"), DEEP, ids=[path for path, _, _ in DEEP])
def test_deep_nesting_overflows_nothing(path: str, source_type: str, text: str) -> None:
    spans, _ = chunk_text_with_notes(path, text, source_type)

    assert_sound(text, spans, 1000, source_type)


HOSTILE = [
    ("a.md", "docs-markdown", "[" * 60_000),
    ("a.md", "docs-markdown", "# " + "[a](" * 20_000),
    ("a.md", "docs-markdown", "#" + " " * 60_000 + "x"),
    ("a.md", "docs-markdown", "|" * 30_000 + "\n" + "|-" * 30_000 + "x"),
    ("a.md", "docs-markdown", "```\n" * 5_001),
    ("a.rst", "docs-text", "=" * 60_000 + "\n" + "x" * 60_000 + "\n" + "=" * 60_000),
    ("a.py", "code-python", "#" * 60_000),
    ("a.py", "code-python", "# `_*" * 20_000 + "\ndef f(): pass\n"),
    ("a.h", "code-c", "\n" * 60_000 + "int x;"),
    ("a.rs", "code-rust", "impl " + "A" * 60_000 + " {}"),
    ("a.js", "code-javascript", "var a=" + "'x'+" * 50_000 + "1"),
    ("a.js", "code-javascript", "{[(" * 20_000),
    ("a.html", "template", "<" * 60_000),
    ("a.html", "template", "<a " + "b='" * 20_000),
    ("a.css", "style", "a{b:c}" * 20_000),
    ("a.css", "style", "'" * 60_000),
    ("a.sql", "data-schema", "'" * 60_001),
    ("a.sql", "data-schema", "$$" * 30_001),
    ("a.sql", "data-schema", "CREATE " + "TEMP " * 20_000),
    ("a.toml", "config", "[" * 60_000),
    ("Makefile", "config", "a " * 30_000 + ":"),
    ("a.yaml", "api-spec", "openapi: 3\n" + "a: " + "[" * 20_000),
    ("a.ipynb", "notebook", '{"cells": [' + '"' * 60_001),
    ("a.kt", "code-kotlin", "fun f() { " + "a<b<c<d<" * 5_000 + " }"),
    ("a.swift", "code-swift", "let a = " + "[1:" * 3_000),
]


@pytest.mark.parametrize(
    ("path", "source_type", "text"), HOSTILE, ids=[f"{path}-{number}" for number, (path, _, _) in enumerate(HOSTILE)]
)
def test_hostile_texts_take_no_longer_than_others(path: str, source_type: str, text: str) -> None:
    spans, _ = chunk_text_with_notes(path, text, source_type)

    assert_sound(text, spans, 1000, source_type)
    assert_linear(lambda part: chunk_text_with_notes(path, part, source_type), text)


MACROS = (
    "AB_CD ",
    "AB_CD\n",
    "AB_CD(",
    ", AB_CD((",
    "#if x \\\n",
    'extern "C" {\n',
    "class A_B(",
    "if AB_C (",
    "AB_CD a<",
)


@pytest.mark.parametrize("row", MACROS)
def test_looking_for_macros_takes_linear_time(row: str) -> None:
    text = row * (500_000 // len(row))
    assert len(without_macros(text.encode())) == len(text)
    assert_linear(lambda part: without_macros(part.encode()), text)


def test_a_minified_file_is_cut_by_size() -> None:
    text = "!function(e,t){return e(t)}(window,{});" * 8000
    spans = sound_spans("app.js", text, "code-javascript")

    assert 312 <= len(spans) <= 330
    assert {span.start_line for span in spans} == {1}


def test_control_tokens_of_models_are_plain_text() -> None:
    text = 'STOP = ["<|endoftext|>", "<|im_start|>", "[INST]", "</s>"]\n\n\ndef strip(text):\n    return text\n'

    spans = sound_spans("tokens.py", text, "code-python")

    assert symbols(spans) == ["STOP", "strip"]
    assert "<|im_start|>" in spans[0].text


def test_a_parse_that_finds_no_end_is_given_up_and_cut_by_the_look_of_its_lines(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(grammar, "_STEPS_TO_START", -(10**9))
    text = "\n".join(f"# Does {number}.\ndef step_{number}(x):\n    return x\n" for number in range(50))

    spans, notes = chunk_text_with_notes("a.py", text, "code-python")

    assert notes == ["the python grammar found no end; cut by the look of its lines"]
    assert symbols(spans) == [f"step_{number}" for number in range(50)]
    assert spans[1].text.startswith("# Does 1.")
    assert_sound(text, spans, 1000, "code-python")


def test_a_huge_text_is_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grammar, "_LARGEST", 100)

    _, notes = chunk_text_with_notes("a.go", "package a\n" * 20, "code-go")

    assert notes == ["200 bytes are too many for the Go grammar; cut by the look of its lines"]


def test_every_grammar_passes_the_start_up_check() -> None:
    assert self_test() == {}


def test_a_node_type_that_the_grammar_lacks_is_named() -> None:
    from dataclasses import replace

    broken = replace(PYTHON, definitions={**PYTHON.definitions, "no_such_node": Kind.TYPE})

    assert problem(broken) == "the installed grammar does not know no_such_node"


def test_a_grammar_that_is_not_installed_is_named() -> None:
    from dataclasses import replace

    found = problem(replace(GO, module="tree_sitter_absent"))

    assert found is not None
    assert found.startswith("the grammar for Go cannot be loaded: No module named")


def test_a_declaration_that_finds_nothing_is_named() -> None:
    from dataclasses import replace

    assert problem(replace(GO, expected=("Queue.Push",))) == "it does not find Queue.Push in its sample"


def test_threads_may_chunk_at_once() -> None:
    code = "".join(f"def f{number}():\n    return {number}\n\n" for number in range(200))

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: chunk_text("a.py", code, "code-python"), range(24)))

    assert all(result == results[0] for result in results)


def test_the_version_is_part_of_an_identity() -> None:
    assert CHUNKER_VERSION


MANY = [
    ("a.py", "code-python", "X_{0} = {0}\n\ndef f_{0}():\n    return {0}\n\n"),
    ("a.cs", "code-csharp", "class C{0} {{ int x; void M() {{ }} }}\n"),
    ("a.h", "code-c", "#define X_{0} {0}\n"),
    ("a.vue", "template", "<script>\nlet a{0} = 1;\n</script>\n<p>x</p>\n"),
    ("a.css", "style", ".a{0} {{ color: red; }}\n"),
    ("a.md", "docs-markdown", "## H {0}\n\nSome text of it.\n\n"),
    ("a.yml", "config", "key{0}:\n  - value\n"),
    ("a.sql", "data-schema", "CREATE TABLE t{0} (a int);\n"),
]


@pytest.mark.parametrize(("path", "source_type", "row"), MANY, ids=[path for path, _, _ in MANY])
def test_many_declarations_in_one_file(path: str, source_type: str, row: str) -> None:
    text = "".join(row.format(number) for number in range(6000))
    sound_spans(path, text, source_type)
    assert_linear(lambda part: chunk_text_with_notes(path, part, source_type), text)


def test_a_symbol_nested_beyond_reason_is_bounded() -> None:
    text = "namespace outer_name {\n" * 400 + "int f() { return 1; }\n" + "}\n" * 400

    assert all(len(span.symbol or "") <= 240 for span in sound_spans("a.cpp", text, "code-cpp"))
