from __future__ import annotations

import textwrap

from ragpilot.ingest.chunkers import Span, chunk_text
from tests.unit.chunkers.soundness import places, sound_spans, symbols


def spans_of(code: str, path: str = "shop/orders.py", max_chars: int = 1000) -> list[Span]:
    return sound_spans(path, textwrap.dedent(code), "code-python", max_chars=max_chars)


DECORATED = '''\
from dataclasses import dataclass


def before():
    return 0
@app.route("/api/orders", methods=["POST"])
@login_required
async def create_order():
    return 1


# Orders as the shop knows them.
@dataclass(frozen=True)
class Order:
    """An order. With lines."""

    id: int
    state: str = "new"

    @property
    def total(self) -> int:
        return sum(self.lines)

    @staticmethod
    @cache
    def load(key: int) -> "Order":
        return Order(key)


if __name__ == "__main__":
    before()

LIMIT = 3
'''


def test_a_decorator_stays_with_its_function_even_right_below_another() -> None:
    spans = spans_of(DECORATED)

    assert places(spans) == {
        "before": (4, 5),
        "create_order": (6, 9),
        "Order": (12, 18),
        "Order.total": (20, 22),
        "Order.load": (24, 27),
        "LIMIT": (30, 33),
    }


def test_module_level_code_is_in_spans_too() -> None:
    spans = spans_of(DECORATED)

    assert spans[0].text == "from dataclasses import dataclass"
    assert spans[0].symbol is None
    assert "before()" in spans[-1].text


def test_a_header_names_the_span_in_plain_words() -> None:
    headers = {span.symbol: span.header for span in spans_of(DECORATED)}

    assert headers["create_order"] == "shop orders: create order. app route api methods post login required"
    assert headers["Order"] == "shop orders: order. An order. dataclass frozen id state total load"
    assert headers["Order.total"] == "shop orders: order total. property"


def test_non_ascii_text_earlier_in_the_file_shifts_nothing() -> None:
    code = (
        "# café — ✅ 血条 “quoted” 👩‍👩‍👧\nimport os\n\n\ndef first():\n    '''Größe.'''\n    return os\n\n\n"
        "class Übung:\n    naïve = 'é'\n\n    def zweite(self):\n        return self.naïve\n"
    )

    spans = spans_of(code)

    assert places(spans) == {"first": (5, 7), "Übung": (10, 11), "Übung.zweite": (13, 14)}
    assert spans[1].text == "def first():\n    '''Größe.'''\n    return os"
    assert spans[-1].header == "shop orders: übung zweite"


def test_every_piece_of_a_long_method_carries_symbol_signature_and_part_number() -> None:
    body = "".join(f"        step_{number} = self.rule_{number}(lines)\n" for number in range(250))
    code = f"class Ledger(Base):\n    def reconcile(self, lines, tolerance):\n{body}\n    def small(self): return 1\n"

    spans = spans_of(code)

    pieces = [span for span in spans if span.symbol == "Ledger.reconcile"]
    assert len(pieces) > 5
    assert [piece.title for piece in pieces[:2]] == [
        f"Ledger.reconcile (1/{len(pieces)})",
        f"Ledger.reconcile (2/{len(pieces)})",
    ]
    assert {piece.header for piece in pieces} == {"shop orders: ledger reconcile. lines tolerance"}
    assert symbols(spans) == ["Ledger", "Ledger.reconcile", "Ledger.small"]
    assert spans[0].header == "shop orders: ledger. base reconcile small"


def test_long_functions_are_cut_between_statements_and_not_before_what_closes_one() -> None:
    block = "    if check({0}):\n        first({0})\n        second({0})\n    else:\n        other({0})\n"
    code = "def run():\n" + "".join(block.format(number) for number in range(40))

    for span in spans_of(code)[1:]:
        assert span.text.startswith("    if check(")


def test_functions_inside_a_long_function_have_symbols_of_their_own() -> None:
    inner = "    @app.get('/{0}')\n    def view_{0}():\n        return '{1}'\n\n"
    code = "def create_app():\n" + "".join(inner.format(number, "x" * 60) for number in range(12))

    assert "create_app.view_7" in symbols(spans_of(code))


def test_overload_signatures_stay_with_the_implementation() -> None:
    code = """\
    @overload
    def parse(x: str) -> int: ...
    @typing.overload
    def parse(x: int) -> str: ...


    def parse(x):
        return x
    """

    assert places(spans_of(code)) == {"parse": (1, 8)}


def test_a_constructor_stays_with_the_head_of_its_class() -> None:
    code = '''\
    class Cart:
        """Holds lines."""

        def __init__(self, lines):
            self.lines = lines

        def add(self, line):
            self.lines.append(line)
    '''

    assert places(spans_of(code)) == {"Cart": (1, 5), "Cart.add": (7, 8)}


def test_definitions_in_conditions_are_found() -> None:
    code = """\
    try:
        from fast import dumps
    except ImportError:
        def dumps(value):
            return repr(value)

    if TYPE_CHECKING:
        class Shape(Protocol):
            def area(self) -> float: ...
    """

    assert {"dumps", "Shape", "Shape.area"} <= set(symbols(spans_of(code)))


def test_a_long_constant_stands_alone_and_short_ones_together() -> None:
    table = "".join(f"    'key_{number}': {number},\n" for number in range(20))
    code = f"RETRIES = 3\nTIMEOUT = 10\n\nTABLE = {{\n{table}}}\n\nNAME = 'x'\n"

    spans = spans_of(code)

    assert [(span.symbol, span.title) for span in spans] == [
        (None, "RETRIES, TIMEOUT"),
        ("TABLE", "TABLE"),
        ("NAME", "NAME"),
    ]


def test_a_syntax_error_costs_only_what_is_broken() -> None:
    code = "def good():\n    return 1\n\ndef broken(:\n    retrun ((\n\nclass Still:\n    def here(self): return 2\n"

    assert {"good", "Still", "Still.here"} <= set(symbols(spans_of(code)))


def test_a_form_feed_or_a_line_separator_starts_no_line() -> None:
    code = "def p1():\n    return 1\n\x0c\ndef p2():\n    return '\u2028'\n"

    assert places(spans_of(code)) == {"p1": (1, 2), "p2": (4, 5)}


def test_carriage_returns_are_not_in_the_text_and_do_not_count() -> None:
    spans = chunk_text("a.py", "def a():\r\n    return 1\r\n\r\ndef b():\r\n    return 2\r\n", "code-python")

    assert [(span.symbol, span.start_line, span.text) for span in spans] == [
        ("a", 1, "def a():\n    return 1"),
        ("b", 4, "def b():\n    return 2"),
    ]


def test_nothing_comes_of_nothing() -> None:
    for text in ("", "\n\n\n", "  \t \n"):
        assert chunk_text("a.py", text, "code-python") == []
    assert [span.symbol for span in chunk_text("a.py", "# only\n# comments\n", "code-python")] == [None]
