from __future__ import annotations

import json
import textwrap
import time

import pytest

from ragpilot.ingest.chunkers import Span, chunk_text_with_notes
from tests.unit.chunkers.soundness import assert_sound, sound_spans


def spans_of(text: str, path: str = "api/openapi.yaml", max_chars: int = 1000) -> list[Span]:
    spans, notes = chunk_text_with_notes(path, text, "api-spec", max_chars=max_chars)
    assert notes == []
    assert_sound(text, spans, max_chars, "api-spec")
    return spans


def operation(spans: list[Span], symbol: str) -> Span:
    return next(span for span in spans if span.symbol == symbol)


OPENAPI = textwrap.dedent("""\
    openapi: 3.0.3
    info: {title: Shop, version: "1"}
    x-common: &common
      type: object
      description: shared
    paths:
      /orders/{id}:
        parameters:
          - {name: id, in: path, required: true, schema: {type: string, format: uuid}}
        get:
          operationId: getOrderById
          summary: Fetch one order
          tags: [orders]
          parameters:
            - $ref: "#/components/parameters/Expand"
          responses:
            "200":
              description: the order
              content:
                application/json: {schema: {$ref: "#/components/schemas/Order"}}
            default: {$ref: "#/components/responses/Failure"}
        delete: {deprecated: true, responses: {204: {description: gone}}}
      /orders:
        post:
          requestBody:
            required: true
            content:
              application/json: {schema: {$ref: "#/components/schemas/Order"}}
          responses: {"201": {description: made}}
    components:
      parameters:
        Expand: {name: expand, in: query, description: what to bring, schema: {type: string, enum: [lines, user]}}
      responses:
        Failure: {description: failed, content: {application/json: {schema: {$ref: "#/components/schemas/A"}}}}
      schemas:
        Order:
          <<: *common
          required: [id]
          properties:
            id: {type: string}
            children: {type: array, items: {$ref: "#/components/schemas/Order"}}
        A: {properties: {b: {$ref: "#/components/schemas/B"}}}
        B: {properties: {a: {$ref: "#/components/schemas/A"}, gone: {$ref: "#/components/schemas/Missing"}}}
    """)


def test_one_span_an_operation_with_references_written_out_and_cycles_named() -> None:
    found = operation(spans_of(OPENAPI), "GET /orders/{id}")

    assert (found.start_line, found.end_line) == (10, 21)
    assert found.title == "GET /orders/{id}"
    assert found.text == textwrap.dedent("""\
        GET /orders/{id} — Fetch one order
        operation: getOrderById
        tags: orders
        parameters:
        - expand (query): string one of lines|user — what to bring
        - id (path, required): string (uuid)
        responses:
        - 200 the order
          application/json: Order {id*: string, children: [Order (recursive)]}
        - default Failure failed
          application/json: A {b: B {a: A (recursive), gone: Missing}}""")


def test_a_header_holds_path_operation_and_parameters() -> None:
    found = operation(spans_of(OPENAPI), "GET /orders/{id}")

    assert found.header == "api openapi: get orders id get order by id. Fetch one order. expand"


def test_bodies_deprecation_and_parameters_of_the_path() -> None:
    spans = spans_of(OPENAPI)

    assert "body (required):" in operation(spans, "POST /orders").text
    assert "Order {id*: string" in operation(spans, "POST /orders").text
    assert operation(spans, "DELETE /orders/{id}").text.split("\n")[:3] == [
        "DELETE /orders/{id}",
        "deprecated",
        "parameters:",
    ]


def test_what_no_operation_holds_is_in_spans_as_it_stands() -> None:
    rest = [span for span in spans_of(OPENAPI) if "/" not in (span.symbol or "")]

    assert [(span.symbol, span.start_line, span.end_line) for span in rest] == [
        (None, 1, 9),
        ("components.parameters.Expand", 31, 32),
        ("components.responses.Failure", 33, 34),
        ("components.schemas.Order", 35, 41),
        ("components.schemas.A", 42, 42),
        ("components.schemas.B", 43, 43),
    ]
    assert "description: shared" in rest[0].text
    assert rest[0].title == "openapi, info, x-common"


def test_an_operation_too_long_for_a_span_is_cut_under_its_name() -> None:
    fields = {f"field_{number}": {"type": "string", "description": "what it is for " * 3} for number in range(30)}
    spec = {
        "openapi": "3.1.0",
        "paths": {"/big": {"put": {"summary": "Big", "description": "word " * 350, "responses": {}}}},
        "components": {"schemas": {"Big": {"properties": fields}}},
    }

    spans = [span for span in spans_of(json.dumps(spec, indent=1), "spec.json") if span.symbol == "PUT /big"]

    assert [span.title for span in spans] == ["PUT /big (1/2)", "PUT /big (2/2)"]
    assert sum(span.text.count("word") for span in spans) == 350


def test_a_specification_without_line_breaks_still_has_operations_and_schemas() -> None:
    spec = {
        "openapi": "3.1.0",
        "info": {"title": "Shop"},
        "paths": {"/a": {"get": {"summary": "one", "responses": {}}}, "/b": {"get": {"summary": "two"}}},
        "components": {"schemas": {"Order": {"type": "object", "properties": {"price": {"type": "number"}}}}},
    }

    spans = spans_of(json.dumps(spec), "spec.json")

    assert {span.symbol for span in spans} >= {"GET /a", "GET /b", "components.schemas.Order"}
    assert "price: number" in operation(spans, "components.schemas.Order").text


def test_webhooks_and_null_types_of_openapi_31() -> None:
    spec = {
        "openapi": "3.1.0",
        "webhooks": {"newPet": {"post": {"summary": "told of a pet", "responses": {"200": {"description": "ok"}}}}},
        "paths": {
            "/a~1b": {
                "get": {
                    "responses": {
                        "200": {
                            "description": "x",
                            "content": {"application/json": {"schema": {"type": ["string", "null"]}}},
                        }
                    }
                }
            }
        },
    }

    spans = spans_of(json.dumps(spec, indent=1), "spec.json")

    assert operation(spans, "POST newPet").text.startswith("POST newPet (webhook) — told of a pet")
    assert "string|null" in operation(spans, "GET /a~1b").text


def test_references_to_files_and_hosts_stay_text() -> None:
    spec = {
        "swagger": "2.0",
        "paths": {
            "/e": {
                "get": {
                    "parameters": [{"name": "q", "in": "query", "type": "integer", "maximum": 9}],
                    "responses": {
                        "200": {"description": "ok", "schema": {"$ref": "common.json#/definitions/X"}},
                        "500": {"description": "no", "schema": {"$ref": "http://127.0.0.1:9/never.json#/X"}},
                        "404": {"description": "own", "schema": {"$ref": "#/definitions/Y"}},
                    },
                }
            }
        },
        "definitions": {"Y": {"properties": {"x": {"$ref": "common.json#/definitions/X"}}}},
    }

    text = operation(spans_of(json.dumps(spec, indent=1), "swagger.json"), "GET /e").text

    assert "- q (query): integer (maximum 9)" in text
    assert "  common.json#/definitions/X" in text
    assert "  http://127.0.0.1:9/never.json#/X" in text
    assert "  Y {x: common.json#/definitions/X}" in text


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
    started = time.perf_counter()

    spans = spans_of(text)

    assert operation(spans, "GET /x").start_line == 12
    assert time.perf_counter() - started < 2


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
    started = time.perf_counter()

    spans = spans_of(json.dumps(spec, indent=1), "spec.json")

    assert len([span for span in spans if (span.symbol or "").startswith("GET /p")]) == 60
    assert time.perf_counter() - started < 2


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
