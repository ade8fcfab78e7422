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
