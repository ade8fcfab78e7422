"""Where chunks begin and end."""

from __future__ import annotations

import pytest

from tests.unit.chunkers.soundness import Declared, declared

EDGES: list[tuple[str, str, str, str, Declared]] = [
    (
        "comments above a declaration of Scala",
        "Cart.scala",
        "code-scala",
        """\
object Cart:
  /** Adds. */
  def add(item: Item): Unit =
    items += item
    // where it is kept

  /** Takes away,
    * if it is there.
    */
  def remove(item: Item): Unit =
    items -= item

/** Counts. */
class Counter:
  def next = 3
""",
        [
            ("Cart", 1, 1),
            ("Cart.add", 2, 5),
            ("Cart.remove", 7, 11),
            ("Counter", 13, 14),
            ("Counter.next", 15, 15),
        ],
    ),
    (
        "a heading between blank rows",
        "CartTests.swift",
        "code-swift",
        """\
final class CartTests: XCTestCase {
    // MARK: Properties

    let cart = Cart()

    // MARK: Adding

    func testAdds() {
        cart.add(1)
    }
}
""",
        [("CartTests", 1, 4), ("CartTests.testAdds", 6, 11)],
    ),
]


@pytest.mark.parametrize(("path", "source_type", "text", "expected"), [c[1:] for c in EDGES], ids=[c[0] for c in EDGES])
def test_where_chunks_begin_and_end(path: str, source_type: str, text: str, expected: Declared) -> None:
    assert declared(path, text, source_type) == expected


def test_brackets_stay_with_what_they_close() -> None:
    check = "        if (id.startsWith('virtual:')) {\n          return lookUp(id, { kind: 'virtual' });\n        }\n"
    text = f"""\
export const plugin = () => {{
  return connect(
    {{
      resolve(id) {{
{check * 8}      }},
      load(id) {{
{check * 4}      }},
    }},
    {{
      post: (message) => socket.send(message),
    }},
  );
}};
"""

    assert declared("plugin.js", text, "code-javascript") == [
        ("plugin", 1, 29),
        ("plugin.load", 30, 44),
        ("plugin", 45, 49),
    ]
