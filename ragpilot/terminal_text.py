"""Text on its way to a terminal, freed of what a terminal would obey.

Documents, answers, paths and error texts are other people's. An escape sequence in one of them could write to the
clipboard, rename the window or show one thing for another.
"""

from __future__ import annotations

from typing import Final

_REMOVED: Final = dict.fromkeys(
    (
        *(code for code in range(0x20) if chr(code) not in "\n\t"),  # C0: every escape sequence begins with one
        *range(0x7F, 0xA0),  # delete, and C1: the eight-bit forms of CSI, OSC and the like
        0x061C,  # marks and overrides that change the order in which text is shown
        *(0x200E, 0x200F),
        *range(0x202A, 0x202F),
        *range(0x2066, 0x206A),
        0xFEFF,
        *range(0xFFF9, 0xFFFC),  # annotations that hide what stands between them
        *range(0xE0000, 0xE0080),  # tags: a second alphabet that nobody sees
    )
)
_TABLE: Final = {**_REMOVED, **dict.fromkeys(range(0xD800, 0xE000), "\ufffd"), 0x2028: "\n", 0x2029: "\n"}


def clean(text: str) -> str:
    """``text`` without controls, bidirectional overrides and lone surrogates; breaks and tabs stay.

    Single characters are removed, never sequences, so a text that comes in pieces is cleaned piece by piece.
    """
    if text.isascii() and text.isprintable():
        return text
    return text.translate(_TABLE)


def clean_line(text: str) -> str:
    """As ``clean``, on one line."""
    cleaned = clean(text)
    return cleaned if cleaned.isprintable() else " ".join(cleaned.split())
