from __future__ import annotations

import textwrap

from tests.unit.chunkers.soundness import sound_spans


def titles(path: str, text: str, source_type: str) -> list[tuple[str, int, int]]:
    spans = sound_spans(path, textwrap.dedent(text), source_type)
    return [(span.title, span.start_line, span.end_line) for span in spans]


DECLARATIONS = "".join(f"  --property-{number}: value of it {number};\n" for number in range(10))


def test_rules_with_their_comments_past_braces_in_strings_and_comments() -> None:
    text = (
        '@use "theme";\n$space: 4px;\n\n/* The cart\n } */\n.cart,\n.basket {\n  content: "}";\n'
        "  background: url(data:image/png;base64,{});\n" + DECLARATIONS + "}\n\n// Wide screens.\n"
        "@media (min-width: 600px) {\n  .cart {\n" + DECLARATIONS + "  }\n}\n"
    )

    assert titles("site.scss", text, "style") == [
        ('@use "theme", $space: 4px', 1, 2),
        (".cart, .basket", 4, 20),
        ("@media (min-width: 600px)", 22, 36),
    ]


def test_an_unclosed_brace_loses_nothing() -> None:
    assert titles("a.css", ".a { color: red;\n.b { color: blue; }\n", "style") == [("a.css", 1, 2)]


SQL = """\
-- The users; of the shop.
CREATE TABLE IF NOT EXISTS "app"."users" (
  id serial PRIMARY KEY, -- the id; yes
  name text DEFAULT 'a;b'
);

INSERT INTO users VALUES (1, 'it''s');
INSERT INTO users VALUES (2, 'x');

/* Adds up. */
CREATE OR REPLACE FUNCTION total(a int) RETURNS int AS $body$
BEGIN
  RETURN a;
END;
$body$ LANGUAGE plpgsql;

CREATE PROCEDURE tidy()
BEGIN
  IF x THEN SELECT 1; END IF;
  SELECT CASE WHEN 1 THEN 2 END;
  BEGIN SELECT 3; END;
END;

BEGIN;
UPDATE users SET name = 'y';
COMMIT;

SELECT 1
"""


def test_sql_by_statement_whatever_its_semicolons_stand_in() -> None:
    assert titles("schema.sql", SQL, "data-schema") == [
        ("app.users", 1, 5),
        ("users", 7, 8),
        ("total", 10, 15),
        ("tidy", 17, 22),
        ("users", 24, 28),
    ]


def test_batches_that_go_separates() -> None:
    text = "CREATE VIEW a AS SELECT 1\nGO\nALTER TABLE [dbo].[b] ADD c int\nGO\n"

    assert titles("a.sql", text, "data-schema") == [("a", 1, 2), ("dbo.b", 3, 4)]


def test_protobuf_by_message_and_service() -> None:
    text = """\
    syntax = "proto3";
    package shop.v1;

    // An order.
    message Order {
      string id = 1;
      message Line { int32 count = 1; }
    }

    /* Takes orders. */
    service Orders {
      rpc Get(GetRequest) returns (Order);
    }
    """

    assert titles("shop.proto", text, "data-schema") == [
        ("syntax, package", 1, 2),
        ("Order", 4, 8),
        ("Orders", 10, 13),
    ]


def test_graphql_by_type_with_its_description() -> None:
    text = '''\
    scalar Date

    """
    An order.
    type Fake {}
    """
    type Order @key(fields: "id") {
      id: ID!
    }

    extend type Query {
      order(id: ID!): Order
    }
    '''

    assert titles("schema.graphql", text, "data-schema") == [("Date", 1, 1), ("Order", 3, 9), ("Query", 11, 13)]
