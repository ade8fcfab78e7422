from __future__ import annotations

import textwrap

from tests.unit.chunkers.soundness import sound_spans


def titles(path: str, text: str) -> list[tuple[str, int, int]]:
    spans = sound_spans(path, textwrap.dedent(text), "config")
    return [(span.title, span.start_line, span.end_line) for span in spans]


def padded(row: str, rows: int = 12) -> str:
    return "".join(f"{row.format(number)}\n" for number in range(rows))


def test_toml_by_tables_with_the_comments_above() -> None:
    text = (
        "# The project.\n[project]\n" + padded('key{} = "some value of it"') + '\n# Tools.\n[tool.ruff]\nhelp = """\n'
        "[not.a.table]\n" + padded("text {} goes on and on here") + '"""\n'
    )

    assert titles("pyproject.toml", text) == [("project", 1, 14), ("tool.ruff", 16, 32)]


def test_small_keys_are_packed_under_no_name_but_what_they_have_in_common() -> None:
    (plain,) = sound_spans("ci.yml", "a: 1\nb: 2\nc: 3\nd: 4\n", "config")
    (shared,) = sound_spans("vars.tf", "server.host = 1\nserver.port = 2\n", "config")

    assert (plain.symbol, plain.title, plain.header) == (None, "a, b, c, …", "ci: a")
    assert (shared.symbol, shared.title) == ("server", "server.host, server.port")


def test_every_section_stands_under_its_own_name_however_small() -> None:
    tables = sound_spans("setup.cfg", "# All.\n[a]\nx = 1\n\n[b]\ny = 2\n", "config")
    scripts = '{\n    "test": "vitest run --coverage --reporter=dot"\n  }'
    package = f'{{\n  "name": "x",\n  "main": "y.js",\n  "scripts": {scripts}\n}}\n'
    blocks = 'resource "bucket" "logs" {\n  size = 1\n}\n\nresource "bucket" "data" {\n  size = 2\n}\n'

    assert [(span.symbol, span.start_line, span.end_line) for span in tables] == [("a", 1, 3), ("b", 5, 6)]
    assert titles("package.json", package) == [("name, main", 1, 3), ("scripts", 4, 7)]
    assert titles("main.tf", blocks) == [('resource "bucket" "logs"', 1, 3), ('resource "bucket" "data"', 5, 7)]


def test_a_makefile_target_has_its_comment_and_its_phony_row() -> None:
    text = (
        "# Run all tests with the race detector and a profile for the report.\n.PHONY: test\n"
        "test: build\n\tgo test\n\nlint:\n\tvet\n"
    )

    assert titles("Makefile", text) == [("test", 1, 4), ("lint", 6, 7)]


def test_yaml_by_keys_and_long_values_by_the_keys_inside() -> None:
    steps = padded("      - name: step number {0}\n        run: make target-{0}", 30)
    text = f"name: ci\non: [push]\njobs:\n  build:\n    steps:\n{steps}  test:\n    steps:\n{steps}"

    spans = sound_spans("workflow.yml", text, "config")

    assert spans[0].title == "name, on"
    assert {"jobs.build.steps", "jobs.test.steps"} <= {span.symbol for span in spans}
    assert all(span.symbol and span.symbol.startswith("jobs") for span in spans[1:])


def test_json_by_keys_at_the_first_indentation() -> None:
    text = '{\n    "name": "x",\n    "scripts": {\n' + padded('        "script{}": "make it now",') + "    }\n}\n"

    assert titles("package.json", text) == [("name", 1, 2), ("scripts", 3, 17)]


def test_brackets_alone_are_no_span() -> None:
    values = ",\n".join(f'    "key{number}": "{"some value " * 6}"' for number in range(30))
    spans = sound_spans("a.json", f'{{\n  "only": {{\n{values}\n  }}\n}}\n', "config")

    assert spans[0].text.startswith('{\n  "only": {')
    assert all(any(map(str.isalnum, span.text)) for span in spans)


def test_dockerfiles_by_stage_and_makefiles_by_target() -> None:
    stages = (
        "FROM python:3 AS build\n"
        + padded("RUN make target-{} and so on")
        + "\nFROM alpine\n"
        + padded("COPY {} /srv/app/folder")
    )
    targets = (
        "PY := python\n\n# Runs it.\nrun: deps\n"
        + padded("\techo running number {}")
        + "\ntest:\n"
        + padded("\techo testing number {}")
    )

    assert titles("Dockerfile", stages) == [("build", 1, 13), ("alpine", 15, 27)]
    assert titles("Makefile", targets) == [("run", 1, 16), ("test", 18, 30)]


def test_a_format_that_is_not_known_is_cut_by_indentation() -> None:
    text = ("server {\n" + padded("    option_{} value_of_it;") + "}\n") * 5

    for span in sound_spans("nginx.rules", text, "config"):
        assert span.text.startswith("server {")
