"""Declarations that a grammar alone would lose: each found under its own symbol, on its own lines."""

from __future__ import annotations

import pytest

from tests.unit.chunkers.soundness import Declared, declared

OTHERS: list[tuple[str, str, str, str, Declared]] = [
    (
        "modules by hand, exports and named arguments",
        "cart.js",
        "code-javascript",
        """\
(function ($) {
  function inner() {
    return 1;
  }

  var later = function () {};
})(jQuery);

define(['a'], function (a) {
  function helper() {
    return a;
  }
});

module.exports = {
  limit: 3,
  add(item) { return item; },
  remove: function (item) {},
};

defineGetter(req, 'secure', function secure() {
  return this.protocol === 'https';
});
""",
        [
            (None, 1, 1),
            ("inner", 2, 4),
            ("later", 6, 7),
            ("helper", 9, 13),
            ("add", 15, 17),
            ("remove", 18, 19),
            ("secure", 21, 23),
        ],
    ),
    (
        "an interface that is called, without semicolons",
        "each.ts",
        "code-typescript",
        """\
interface Each {
  <T>(cases: T[]): void
  (name: string): Runner<
    string
  >
  <T>(cases: T[], name: string): void
  timeout: number
}

function after() {
  return 1;
}
""",
        [("Each", 1, 8), ("after", 10, 12)],
    ),
    (
        "what calls make of Ruby",
        "cart.rb",
        "code-ruby",
        """\
class Cart < Base
  attr_accessor :items

  self.limit = 3

  if RUBY_VERSION >= "3"
    def except(*keys)
      super
    end
  end

  def sum
    1
  end unless method_defined?(:sum)

  private def secret
    2
  end

  private_class_method def self.hush
    3
  end

  define_method(:loud) do |x|
    x.upcase
  end

  alias_method :size, :count
end

Point = Struct.new(:x, :y) do
  def length
    x
  end
end

refine String do
  def shout
    upcase
  end
end
""",
        [
            ("Cart", 1, 6),
            ("Cart.except", 7, 10),
            ("Cart.sum", 12, 14),
            ("Cart.secret", 16, 18),
            ("Cart.hush", 20, 22),
            ("Cart.loud", 24, 26),
            ("Cart.size", 28, 29),
            ("Point", 31, 31),
            ("Point.length", 32, 35),
            ("String.shout", 37, 41),
        ],
    ),
    (
        "tests of Bats, and strings that its grammar misreads",
        "cart.bats",
        "code-bash",
        """\
@test "adds (two) items" {
  run add "\\`$ITEM\\`"
  [[ "$output" = *"added $ITEM"* ]] || false
}

# The other way.
@test 'removes' {
  run remove
}

setup() {
  :
}
""",
        [("adds (two) items", 1, 4), ("removes", 6, 9), ("setup", 11, 13)],
    ),
    (
        "functions in loops",
        "patch.py",
        "code-python",
        """\
for name in NAMES:
    def patched(self):
        return name

    setattr(Cart, name, patched)


while True:
    def once():
        return 1
    break
""",
        [("patched", 1, 3), (None, 5, 8), ("once", 9, 11)],
    ),
    (
        "arrays beside quoted names, and more that is created",
        "shop.sql",
        "data-schema",
        """\
SELECT check_args('a', ARRAY['text[]', 'date'], ARRAY['int', 'text[]'], '{}'::text[]);

CREATE FUNCTION total(amounts int[]) RETURNS int AS $$ SELECT 1 $$ LANGUAGE sql;

CREATE AGGREGATE longest(text) (sfunc = longer, stype = text);

CREATE FOREIGN TABLE remote_orders (id int) SERVER warehouse;

SELECT [odd name] FROM [shop].[orders];
""",
        [(None, 1, 1), ("total", 3, 3), ("longest", 5, 5), ("remote_orders", 7, 7), (None, 9, 9)],
    ),
    (
        "what an implementation fixes, apart from its functions",
        "iter.rs",
        "code-rust",
        """\
impl Iterator for Rows {
    type Item = Row;

    fn next(&mut self) -> Option<Row> {
        None
    }
}
""",
        [("Rows", 1, 2), ("Rows.next", 4, 7)],
    ),
    (
        "Cython",
        "parser.pyx",
        "code-python",
        """\
from libc.string cimport memcpy

cdef extern from "fast.h":
    int fast_feed(const char *data,
                  size_t size)
    struct fast_state:
        int at

cdef class Parser:
    \"\"\"Parses.\"\"\"
    cdef:
        int at

    def __cinit__(self, int at=0):
        self.at = at

    cdef inline object _feed(self, const unsigned char[:] data, bint last=*) except *:
        cdef int size = 1
        return <object>data

    @cython.boundscheck(False)
    cpdef int last(self) nogil:
        return self.at

cdef inline int after(char *p) noexcept nogil:
    return 1
""",
        [
            (None, 1, 1),
            ("fast_feed", 3, 5),
            ("fast_state", 6, 7),
            ("Parser", 9, 15),
            ("Parser._feed", 17, 19),
            ("Parser.last", 21, 23),
            ("after", 25, 26),
        ],
    ),
    (
        "rows of Scala end where the next declaration begins",
        "Cart.scala",
        "code-scala",
        """\
object Cart:
  def add(item: Item): Unit =
    items += item
    log(item)
  val limit = 3

  def clear(): Unit =
    items.clear()
end Cart
""",
        [("Cart", 1, 1), ("Cart.add", 2, 4), ("Cart.limit", 5, 5), ("Cart.clear", 7, 9)],
    ),
    (
        "tests of Scala by what they say",
        "CartTest.scala",
        "code-scala",
        """\
class CartTest extends AnySpec:
  test("adds one") {
    add(1)
  }

  it should "remove" in supervised:
    remove(1)

  "An empty cart" when {
    "asked" should {
      "total 0" in {
        total()
      }
    }
  }

  test("groups") {
    test("nested") { one() }
    test("other") { two() }
  }
""",
        [
            ("CartTest", 1, 1),
            ("CartTest.adds one", 2, 4),
            ("CartTest.it should remove", 6, 7),
            ("CartTest.An empty cart.asked.total 0", 9, 15),
            ("CartTest.groups.nested", 17, 18),
            ("CartTest.groups.other", 19, 20),
        ],
    ),
    (
        "tests, routes and a nameless class of PHP",
        "cart.php",
        "code-php",
        """\
<?php
it('adds', function () {
    expect(add(1))->toBe(1);
})->group('slow');

describe('cart', function () {
    test('is empty', fn () => expect(total())->toBe(0));
});

Route::get('/carts', function () {
    return Cart::all();
});

return new class extends Migration {
    public function up(): void {}

    public function down(): void {}
};
""",
        [
            (None, 1, 1),
            ("adds", 2, 4),
            ("cart.is empty", 6, 8),
            ("GET /carts", 10, 12),
            ("up", 14, 15),
            ("down", 17, 18),
        ],
    ),
    (
        "items inside macros of Rust",
        "net.rs",
        "code-rust",
        """\
cfg_net! {
    /// Opens.
    pub fn open() -> Socket {
        Socket
    }

    impl Socket {
        fn close(&self) {}
    }
}

lazy_static! {
    static ref CACHE: Map = Map::new();
}

bitflags! {
    pub struct Flags: u8 {
        const READ = 1;
    }
}
""",
        [("open", 1, 5), ("Socket.close", 7, 10), ("CACHE", 12, 14), ("Flags", 16, 20)],
    ),
]


@pytest.mark.parametrize(
    ("path", "source_type", "text", "expected"), [c[1:] for c in OTHERS], ids=[c[0] for c in OTHERS]
)
def test_declarations_of_other_makes(path: str, source_type: str, text: str, expected: Declared) -> None:
    assert declared(path, text, source_type) == expected


CALL = """\
  // Gets thing {0} by its name, as it stands now.
  rpc Get{0}(Request{0}) returns (Thing{0}) {{
    option (http) = {{ get: "/v1/things/{0}" }};
  }}

"""


def test_calls_of_a_long_service_are_each_under_their_own_name() -> None:
    calls = "".join(CALL.format(number) for number in range(8))
    head = 'syntax = "proto3";' + "\n\n // Keeps things.\n service Things {\n"

    spans = declared("things.proto", head + calls + " }\n", "data-schema")

    assert spans[0] == ("syntax", 1, 1)
    assert spans[1] == ("Things", 3, 4)
    assert spans[2:4] == [("Things.Get0", 5, 8), ("Things.Get1", 10, 13)]
    assert spans[-1] == ("Things.Get7", 40, 45)
