"""Kotlin that its grammar does not read, and annotations."""

from __future__ import annotations

import pytest

from tests.unit.chunkers.soundness import Declared, declared, sound_spans

KOTLIN: list[tuple[str, str, Declared]] = [
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
def test_kotlin_that_its_grammar_does_not_read(text: str, expected: Declared) -> None:
    assert declared("shop/file.kt", text, "code-kotlin") == expected


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
