"""A specification, and its spans, checked."""

from __future__ import annotations

import textwrap

from ragpilot.ingest.chunkers import Span, chunk_text_with_notes
from tests.unit.chunkers.soundness import assert_sound


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
