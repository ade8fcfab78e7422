"""Languages without a grammar here."""

from __future__ import annotations

import pytest

from tests.unit.chunkers.soundness import places, sound_spans

BODY = "    step(1)\n    step(2)\n"


@pytest.mark.parametrize(
    ("path", "source_type", "text", "expected"),
    [
        (
            "a.lua",
            "code-lua",
            f"-- Adds.\nlocal function add(a)\n{BODY}end\n\nfunction M.take(b)\n{BODY}end\n",
            {"add": (1, 5), "M.take": (7, 10)},
        ),
        (
            "a.ps1",
            "code-powershell",
            f"function Get-Order {{\n{BODY}}}\n\nfunction Set-Order {{\n{BODY}}}\n",
            {"Get-Order": (1, 4), "Set-Order": (6, 9)},
        ),
        (
            "a.ex",
            "code-elixir",
            f"defmodule Shop.Cart do\n  @doc false\n  def total(cart) do\n{BODY}  end\nend\n",
            {"Shop.Cart": (1, 1), "total": (2, 7)},
        ),
        (
            "main.tf",
            "code-terraform",
            'resource "aws_s3_bucket" "logs" {\n' + BODY * 4 + '}\n\nvariable "region" {\n' + BODY * 4 + "}\n",
            {"aws_s3_bucket.logs": (1, 10), "region": (12, 21)},
        ),
        (
            "a.clj",
            "code-clojure",
            "(ns shop)\n\n(defn total\n  [cart]\n  (reduce + cart))\n",
            {"total": (1, 5)},
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and value.startswith("code-") else "",
)
def test_declarations_by_their_look(
    path: str, source_type: str, text: str, expected: dict[str, tuple[int, int]]
) -> None:
    assert places(sound_spans(path, text, source_type)) == expected


def test_indented_templates_are_cut_at_their_outermost_elements() -> None:
    text = ".card\n" + "  %p some words in here\n" * 12
    for span in sound_spans("a.haml", text * 5, "template"):
        assert span.text.startswith(".card")


def test_other_schemas_by_their_blocks() -> None:
    text = "datasource db {\n  url = 1\n}\n\n// A user.\nmodel User {\n  id Int @id\n}\n"

    assert places(sound_spans("schema.prisma", text, "data-schema")) == {"db": (1, 3), "User": (5, 8)}
