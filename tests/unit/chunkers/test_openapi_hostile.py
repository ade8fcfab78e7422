"""What is no specification, or one that would never end."""

from __future__ import annotations

import json

import pytest

from ragpilot.ingest.chunkers import chunk_text_with_notes
from tests.unit.chunkers.soundness import assert_sound, sound_spans
from tests.unit.chunkers.specifications import operation, spans_of

BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{name}: &{name} [{','.join(['*' + before] * 9)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    "text",
    [
        BOMB,
        "openapi: 3.0.0\npaths:\n\t/bad: tab\n",
        "# a chart\nreplicas: {{ .Values.count }}\n",
        "a: 1\n---\n!custom {c: 3}\n",
        '{"openapi": "3.0.0", "paths": {',
        "[" * 5000,
        "a:\n" + "".join("  " * depth + "k:\n" for depth in range(1, 400)),
    ],
    ids=["alias bomb", "tab", "template", "documents", "cut off", "deep list", "deep map"],
)
def test_what_is_no_specification_is_cut_as_configuration_with_a_note(text: str) -> None:
    spans, notes = chunk_text_with_notes("x.yaml", text, "api-spec")

    assert_sound(text, spans, 1000, "config")
    assert len(notes) == 1
    assert notes[0].endswith("; cut as configuration")


def test_aliases_that_would_expand_without_end_cost_nothing() -> None:
    text = BOMB + "openapi: 3.0.0\npaths:\n  /x:\n    get:\n      responses: {'200': {description: ok, schema: *i}}\n"

    spans = spans_of(text)

    assert operation(spans, "GET /x").start_line == 12


def test_schemas_that_refer_to_each_other_in_a_great_circle_end() -> None:
    schemas = {
        f"S{number}": {
            "properties": {f"to{other}": {"$ref": f"#/components/schemas/S{other}"} for other in range(60)},
        }
        for number in range(60)
    }
    spec = {
        "openapi": "3.0.0",
        "paths": {
            f"/p{number}": {
                "get": {
                    "responses": {"200": {"content": {"a/b": {"schema": {"$ref": f"#/components/schemas/S{number}"}}}}}
                }
            }
            for number in range(60)
        },
        "components": {"schemas": schemas},
    }

    spans = spans_of(json.dumps(spec, indent=1), "spec.json")

    assert len([span for span in spans if (span.symbol or "").startswith("GET /p")]) == 60


def test_only_line_feeds_count_as_lines() -> None:
    text = "openapi: 3.0.0\r\ninfo: {title: 'a\u2028b\x85c'}\npaths:\n  /x:\n    get: {summary: 'd\re'}\n"

    assert operation(spans_of(text), "GET /x").start_line == 4


def test_what_follows_in_a_further_document_is_not_lost() -> None:
    text = (
        "---\nopenapi: 3.0.0\ninfo: {title: M}\npaths:\n  /m:\n    get: {summary: All}\n---\nkind: Other\nname: MARK\n"
    )

    spans = sound_spans("a.yml", text, "api-spec")

    assert [span.symbol for span in spans] == [None, "GET /m", None]
    assert spans[-1].text == "---\nkind: Other\nname: MARK"
