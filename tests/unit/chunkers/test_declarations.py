"""Declarations that a grammar alone would lose: each found under its own symbol, on its own lines."""

from __future__ import annotations

import pytest

from tests.unit.chunkers.soundness import sound_spans

Found = list[tuple[str | None, int, int]]


def found(path: str, text: str, source_type: str) -> Found:
    return [(span.symbol, span.start_line, span.end_line) for span in sound_spans(path, text, source_type)]


C_FAMILY: list[tuple[str, str, str, Found]] = [
    (
        "a modifier chosen by a condition",
        "code-csharp",
        """\
namespace Shop
{
    /// <summary>Money.</summary>
#if SHOP_INTERNAL
    internal
#else
    public
#endif
    struct Money
    {
        public int Cents() { return 1; }
    }
}
""",
        [("Shop.Money", 1, 10), ("Shop.Money.Cents", 11, 13)],
    ),
    (
        "two heads and one body",
        "code-c",
        """\
int before(void) { return 0; }

#ifdef _WIN32
int start(wchar_t *args[]) {
#else
int start(char *args[]) {
#endif
  return run(args);
}

int after(void) { return 2; }
""",
        [("before", 1, 1), ("start", 3, 9), ("after", 11, 11)],
    ),
    (
        "a condition inside an expression",
        "code-csharp",
        """\
class Clock
{
    bool Reads(Type t)
#if NEW
        => t == typeof(Date)
        || t == typeof(Time);
#else
        => false;
#endif

    int Tick() { return 1; }
}
""",
        [("Clock", 1, 2), ("Clock.Reads", 3, 9), ("Clock.Tick", 11, 12)],
    ),
    (
        "both branches when they are whole",
        "code-c",
        """\
int before(void) { return 0; }

#if 0
int old(void) { return 0; }
#else
int fresh(void) { return 1; }
#endif
""",
        [("before", 1, 1), ("old", 3, 5), ("fresh", 6, 7)],
    ),
    (
        "a ref struct in parts, and writing through a pointer",
        "code-csharp",
        """\
public ref partial struct Reader
{
    unsafe void Put(byte* p)
    {
        *(int*)(p + 1) = *(int*)p;
        *p = 1;
    }
}

public class After
{
    int One() { return 1; }
}
""",
        [("Reader", 1, 2), ("Reader.Put", 3, 8), ("After", 10, 11), ("After.One", 12, 13)],
    ),
    (
        "a macro around a head",
        "code-c",
        """\
HEAP_EXPORT(void heap_init(struct heap *heap));

HEAP_EXPORT(void heap_init(struct heap *heap)) {
  heap->min = 0;
}

UNUSED_BY(static int heap_size(void)) {
  return 0;
}
""",
        [("heap_init", 1, 5), ("heap_size", 7, 9)],
    ),
    (
        "calling conventions",
        "code-c",
        """\
DWORD WINAPI pump(void *argument) {
  return 0;
}

int *__stdcall next(void) { return 0; }
""",
        [("pump", 1, 3), ("next", 5, 5)],
    ),
    (
        "comments inside a long macro",
        "code-c",
        """\
#define QUIET \\
    SUPPRESS(1) /* one */ \\
    SUPPRESS(2)

int loud(void) { return 1; }
""",
        [("QUIET", 1, 3), ("loud", 5, 5)],
    ),
    (
        "macros in place of try, catch and a section",
        "code-cpp",
        """\
class Store {
 public:
  int at(int i) {
    STORE_TRY
    {
      return items.at(i);
    }
    STORE_CATCH (const Error& e) {
      STORE_THROW(e);
    }
    STORE_CATCH(...) {}
  }

 PRIVATE_UNLESS_TESTED:
  int size() { return 0; }

  DEFINE_EQUALS(Store, items)
};

int after() { return 1; }
""",
        [("Store", 1, 2), ("Store.at", 3, 12), ("Store.size", 14, 15), ("Store", 17, 18), ("after", 20, 20)],
    ),
    (
        "a test with decorators, and a type that only an assertion names",
        "code-cpp",
        """\
TEST_CASE("round trips" * slow() * skip(true)) {
  CHECK_THROWS_AS(read(), store::bad_read&);
}

int after() { return 1; }
""",
        [("round trips", 1, 3), ("after", 5, 5)],
    ),
    (
        "members that a compiler must be told of",
        "code-cpp",
        """\
class Tree {
 public:
  template <typename T, typename Array = T (&)[3], int N = 0>
  Array copy(T (&to)[3]) const { return to; }
  int find(int key) {
    // first what is there
    TREE_TRY
    {
      return map->operator[](key) + node.template get<int>();
    }
  }
};

int after() { return 1; }
""",
        [("Tree", 1, 2), ("Tree.copy", 3, 4), ("Tree.find", 5, 12), ("after", 14, 14)],
    ),
    (
        "signals and slots",
        "code-cpp",
        """\
class Button : public QObject {
  Q_OBJECT
 public slots:
  void press() { emit pressed(); }
 signals:
  void pressed();
};
""",
        [("Button", 1, 3), ("Button.press", 4, 4), ("Button.pressed", 5, 7)],
    ),
    (
        "a specialisation, whatever its arguments",
        "code-cpp",
        """\
template <typename R>
struct view<R, enable_if_t<(is_range<R>::value && sizeof(R) > 2)>> {
  int size() const { return 1; }
};

template <> int a::view<int>::size() const { return 2; }

a::view<int>::operator bool() const { return true; }
""",
        [("view", 1, 2), ("view.size", 3, 4), ("a.view.size", 6, 6), ("a.view.operator bool", 8, 8)],
    ),
    (
        "a constructor behind two modifiers, and an instantiation above",
        "code-cpp",
        """\
extern template STORE_API auto separator(locale) -> char;

struct Args {
  int count;

  constexpr STORE_INLINE Args(int n) : count(n) {}
  int size() const { return count; }
};
""",
        [(None, 1, 1), ("Args", 3, 6), ("Args.size", 7, 8)],
    ),
    (
        "a flag among constants, and a guard that is none",
        "code-c",
        """\
#ifndef SHOP_H
#define SHOP_H

#define SHOP_QUIET
#define SHOP_SIZE 3

#endif
""",
        [(None, 1, 7)],
    ),
]


@pytest.mark.parametrize(
    ("source_type", "text", "expected"), [case[1:] for case in C_FAMILY], ids=[c[0] for c in C_FAMILY]
)
def test_what_a_preprocessor_would_take_away(source_type: str, text: str, expected: Found) -> None:
    assert found("shop/file.x", text, source_type) == expected


KOTLIN: list[tuple[str, str, Found]] = [
    (
        "words that are keywords elsewhere",
        """\
fun dynamic() = 1
fun by() = 2
fun suspend(open: Int) = open

class Pump {
  private var final = false

  fun run() {
    while (!final) {
      final = true
      by.write(1)
    }
  }

  fun value(): dynamic = js("1")
}
""",
        [
            ("dynamic", 1, 1),
            ("by", 2, 2),
            ("suspend", 3, 3),
            ("Pump", 5, 6),
            ("Pump.run", 8, 13),
            ("Pump.value", 15, 16),
        ],
    ),
    (
        "suspend and inline where they are keywords",
        """\
suspend fun load(then: suspend () -> Unit) {
  then()
}

inline fun <T> run(crossinline body: () -> T): T = body()
""",
        [("load", 1, 3), ("run", 5, 5)],
    ),
    (
        "a platform's half",
        """\
actual open class Text
internal actual constructor(
  internal actual val data: ByteArray,
) : Comparable<Text> {
  actual fun size() = 1

  actual companion object {
    actual fun of(vararg data: Byte): Text = Text(data)
  }
}
""",
        [("Text", 1, 4), ("Text.size", 5, 5), ("Text.of", 7, 10)],
    ),
    (
        "annotations above soft modifiers",
        """\
@Target(
  AnnotationTarget.CLASS,
)
annotation class Shown

@Serializable
@Rename("m")
data class Money(val cents: Int)

@Shown(Money::class)
enum class Unit { EURO }
""",
        [("Shown", 1, 4), ("Money", 6, 8), ("Unit", 10, 11)],
    ),
    (
        "an annotated getter",
        """\
class Box {
  val size
    @JvmName("size")
    get() = count()

  fun count() = 1
}
""",
        [("Box", 1, 4), ("Box.count", 6, 7)],
    ),
]


@pytest.mark.parametrize(("text", "expected"), [case[1:] for case in KOTLIN], ids=[case[0] for case in KOTLIN])
def test_kotlin_that_its_grammar_does_not_read(text: str, expected: Found) -> None:
    assert found("shop/file.kt", text, "code-kotlin") == expected


def test_annotations_are_in_the_header_and_not_in_its_sentence() -> None:
    text = """\
/** What a thing costs. */
@Table("prices")
data class Price(val cents: Int)
"""

    (span,) = sound_spans("Price.kt", text, "code-kotlin")

    assert (span.symbol, span.start_line) == ("Price", 1)
    assert ". What a thing costs" in span.header
    assert "table prices" in span.header.lower()


OTHERS: list[tuple[str, str, str, str, Found]] = [
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
def test_declarations_of_other_makes(path: str, source_type: str, text: str, expected: Found) -> None:
    assert found(path, text, source_type) == expected


CALL = """\
  // Gets thing {0} by its name, as it stands now.
  rpc Get{0}(Request{0}) returns (Thing{0}) {{
    option (http) = {{ get: "/v1/things/{0}" }};
  }}

"""


def test_calls_of_a_long_service_are_each_under_their_own_name() -> None:
    calls = "".join(CALL.format(number) for number in range(8))
    head = 'syntax = "proto3";' + "\n\n // Keeps things.\n service Things {\n"

    spans = found("things.proto", head + calls + " }\n", "data-schema")

    assert spans[0] == ("syntax", 1, 1)
    assert spans[1] == ("Things", 3, 4)
    assert spans[2:4] == [("Things.Get0", 5, 8), ("Things.Get1", 10, 13)]
    assert spans[-1] == ("Things.Get7", 40, 45)


EDGES: list[tuple[str, str, str, str, Found]] = [
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
def test_where_chunks_begin_and_end(path: str, source_type: str, text: str, expected: Found) -> None:
    assert found(path, text, source_type) == expected


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

    assert found("plugin.js", text, "code-javascript") == [
        ("plugin", 1, 29),
        ("plugin.load", 30, 44),
        ("plugin", 45, 49),
    ]
