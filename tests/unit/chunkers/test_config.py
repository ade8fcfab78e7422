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


def test_small_sections_are_packed_and_all_named() -> None:
    text = "[a]\nx = 1\n\n[b]\ny = 2\n\n[c]\nz = 3\n\n[d]\nw = 4\n"
    (span,) = sound_spans("setup.cfg", text, "config")

    assert span.title == "a, b, c, …"
    assert span.symbol == "a"
    assert span.header == "setup: a"


def test_yaml_by_keys_and_long_values_by_the_keys_inside() -> None:
    steps = padded("      - name: step number {0}\n        run: make target-{0}", 30)
    text = f"name: ci\non: [push]\njobs:\n  build:\n    steps:\n{steps}  test:\n    steps:\n{steps}"

    spans = sound_spans("workflow.yml", text, "config")

    assert spans[0].title == "name, on"
    assert {"jobs.build.steps", "jobs.test.steps"} <= {span.symbol for span in spans}
    assert all(span.symbol and span.symbol.startswith(("name", "jobs")) for span in spans)


def test_json_by_keys_at_the_first_indentation() -> None:
    text = '{\n    "name": "x",\n    "scripts": {\n' + padded('        "script{}": "make it now",') + "    }\n}\n"

    assert titles("package.json", text) == [("scripts, name", 1, 17)]


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
