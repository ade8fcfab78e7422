from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from ragpilot.ingest.chunkers import Span
from ragpilot.ingest.chunkers.code.macros import without_macros
from tests.unit.chunkers.soundness import places, sound_spans

FIXTURES = Path(__file__).parent / "fixtures"

# File -> symbols in order, each from its first line (comments, decorators and attributes included) to its last.
EXPECTED: Mapping[tuple[str, str], Mapping[str, tuple[int, int]]] = {
    ("Blocks.cs", "code-csharp"): {
        "Shop.Inner": (1, 1),
    },
    ("Cart.java", "code-java"): {
        "Cart": (5, 18),
        "Cart.total": (20, 24),
        "Cart.check": (26, 26),
        "Cart.State": (28, 29),
        "Cart.State.done": (31, 34),
        "Cart.Listener": (36, 37),
        "Cart.Listener.cleared": (39, 42),
        "Cart.Line": (44, 46),
    },
    ("Cart.scala", "code-scala"): {
        "Cart": (5, 15),
        "Cart.total": (10, 13),
        "Cart.empty": (16, 19),
        "Priced": (21, 22),
        "Priced.free": (24, 27),
        "Color": (29, 31),
        "cartOrdering": (33, 33),
        "cartOrdering.compare": (34, 37),
    },
    ("Orders.cs", "code-csharp"): {
        "Shop.Orders.OrderId": (6, 7),
        "Shop.Orders.Money": (8, 8),
        "Shop.Orders.OrderService": (10, 16),
        "Shop.Orders.OrderService.ComputeRefund": (18, 19),
        "Shop.Orders.OrderService.Name": (20, 20),
        "Shop.Orders.OrderService.ShipAsync": (22, 26),
        "Shop.Orders.OrderService.operator+": (28, 31),
        "Shop.Orders.OrderService.Dispose": (33, 37),
        "Shop.Orders.State": (39, 39),
        "Shop.Orders.Trace": (41, 43),
        "Shop.Orders.Trace.Write": (44, 49),
    },
    ("Registry.kt", "code-kotlin"): {
        "Registry": (5, 15),
        "Registry.add": (10, 12),
        "Registry.create": (17, 21),
        "Defaults": (23, 23),
        "Defaults.timeout": (24, 25),
        "Result": (27, 27),
        "Result.Success": (28, 29),
        "Level": (31, 34),
        "second": (36, 38),
    },
    ("Session.swift", "code-swift"): {
        "Session": (3, 11),
        "Session.deinit": (13, 15),
        "Session.request": (17, 20),
        "Session.==": (22, 26),
        "Retrier": (28, 31),
        "Response": (33, 35),
        "Failure": (37, 39),
        "Failure.describe": (41, 44),
        "makeSession": (46, 48),
    },
    ("User.php", "code-php"): {
        "App.Models.User": (7, 20),
        "App.Models.User.find": (22, 25),
        "App.Models.User.boot": (27, 28),
        "App.Models.Role": (30, 32),
        "App.Models.Role.label": (34, 38),
        "App.Models.user_name": (40, 43),
    },
    ("app.js", "code-javascript"): {
        "express": (1, 3),
        "start": (5, 7),
        "Server.stop": (9, 11),
        "handler": (13, 15),
        "Queue": (17, 18),
        "Queue.push": (20, 22),
        "Queue.onDone": (24, 27),
        "data": (29, 33),
        "toggle": (34, 37),
        "close": (38, 40),
        "numbers": (42, 44),
    },
    ("cart.rb", "code-ruby"): {
        "Shop.Cart": (5, 15),
        "Shop.Cart.total": (17, 20),
        "Shop.Cart.load": (22, 24),
        "Shop.Cart.empty": (26, 30),
        "Shop.Cart.==": (32, 37),
        "Shop.Cart.Line": (39, 39),
        "Shop.Cart.Line.price": (40, 42),
    },
    ("deploy.sh", "code-bash"): {
        "build": (7, 10),
        "deploy": (12, 14),
        "cleanup": (17, 21),
    },
    ("queue.c", "code-c"): {
        "QUEUE_MAX": (1, 6),
        "queue_t": (8, 11),
        "node": (13, 15),
        "state": (17, 17),
        "queue_push": (19, 19),
        "queue_pop": (21, 26),
        "queue_compare": (28, 33),
    },
    ("repo.ts", "code-typescript"): {
        "count": (1, 3),
        "parse": (5, 9),
        "Repo": (11, 14),
        "Repo.size": (16, 19),
        "Kind": (21, 24),
        "plugins.Plugin": (26, 30),
        "Shop.Rules.allow": (32, 36),
        "CartService": (38, 41),
        "CartService.value": (43, 46),
        "CartService.checkout": (48, 51),
        "Options": (53, 53),
        "default": (55, 57),
    },
    ("router.rs", "code-rust"): {
        "Router": (5, 10),
        "Method": (12, 15),
        "Router.new": (17, 22),
        "Router.route": (24, 27),
        "Router.fmt": (29, 33),
        "Handler": (35, 38),
        "Handler.name": (40, 43),
        "top_level!": (45, 49),
        "tests.routes": (51, 58),
    },
    ("widgets.cpp", "code-cpp"): {
        "api_open": (1, 4),
        "api_close": (5, 8),
        "LIB_EXPORT": (10, 15),
        "Widget": (17, 25),
        "Widget.size": (27, 30),
        "Widget.size_": (32, 34),
        "widen": (36, 41),
        "DllMain": (43, 45),
        "WidgetTest.KeepsItsSize": (47, 49),
        "WidgetFixture.Grows": (51, 54),
        "read": (56, 59),
        "Mode": (61, 64),
        "old_size": (66, 67),
        "older_size": (69, 71),
        "plain_size": (73, 73),
    },
    ("stack.cpp", "code-cpp"): {
        "ds.detail.Stack": (3, 20),
        "ds.detail.Stack.push": (12, 14),
        "ds.detail.Stack.empty": (22, 25),
        "ds.detail.Stack.operator=": (27, 32),
        "Ints": (34, 34),
        "Color": (36, 36),
        "stack_size": (38, 42),
        "ds.detail.Stack.~Stack": (44, 47),
    },
    ("stack.go", "code-go"): {
        "ErrEmpty": (5, 8),
        "Stack": (9, 12),
        "Queue": (14, 16),
        "Less": (18, 19),
        "Pusher": (21, 24),
        "Stack.Push": (26, 27),
        "Queue.Push": (29, 29),
        "Queue.Len": (31, 33),
        "Map": (35, 38),
        "init": (40, 46),
    },
    ("view.tsx", "code-typescript"): {
        "List": (3, 5),
        "App": (7, 9),
    },
}


def spans_of(name: str, source_type: str, max_chars: int = 1000) -> list[Span]:
    return sound_spans(name, (FIXTURES / name).read_text(encoding="utf-8"), source_type, max_chars=max_chars)


@pytest.mark.parametrize(("name", "source_type"), EXPECTED, ids=lambda value: value)
def test_every_declaration_is_found_where_it_stands(name: str, source_type: str) -> None:
    assert places(spans_of(name, source_type)) == EXPECTED[name, source_type]


@pytest.mark.parametrize(("name", "source_type"), EXPECTED, ids=lambda value: value)
@pytest.mark.parametrize("max_chars", [30, 120, 400])
def test_spans_are_sound_however_small_they_must_be(name: str, source_type: str, max_chars: int) -> None:
    spans_of(name, source_type, max_chars)


def titles_and_headers(name: str, source_type: str) -> dict[str | None, tuple[str, str]]:
    return {span.symbol: (span.title, span.header) for span in spans_of(name, source_type)}


def test_types_on_one_row_share_a_span_that_names_both() -> None:
    title, header = titles_and_headers("Blocks.cs", "code-csharp")["Shop.Inner"]

    assert title == "Shop.Inner.IThing, Kind"
    assert header == "blocks: shop inner i thing. kind it"


def test_documentation_comments_lose_their_marks() -> None:
    csharp = titles_and_headers("Orders.cs", "code-csharp")
    java = titles_and_headers("Cart.java", "code-java")

    assert ". Computes what is paid back." in csharp["Shop.Orders.OrderService.ComputeRefund"][1]
    assert ". Ships and refunds orders." in csharp["Shop.Orders.OrderService"][1]
    assert java["Cart"][1].startswith("cart. Holds the lines of an order. entity table name carts")


def test_a_method_of_a_trait_implementation_names_the_trait() -> None:
    assert titles_and_headers("router.rs", "code-rust")["Router.fmt"][1].endswith("display")


def test_prototypes_and_constants_that_stand_together_are_all_named() -> None:
    assert titles_and_headers("queue.c", "code-c")["queue_push"][0] == "queue_push"
    assert spans_of("deploy.sh", "code-bash")[0].title == "REGION, RETRIES"


def test_a_header_file_in_cpp_is_read_as_cpp() -> None:
    code = (
        "#pragma once\nnamespace ds {\nclass Stack {\n public:\n  void push(int v) {\n    items.add(v);\n  }\n};\n}\n"
    )

    assert places(sound_spans("include/stack.h", code, "code-c")) == {"ds.Stack": (2, 4), "ds.Stack.push": (5, 9)}


def test_jsx_and_angle_bracket_casts_each_have_their_grammar() -> None:
    cast = "const n = <number>value;\nfunction f() {\n  return <any>n;\n}\n"
    view = "const V = () => <b>{1}</b>;\nfunction f() {\n  return <V />;\n}\n"

    assert places(sound_spans("a.ts", cast, "code-typescript"))["f"] == (2, 4)
    assert places(sound_spans("a.tsx", view, "code-typescript"))["f"] == (2, 4)


def test_what_only_opens_something_stays_with_what_follows() -> None:
    body = "\n".join(f"        step_{number}(with_some, arguments)" for number in range(12))
    code = f"import sys\n\nif sys.platform == 'win32':\n\n    def run():\n{body}\n\nelse:\n\n    def run():\n{body}\n"

    spans = sound_spans("a.py", code, "code-python")

    assert [span.symbol for span in spans] == [None, "run", "run"]
    assert spans[2].text.startswith("else:\n\n    def run():")


def test_blanked_macros_leave_every_byte_where_it_was() -> None:
    data = (FIXTURES / "widgets.cpp").read_bytes()

    blanked = without_macros(data)

    assert len(blanked) == len(data)
    assert all(new in (old, 0x20, ord("1")) for old, new in zip(data, blanked, strict=True))
    assert b"LIB_" not in blanked.replace(b"#  define LIB_EXPORT export", b"")
    assert b"MODE_A,\n  MODE_B\n" in blanked


def test_a_url_in_a_template_literal_swallows_nothing() -> None:
    functions = "".join(f"export function part{number}() {{\n  return {number};\n}}\n" for number in range(40))
    code = "export const config = {\n  url: `ws://localhost/${key}/realtime`,\n};\n" + functions

    found = places(sound_spans("tpl.ts", code, "code-typescript"))

    assert len(found) == 41
    assert found["part39"] == (121, 123)


def test_an_inline_template_is_part_of_its_component() -> None:
    code = (
        '@Component({\n  selector: "app-card",\n  template: `\n    <h2>{{ title }}</h2>\n'
        '    @if (open) { <button (click)="toggle()">MARK</button> }\n  `,\n})\nexport class CardComponent {\n'
        "  toggle() {\n    this.open = !this.open;\n  }\n}\n"
    )

    spans = sound_spans("card.component.ts", code, "code-typescript")

    assert places(spans) == {"CardComponent": (1, 8), "CardComponent.toggle": (9, 12)}
    assert "MARK" in spans[0].text


def test_members_of_one_short_row_each_have_their_own_span() -> None:
    code = (
        "case class Size(w: Int, h: Int) extends A {\n  def area = w * h\n  def wide = w > h\n  def tall = h > w\n}\n"
    )

    spans = sound_spans("Size.scala", code, "code-scala")

    assert [span.title for span in spans] == ["Size", "Size.area", "Size.wide", "Size.tall"]


def test_a_long_enum_with_documented_members_is_cut_at_members() -> None:
    members = "".join(f"    /// {'What it means. ' * 15}\n    Member{number},\n\n" for number in range(8))
    code = f"/// All kinds.\npub enum Kind {{\n{members}}}\n"

    found = places(sound_spans("kind.rs", code, "code-rust"))

    assert found["Kind.Member3"] == (12, 13)


def test_an_annotation_with_a_remark_stays_with_its_function() -> None:
    code = (
        'internal fun one(): Int = 1 and 2\n\n@Suppress("A") // Sugar.\ninternal inline fun two(a: Long): Long = a\n\n'
        '@Suppress("B") // Sugar.\ninternal inline fun three(a: Long): Long = a\n'
    )

    assert places(sound_spans("Util.kt", code, "code-kotlin")) == {"one": (1, 1), "two": (3, 4), "three": (6, 7)}


def test_what_follows_the_functions_inside_a_long_one_stays_with_them() -> None:
    doc = "\n".join(f"    Line {number} of a long explanation of what it does." for number in range(24))
    code = f'def route(rule):\n    """Registers.\n\n{doc}\n    """\n\n'
    code += "    def decorator(f):\n        return f\n\n    return decorator\n"

    spans = sound_spans("app.py", code, "code-python")

    assert spans[-1].symbol == "route.decorator"
    assert spans[-1].text.endswith("    return decorator")


def test_the_bare_head_of_a_long_function_stays_with_what_is_first_in_it() -> None:
    inner = "    struct Inner;\n\n" + "".join(f"    check({number});\n" for number in range(80))
    code = f"#[test]\nfn rejects() {{\n{inner}}}\n"

    first = sound_spans("a.rs", code, "code-rust")[0]

    assert (first.title, first.text) == ("rejects, Inner", "#[test]\nfn rejects() {\n    struct Inner;")
