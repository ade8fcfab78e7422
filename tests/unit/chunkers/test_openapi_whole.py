"""Every word of a specification stands in a span that cites its line."""

from __future__ import annotations

import json
import re
import textwrap

import pytest
import yaml

from ragpilot.ingest.chunkers import Span
from tests.unit.chunkers.specifications import OPENAPI, operation, spans_of

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
