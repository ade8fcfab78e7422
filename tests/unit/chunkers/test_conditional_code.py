"""Declarations around which a preprocessor or a macro stands: each found under its own symbol, on its own lines."""

from __future__ import annotations

import pytest

from tests.unit.chunkers.soundness import Declared, declared

C_FAMILY: list[tuple[str, str, str, Declared]] = [
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
def test_what_a_preprocessor_would_take_away(source_type: str, text: str, expected: Declared) -> None:
    assert declared("shop/file.x", text, source_type) == expected
