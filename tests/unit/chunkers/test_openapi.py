from __future__ import annotations

import json
import re
import textwrap

import pytest
import yaml

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


RICH = textwrap.dedent("""\
    openapi: 3.1.0
    info: {title: Shop, version: "1"}
    paths:
      # what partners may call
      /orders/{id}:
        summary: One order
        servers: [{url: "https://eu.shop/"}]
        parameters:
          - {name: id, in: path, required: true, schema: {type: string, example: ORD-77}, style: simple}
        get:
          x-gateway:
            uri: arn:fetcherLambda  # kept warm
            timeoutInMillis: 29000
          x-samples: [{lang: curl, source: curl https://api.shop/kumquat42}]
          externalDocs: {url: https://wiki.shop/runbook}
          responses:
            "200":
              description: ok
              headers: {X-Budget: {schema: {type: integer}, description: frobnicated budget}}
              content:
                application/json:
                  schema: {type: object, properties: {state: {type: string, readOnly: true, title: Phase}}}
                  examples:
                    plain: {value: {state: pineapple, "quoted\\nkey": "line one\\nline two"}}
              links: {next: {operationId: nextRambutan}}
        x-owner: {team: pomelo}
        post:
          callbacks:
            onDone:
              "{$request.body#/url}":
                post: {summary: durian callback arrives, responses: {"200": {description: taken}}}
          responses: {"201": {description: made}}
    components: {schemas: {Order: {type: object, description: An order}}}
    """)
SWAGGER = {
    "swagger": "2.0",
    "info": {"title": "Pets", "x-audience": "partners"},
    "paths": {
        "/pets": {
            "post": {
                "summary": "Add",
                "schemes": ["https"],
                "parameters": [
                    {"in": "body", "name": "pet", "schema": {"$ref": "#/definitions/Pet"}, "x-example": {"age": 12}},
                    {
                        "in": "query",
                        "name": "tags",
                        "type": "array",
                        "items": {"type": "string"},
                        "allowEmptyValue": False,
                    },
                ],
                "responses": {
                    "200": {"description": 'a "pet"\nis there', "examples": {"application/json": {"id": 4711}}}
                },
            }
        }
    },
    "definitions": {"Pet": {"properties": {"age": {"type": "integer", "description": "in years"}}}},
}


def unfound(text: str, spans: list[Span]) -> list[tuple[int, str]]:
    """Words of rows that no span has which cites the row."""
    missing: list[tuple[int, str]] = []
    for number, row in enumerate(text.split("\n"), 1):
        told = "\n".join(span.text for span in spans if span.start_line <= number <= span.end_line).casefold()
        known = set(re.findall(r"\w+", told))
        plain = re.sub(r"\\u[0-9a-f]{4}|\\.", " ", row)
        missing += [(number, word) for word in re.findall(r"\w{3,}", plain) if word.casefold() not in known]
    return missing


@pytest.mark.parametrize(
    "text",
    [
        OPENAPI,
        RICH,
        OPENAPI + "---\n" + RICH,
        json.dumps(SWAGGER),
        json.dumps(SWAGGER, indent=1),
        json.dumps({"openapi": "3.0.3", **{key: SWAGGER[key] for key in ("info", "paths")}}, indent=2),
        json.dumps(yaml.safe_load(RICH)),
        json.dumps(yaml.safe_load(RICH), indent=2),
        json.dumps(yaml.safe_load(OPENAPI), indent=1),
        yaml.safe_dump(SWAGGER),
        yaml.safe_dump(SWAGGER, default_flow_style=True, width=10_000),
        json.dumps(yaml.safe_load(RICH), indent=2).replace("},\n", "}, ").replace("\n  }", " }"),
    ],
    ids=[
        "3.0 yaml",
        "3.1 yaml",
        "two documents",
        "2.0 json in a row",
        "2.0 json",
        "3.0 json",
        "3.1 json in a row",
        "3.1 json",
        "merges",
        "2.0 yaml",
        "2.0 yaml in a row",
        "rows shared",
    ],
)
@pytest.mark.parametrize("max_chars", [300, 1000])
def test_every_word_stands_in_a_span_that_cites_its_line(text: str, max_chars: int) -> None:
    assert unfound(text, spans_of(text, max_chars=max_chars)) == []


def test_what_a_rendering_has_no_words_for_is_laid_out_below_it() -> None:
    spans = spans_of(RICH)

    found = operation(spans, "GET /orders/{id}")
    assert (found.start_line, found.end_line) == (5, 25)
    rows = "\n".join(span.text for span in spans if span.symbol == found.symbol).split("\n")
    assert rows[rows.index("x-gateway: {uri: arn:fetcherLambda, timeoutInMillis: 29000}") :] == [
        "x-gateway: {uri: arn:fetcherLambda, timeoutInMillis: 29000}",
        "x-samples: {lang: curl, source: curl https://api.shop/kumquat42}",
        "externalDocs.url: https://wiki.shop/runbook",
        "responses.200:",
        " headers.X-Budget.description: frobnicated budget",
        " content.application/json:",
        "  schema.properties.state: {readOnly: true, title: Phase}",
        "  examples.plain.value: {state: pineapple, quoted key: line one line two}",
        " links.next.operationId: nextRambutan",
        "servers: url: https://eu.shop/",
        "parameters: id: {schema.example: ORD-77, style: simple}",
        "# kept warm",
        rows[-1],
    ]
    assert rows[-1].startswith("written with: summary, ")
    assert "durian callback arrives" in operation(spans, "POST /orders/{id}").text


def test_a_huge_example_is_cut_into_numbered_pieces() -> None:
    example = {f"field{number}": {"value": f"told{number}", "why": "because " * 5} for number in range(200)}
    spec = {
        "openapi": "3.0.0",
        "paths": {
            "/big": {"get": {"responses": {"200": {"content": {"application/json": {"example": example}}}}}},
            "/deep": {"get": {"x-deep": json.loads('{"a":' * 300 + '"bottom"' + "}" * 300)}},
        },
    }
    text = json.dumps(spec, indent=1)

    spans = spans_of(text, "spec.json")

    pieces = [span for span in spans if span.symbol == "GET /big"]
    assert [span.title for span in pieces] == [f"GET /big ({n}/{len(pieces)})" for n in range(1, len(pieces) + 1)]
    assert sum(len(span.text) for span in pieces) < len(text)
    assert unfound(text, spans) == []


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
