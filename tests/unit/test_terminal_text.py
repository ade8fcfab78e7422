"""No text of others reaches a terminal as anything but text."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragpilot.terminal_text import clean, clean_line


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("größer ✓\t日本\n", "größer ✓\t日本\n"),
        ("\x1b]52;c;ZXZpbA==\x07", "]52;c;ZXZpbA=="),
        ("\x1b[2J\x9b1m", "[2J1m"),
        ("a\r\nb\rc", "a\nbc"),
        ("user\u202etxt.exe\u2066x\u2069", "usertxt.exex"),
        ("\ufeffbom", "bom"),
        ("tag\U000e0041", "tag"),
        ("half \ud83d", "half \ufffd"),
        ("line\u2028two", "line\ntwo"),
        ("family 👩\u200d👧", "family 👩\u200d👧"),
    ],
)
def test_what_is_left(text: str, shown: str) -> None:
    assert clean(text) == shown


def test_one_line_stays_one() -> None:
    assert clean_line("src/a\nb\tc\x1b[31m.py") == "src/a b c[31m.py"


@given(st.text(st.characters(), max_size=60), st.integers(0, 60))
def test_no_control_is_left_and_pieces_do_not_matter(text: str, cut: int) -> None:
    cleaned = clean(text)
    assert clean(text[:cut]) + clean(text[cut:]) == cleaned
    assert all(unicodedata.category(char) not in {"Cc", "Cs"} or char in "\n\t" for char in cleaned)
    cleaned.encode()
    assert "\n" not in clean_line(text)
