from __future__ import annotations

import json
from typing import Any

from ragpilot.ingest.chunkers import Span, chunk_text_with_notes


def notebook(*cells: tuple[str, str], **metadata: Any) -> str:
    listed = [
        {
            "cell_type": kind,
            "metadata": {},
            "outputs": [{"output_type": "stream", "text": ["PRINTED"]}],
            "source": source.splitlines(keepends=True),
        }
        for kind, source in cells
    ]
    return json.dumps({"cells": listed, "metadata": metadata, "nbformat": 4}, indent=1)


def spans_of(text: str) -> list[Span]:
    spans, notes = chunk_text_with_notes("work/study.ipynb", text, "notebook")
    assert notes == []
    return spans


def line_of(text: str, part: str) -> int:
    return next(number for number, row in enumerate(text.split("\n"), 1) if part in row)


CELLS = (
    ("markdown", "# Study\n\nWhat it is about, in some words.\n"),
    ("code", "%matplotlib inline\nimport pandas\n\ndef load(path):\n    return pandas.read_csv(path)"),
    ("markdown", "## Prepare\nThe data is prepared first of all."),
    ("code", "frame = load('a.csv')"),
    ("markdown", "More about preparing."),
)


def test_cells_stand_under_the_headings_above_them_without_outputs() -> None:
    spans = spans_of(notebook(*CELLS))

    assert [(span.title, span.symbol) for span in spans] == [
        ("Study", None),
        ("Study › load", "load"),
        ("Study › Prepare", None),
        ("Study › Prepare › frame", "frame"),
        ("Study › Prepare", None),
    ]
    assert not any("PRINTED" in span.text for span in spans)


def test_lines_are_those_of_the_file() -> None:
    text = notebook(*CELLS)
    span = spans_of(text)[1]

    assert span.text.startswith("%matplotlib inline\nimport pandas")
    assert span.start_line == line_of(text, "%matplotlib")
    assert span.end_line == line_of(text, "read_csv")


def test_a_header_names_headings_and_symbol() -> None:
    assert spans_of(notebook(*CELLS))[1].header.startswith("work study: study load. matplotlib pandas path")


def test_a_long_cell_is_cut_at_its_symbols() -> None:
    functions = "".join(f"def step_{number}():\n    return '{'x' * 100}'\n\n" for number in range(12))

    symbols = [span.symbol for span in spans_of(notebook(("code", functions)))]

    assert symbols == [f"step_{number}" for number in range(12)]


def test_a_source_in_one_string_is_on_one_line_of_the_file() -> None:
    text = json.dumps({"cells": [{"cell_type": "code", "source": "a = 1\nb = 2\n"}]}, indent=1)
    (span,) = spans_of(text)

    assert span.text == "a = 1\nb = 2"
    assert (span.start_line, span.end_line) == (5, 5)


def test_the_language_of_the_kernel_is_used() -> None:
    text = notebook(("code", "fn main() {\n    run();\n}"), language_info={"name": "rust"})

    assert spans_of(text)[0].symbol == "main"


def test_what_is_no_notebook_is_plain_text_with_a_note() -> None:
    for text, note in (('{"cells": [', "no JSON"), ("{}", "no notebook"), ("plain words", "more than one value")):
        spans, notes = chunk_text_with_notes("x.ipynb", text, "notebook")
        assert [span.text for span in spans] == [text]
        assert len(notes) == 1
        assert notes[0].startswith(note)
