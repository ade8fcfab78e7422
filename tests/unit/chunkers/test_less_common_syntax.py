"""What is declared in less common ways: the symbol, and the lines that it stands on."""

from __future__ import annotations

import pytest

from ragpilot.ingest.chunkers import chunk_text
from ragpilot.ingest.chunkers.code.languages.kotlin import KOTLIN
from tests.linear import assert_linear
from tests.unit.chunkers.soundness import places, sound_spans

LONG = "x" * 90

CODE = {
    "routes and functions at the top level of C#": (
        "Program.cs",
        "code-csharp",
        "var app = Build();\n"
        'app.MapGet("/orders/{id:int}", async (int id) => await Find(id));\n'
        'app.MapPost("/orders", (Order order) => {\n    return Save(order);\n}).RequireAuthorization();\n'
        "int Twice(int a)\n{\n    return a + a;\n}\n"
        "app.Run();\n",
        {"GET /orders/{id:int}": (2, 2), "POST /orders": (3, 5), "Twice": (6, 10)},
    ),
    "inline namespaces": (
        "a.hpp",
        "code-cpp",
        f"namespace a::b::inline v1 {{\nint total(int n) {{ return n; /* {LONG} */ }}\n}}\n",
        {"a.b.v1.total": (1, 3)},
    ),
    "implementations for what has no name, and for objects": (
        "a.rs",
        "code-rust",
        f"impl<F> Handler for fn(F) -> u8 {{\n    fn call(&self) {{ /* {LONG} */ }}\n}}\n"
        f"impl Show for dyn Any + Send {{\n    fn show(&self) {{ /* {LONG} */ }}\n}}\n"
        f"impl<'a> Show for &'a mut ds::Stack<T> {{\n    fn peek(&self) {{ /* {LONG} */ }}\n}}\n"
        f"impl Show for [u8; 4] {{\n    fn bytes(&self) {{ /* {LONG} */ }}\n}}\n",
        {"call": (2, 3), "Any.show": (4, 6), "Stack.peek": (7, 9), "bytes": (10, 12)},
    ),
    "methods of one object, and of a class by its name": (
        "a.rb",
        "code-ruby",
        f"def config.reload\n  puts '{LONG}'\nend\n\nclass Cart\n  def Cart.find(id)\n    puts '{LONG}'\n  end\n\n"
        f"  def self.all\n    puts '{LONG}'\n  end\nend\n",
        {"config.reload": (1, 3), "Cart.find": (6, 8), "Cart.all": (10, 13)},
    ),
    "the namespace without a name": (
        "a.php",
        "code-php",
        f"<?php\nnamespace {{\n    function g() {{ return '{LONG}'; }}\n}}\n",
        {"g": (2, 4)},
    ),
    "contexts of functions": (
        "a.kt",
        "code-kotlin",
        f'fun first() = 1\ncontext(Logger) fun logged() {{ info("{LONG}") }}\n'
        f'context(log: Logger, db: Db<Row>)\n@Test\nprivate suspend fun saved(): Int = save("{LONG}")\n'
        f'fun ended(): Int {{ val r = "{LONG}"; return r.size; }}\n/* last */ fun last() = "{LONG}"\n',
        {"first": (1, 1), "logged": (2, 2), "saved": (3, 5), "ended": (6, 6), "last": (7, 7)},
    ),
    "braces that close on one row": (
        "b.kt",
        "code-kotlin",
        f'class A {{ companion object {{ suspend fun big(n: Int) {{\n  told("{LONG}")\n}} }} }}\n\n'
        f'enum class E {{ A {{ override fun f() {{\n  told("{LONG}")\n}}  }} }}\nfun after() = "{LONG}"\n',
        {"A.big": (2, 3), "E": (5, 7), "after": (8, 8)},
    ),
    "what is created with a definer": (
        "a.sql",
        "data-schema",
        "DELIMITER $$\nCREATE DEFINER=`root`@`localhost` PROCEDURE `add_order`(IN p INT)\nBEGIN\n"
        "  INSERT INTO orders VALUES (p);\nEND$$\nDELIMITER ;\n"
        "CREATE ALGORITHM=UNDEFINED DEFINER=`a`@`%` SQL SECURITY DEFINER VIEW `open_orders` AS SELECT 1;\n",
        {"add_order": (1, 5), "open_orders": (6, 7)},
    ),
    "messages in a message that does not fit": (
        "a.proto",
        "data-schema",
        'syntax = "proto3";\n\nmessage Outer {\n  option (a) = { b: "}" };\n  // The inner one.\n  message Inner\n  {\n'
        + f"    string a = 1; // {LONG}\n" * 8
        + "    enum Deep { ZERO = 0; }\n  }\n  oneof kind { string b = 2; }\n  enum Last { NONE = 0; }\n"
        + f"  string c = 3; // {LONG}\n" * 4
        + "}\nmessage Next { Outer.Inner a = 1; }\n",
        {"Outer": (3, 24), "Outer.Inner": (5, 17), "Outer.Last": (19, 19), "Next": (25, 25)},
    ),
    "packages of Oracle": (
        "b.sql",
        "data-schema",
        "CREATE OR REPLACE EDITIONABLE PACKAGE shop.cart AS\n  PROCEDURE add_item(p NUMBER);\n"
        "  FUNCTION total RETURN NUMBER;\nEND cart;\n/\n"
        "CREATE OR REPLACE PACKAGE BODY shop.cart AS\n  n NUMBER := 0;\n\n  -- Adds one.\n"
        "  PROCEDURE add_item(p NUMBER) IS\n  BEGIN\n    IF p > 0 THEN n := n + p; END IF;\n  END add_item;\n"
        "  FUNCTION total RETURN NUMBER IS BEGIN RETURN n; END;\nBEGIN\n  n := 1;\nEND cart;\n"
        "CREATE TABLE t (id NUMBER);\n",
        {"shop.cart": (1, 7), "shop.cart.add_item": (9, 13), "shop.cart.total": (14, 17), "t": (18, 18)},
    ),
    "functions of CMake": (
        "CMakeLists.txt",
        "config",
        "project(X)\n# Adds it.\nfunction(add_it a)\n  message(a)\nendfunction()\nmacro(m)\nendmacro()\nadd_it(x)\n",
        {"add_it": (2, 8), "m": (6, 7)},
    ),
    "a type in a notebook's cell, below a constant": (
        "a.ipynb",
        "notebook",
        '{"nbformat": 4, "cells": [\n{"cell_type": "code", "source": ["x = 1\\n", "class Old:\\n", "  pass"]}\n]}\n',
        {"Old": (2, 2)},
    ),
}


@pytest.mark.parametrize("name", CODE)
def test_it_stands_under_its_symbol(name: str) -> None:
    path, source_type, text, expected = CODE[name]
    found = places(sound_spans(path, text, source_type))
    assert {symbol: found.get(symbol) for symbol in expected} == expected


TEXT = (
    "\n\nSome words of prose that are here to keep this section apart from all others of it. " + "Words. " * 30 + "\n\n"
)

HEADINGS = {
    "a heading in an item of a list is of the item": (
        "a.md",
        "docs-markdown",
        f"# One{TEXT}- item\n  # Not a section\n\n  More of it.\n\n1. first\n\n   ## Neither\n\n"
        f"## Two{TEXT}   ### Three{TEXT}",
        ["One", "One › Two", "One › Two › Three"],
    ),
    "a rule below a list or a quote underlines nothing": (
        "a.md",
        "docs-markdown",
        f"# One{TEXT}Options:\n- a\n- b\n---\n> quoted\nand on\n---\n\n## Two{TEXT}* x\ny\n---\n",
        ["One", "One › Two"],
    ),
    "a rule ends a paragraph": (
        "a.md",
        "docs-markdown",
        f"# One{TEXT}Foo\n***\nBar\n---{TEXT}- - -\nBaz\n---{TEXT}",
        ["One", "One › Bar", "One › Baz"],
    ),
    "titles of AsciiDoc may be underlined, and closed": (
        "a.adoc",
        "docs-text",
        f"= One{TEXT}Two\n---\n{TEXT}----\n== no\n----\n\nThree\n-----{TEXT}.Code\n----\n-- no\n----\n\n"
        f"== Four =={TEXT}",
        ["One", "One › Three", "One › Four"],
    ),
    "what a block of Org holds is no heading": (
        "a.org",
        "docs-text",
        f"* One{TEXT}#+BEGIN_SRC org\n* not\n#+BEGIN_QUOTE\n** nor this\n#+end_src\n** Two{TEXT}",
        ["One", "One › Two"],
    ),
}


@pytest.mark.parametrize("name", HEADINGS)
def test_sections_are_those_of_the_document(name: str) -> None:
    path, source_type, text, expected = HEADINGS[name]
    assert [span.title for span in sound_spans(path, text, source_type)] == expected


def test_messages_in_messages_take_linear_time() -> None:
    assert_linear(
        lambda part: chunk_text("a.proto", part, "data-schema"),
        "message A {\n" + " message B { int32 a = 1; }\n" * 8000,
    )


def test_braces_on_one_row_take_linear_time() -> None:
    assert_linear(lambda part: KOTLIN.prepare(part.encode()), "fun f() { a; " * 20_000 + " }" * 20_000)
