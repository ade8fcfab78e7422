"""OpenAPI and Swagger at operations, their references written out."""

from __future__ import annotations

import json
import textwrap

from tests.unit.chunkers.specifications import OPENAPI, operation, spans_of


def test_one_span_an_operation_with_references_written_out_and_cycles_named() -> None:
    found = operation(spans_of(OPENAPI), "GET /orders/{id}")

    assert (found.start_line, found.end_line) == (7, 21)
    assert found.title == "GET /orders/{id}"
    assert found.text.split("\nwritten with: ")[0] == textwrap.dedent("""\
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
        (None, 1, 6),
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


def test_each_document_of_a_text_has_its_own_operations() -> None:
    text = textwrap.dedent("""\
        kind: Other
        ---
        openapi: 3.0.0
        paths:
          /one: {get: {responses: {"200": {content: {a/b: {schema: {$ref: "#/components/schemas/S"}}}}}}}
        components: {schemas: {S: {properties: {first: {}}}}}
        ---
        openapi: 3.0.0
        paths:
          /two: {get: {responses: {"200": {content: {a/b: {schema: {$ref: "#/components/schemas/S"}}}}}}}
        components:
          schemas:
            S: {properties: {second: {}}}
        ---
        broken: [
        """)

    spans = spans_of(text)

    found = {span.symbol: (span.start_line, span.end_line) for span in spans if span.symbol}
    assert found["GET /one"] == (5, 5)
    assert found["GET /two"] == (10, 11)
    assert "S {first}" in operation(spans, "GET /one").text
    assert "S {second}" in operation(spans, "GET /two").text
