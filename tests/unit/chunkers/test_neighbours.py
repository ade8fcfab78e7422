"""What stands beside each other: everything under its own name, or under what it shares with its neighbours."""

from __future__ import annotations

import pytest

from ragpilot.ingest.chunkers.labels import shared_symbol
from tests.unit.chunkers.soundness import sound_spans


def found(path: str, text: str, source_type: str) -> list[tuple[str | None, int, int]]:
    return [(span.symbol, span.start_line, span.end_line) for span in sound_spans(path, text, source_type)]


@pytest.mark.parametrize(
    ("symbols", "shared"),
    [
        ([], None),
        (["Cart.add"], "Cart.add"),
        (["Cart.add", "Cart.remove"], "Cart"),
        (["Cart", "Cart.add"], "Cart"),
        (["shop.Cart.add", "shop.Order.pay"], "shop"),
        (["Cart", "Cartridge"], None),
        (["LIMIT", "TIMEOUT"], None),
    ],
)
def test_symbols_share_what_they_lie_in(symbols: list[str], shared: str | None) -> None:
    assert shared_symbol(symbols) == shared


@pytest.mark.parametrize(
    ("path", "source_type", "text", "expected"),
    [
        (
            "billing.py",
            "code-python",
            "class Billing:\n    def charge(self): return 1\n    def refund(self): return 2\n",
            [("Billing", 1, 1), ("Billing.charge", 2, 2), ("Billing.refund", 3, 3)],
        ),
        (
            "billing.rb",
            "code-ruby",
            "class Billing\n  def charge = 1\n  def refund = 2\nend\n",
            [("Billing", 1, 1), ("Billing.charge", 2, 2), ("Billing.refund", 3, 4)],
        ),
        (
            "billing.rs",
            "code-rust",
            "impl Billing {\n    fn charge() -> u8 { 1 }\n    fn refund() -> u8 { 2 }\n}\n",
            [("Billing.charge", 1, 2), ("Billing.refund", 3, 4)],
        ),
        (
            "billing.cpp",
            "code-cpp",
            "int charge() { return 1; }\nint refund() { return 2; }\n",
            [("charge", 1, 1), ("refund", 2, 2)],
        ),
        (
            "billing.sh",
            "code-bash",
            "charge() { echo 1; }\nrefund() { echo 2; }\n",
            [("charge", 1, 1), ("refund", 2, 2)],
        ),
    ],
)
def test_neighbours_of_one_row_are_each_under_their_own_symbol(
    path: str, source_type: str, text: str, expected: list[tuple[str | None, int, int]]
) -> None:
    assert found(path, text, source_type) == expected


def test_constants_are_apart_where_a_comment_a_blank_row_or_their_length_says_so() -> None:
    text = (
        "import os\n"
        "\n"
        "HOST = 'localhost'\n"
        "PORT = 80\n"
        "\n"
        "# Seconds before a request is given up.\n"
        "TIMEOUT = 30\n"
        "\n"
        "RETRIES = 3\n"
        "STATES = {\n"
        "    'new': 1,\n"
        "    'paid': 2,\n"
        "}\n"
        "logger = make_logger(__name__)\n"
        "\n"
        "configure(os.environ, host=HOST, port=PORT, logger=logger)\n"
    )

    assert found("settings.py", text, "code-python") == [
        (None, 1, 4),
        ("TIMEOUT", 6, 7),
        ("RETRIES", 9, 9),
        ("STATES", 10, 13),
        ("logger", 14, 14),
        (None, 16, 16),
    ]


def test_a_block_of_constants_opens_with_its_comment_and_its_bracket() -> None:
    text = (
        "package ds\n\n// States of an order.\nconst (\n\tStateNew State = iota\n\tStatePaid\n)\n\n"
        "// State is where an order stands.\ntype State int\n"
    )

    spans = sound_spans("state.go", text, "code-go")

    assert [(span.title, span.start_line, span.end_line) for span in spans] == [
        ("state.go", 1, 1),
        ("StateNew, StatePaid", 3, 7),
        ("State", 9, 10),
    ]


PROTOTYPE = (
    "/* {0} what stands at the top of the stack, and returns it.\n * NULL when there is none. */\n"
    "int {0}(struct s *s);\n"
)


def test_documented_prototypes_are_each_found_and_bare_ones_together() -> None:
    text = PROTOTYPE.format("pop") + "\n" + PROTOTYPE.format("peek") + "\nint size(void);\nint room(void);\n"

    assert found("stack.h", text, "code-c") == [("pop", 1, 3), ("peek", 5, 7), (None, 9, 10)]


def test_members_of_an_interface_are_apart_only_when_it_is_too_long_for_one_span() -> None:
    def interface(members: int) -> str:
        methods = "".join(
            f"    /**\n     * Finds what is kept under key {number}, in the order of its age.\n     */\n"
            f"    Item find{number}(long key, String region);\n\n"
            for number in range(members)
        )
        return f"/** Keeps items. */\npublic interface Repository {{\n{methods}}}\n"

    short, long = found("R.java", interface(2), "code-java"), found("R.java", interface(9), "code-java")

    assert short == [("Repository", 1, 13)]
    assert [symbol for symbol, _, _ in long] == ["Repository", *(f"Repository.find{number}" for number in range(9))]


def test_documented_signatures_above_an_implementation_belong_to_it() -> None:
    remark = "/** Reads a value, as text, from the place that is named by its key or its number. */\n"
    text = (
        remark
        + "export function read(key: string): string;\n"
        + remark
        + "export function read(key: number): string;\n"
        "export function read(key: any): string {\n  return store[key];\n}\n"
    )

    assert found("read.ts", text, "code-typescript") == [("read", 1, 7)]


def test_tests_and_routes_of_javascript_are_found_by_what_they_say() -> None:
    text = (
        "import { it } from 'vitest';\n\ndescribe('cart v1.2', () => {\n  beforeEach(reset);\n"
        "  it('adds', () => {\n    add();\n  });\n"
        "  it.each([1, 2])('takes %i', async (n) => {\n    take(n);\n  });\n"
        "  describe(`empty`, function () {\n    test('totals 0', () => {\n      total();\n    });\n  });\n});\n\n"
        "router.get('/users/:id', auth, async (req, res) => {\n  res.json(await find(req.params.id));\n});\n"
        "test('late', { timeout: 3 }, () => {\n  late();\n}, 3000);\n"
    )

    assert found("cart.test.ts", text, "code-typescript") == [
        (None, 1, 1),
        ("cart v1 2.adds", 3, 7),
        ("cart v1 2.takes %i", 8, 10),
        ("cart v1 2.empty.totals 0", 11, 16),
        ("GET /users/:id", 18, 20),
        ("late", 21, 23),
    ]


def test_tests_tasks_and_routes_of_ruby_are_found_by_what_they_say() -> None:
    text = (
        "RSpec.describe Shop::Cart do\n  context 'when empty' do\n    it 'totals 0' do\n      total\n"
        "    end\n  end\nend\n\n"
        "get '/x' do\n  erb :x\nend\n\n"
        "namespace :db do\n  task migrate: :environment do\n    run\n  end\nend\n"
    )

    assert found("mixed.rb", text, "code-ruby") == [
        ("Shop.Cart.when empty.totals 0", 1, 7),
        ("GET /x", 9, 11),
        ("db.migrate", 13, 17),
    ]


def test_test_cases_of_cpp_are_found_by_what_they_say() -> None:
    text = (
        '#include "x.h"\n\nTEST_CASE("sizes, (all)", "[vector]") {\n  REQUIRE(f() == 1);\n}\n'
        'TEMPLATE_TEST_CASE("grows", "[v]", int, float) { g(); }\n'
        'SCENARIO("a user signs in") {\n  GIVEN("x") {}\n}\n'
        'TEST_CASE_METHOD(Fixture, "holds")\n{\n  h();\n}\nTEST_F(QueueTest, Pops) { p(); }\n'
    )

    assert found("a_test.cc", text, "code-cpp") == [
        (None, 1, 1),
        ("sizes, (all)", 3, 5),
        ("grows", 6, 6),
        ("a user signs in", 7, 9),
        ("Fixture.holds", 10, 13),
        ("QueueTest.Pops", 14, 14),
    ]


@pytest.mark.parametrize(
    ("path", "source_type", "text", "expected"),
    [
        (
            "run.sh",
            "code-bash",
            'build() {\n  make\n}\ncase "$1" in\n  go) go_on ;;\nesac\n',
            [("build", 1, 3), (None, 4, 6)],
        ),
        (
            "m.py",
            "code-python",
            "def f():\n    return 1\nmatch x:\n    case 1: told()\n",
            [("f", 1, 2), (None, 3, 4)],
        ),
        (
            "m.py",
            "code-python",
            "def f():\n    return 1\nf()\n",
            [("f", 1, 3)],
        ),
        (
            "view.js",
            "code-javascript",
            "function submit() {\n  send();\n}\nwatch(total, () => { told(); });\n",
            [("submit", 1, 3), (None, 4, 4)],
        ),
        (
            "Z.java",
            "code-java",
            "class Z {\n    void one() {\n        a();\n    }\n    static { told(); }\n\n"
            "    static {\n        more();\n    }\n\n    void two() {\n        b();\n    }\n}\n",
            [("Z", 1, 1), ("Z.one", 2, 4), ("Z", 5, 9), ("Z.two", 11, 14)],
        ),
    ],
)
def test_a_statement_with_a_body_is_not_its_neighbours(
    path: str, source_type: str, text: str, expected: list[tuple[str | None, int, int]]
) -> None:
    assert found(path, text, source_type) == expected


def test_a_constructor_with_its_class_is_named_in_the_title() -> None:
    text = (
        "class Entry\n  attr_reader :type\n\n  def initialize(type)\n    @type = type\n  end\n\n  def to_s = 1\nend\n"
    )

    spans = sound_spans("entry.rb", text, "code-ruby")

    assert [(span.symbol, span.title) for span in spans] == [
        ("Entry", "Entry, initialize"),
        ("Entry.to_s", "Entry.to_s"),
    ]


@pytest.mark.parametrize(
    ("path", "source_type", "text", "expected"),
    [
        (
            "h.kt",
            "code-kotlin",
            "enum class E { A, B; fun f() = 1 }\n@Test fun `with spaces`() { told() }\nfun List<Int>.total() = sum()\n",
            [("E, f", 1, 1), ("`with spaces`", 2, 2), ("total", 3, 3)],
        ),
        (
            "b.rs",
            "code-rust",
            "use a::B;\n\nconst _: () = {\n    impl Clone for Modes {\n        fn clone(&self) -> Self {\n"
            "            *self\n        }\n    }\n};\nconst _: () = assert!(SIZE == 4);\n",
            [("b.rs", 1, 1), ("Modes.clone", 3, 10)],
        ),
        (
            "b.rs",
            "code-rust",
            "lazy_static! { static ref LAZY: u32 = 1; }\nbitflags! {\n    /// Of a page.\n    #[derive(Debug)]\n"
            "    pub struct Flags: u32 {\n        const READ = 1;\n    }\n}\n",
            [("LAZY", 1, 1), ("Flags", 2, 8)],
        ),
        (
            "b.rs",
            "code-rust",
            "bitflags! {\n    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]\n"
            "    #[repr(transparent)]\n    /// What may be done with a page, by whom and how often.\n"
            "    pub struct Modes: u8 {\n        const A = 1;\n"
            "    }\n\n    pub struct Third: u8 { const C = 1; }\n}\n",
            [("Modes, Third", 1, 10)],
        ),
        (
            "t.py",
            "code-python",
            "type Pairs[T] = list[tuple[T, T]]\n",
            [("Pairs", 1, 1)],
        ),
        (
            "p.swift",
            "code-swift",
            "protocol Flag {\n    func name(for value: Self) -> Specification\n    func help() -> Help?\n}\n",
            [("Flag", 1, 4)],
        ),
    ],
)
def test_names_that_a_grammar_hides(
    path: str, source_type: str, text: str, expected: list[tuple[str, int, int]]
) -> None:
    spans = sound_spans(path, text, source_type)

    assert [(span.title, span.start_line, span.end_line) for span in spans] == expected
    assert not any("Specification" in span.header for span in spans)
