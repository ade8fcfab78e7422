from __future__ import annotations

import pytest
from rich.cells import cell_len

from tui.text import clean_lines, count, duration, plain, shorten_end, shorten_start


@pytest.mark.parametrize("width", range(12))
@pytest.mark.parametrize("text", ["src/app/main.py", "日本語/名前.py", "👩‍👩‍👧👩‍👩‍👧👩‍👩‍👧", "e\u0301" * 9, ""])
def test_shortened_text_fits_and_loses_no_more_than_it_must(text: str, width: int) -> None:
    for shortened in (shorten_start(text, width), shorten_end(text, width)):
        assert cell_len(shortened) <= width
        assert cell_len(text) > width or shortened == text
    assert shorten_start("src/app/main.py", 8) == "…main.py"
    assert shorten_end("src/app/main.py", 8) == "src/app…"


def test_lines_end_however_they_were_ended() -> None:
    assert clean_lines("a\nb\r\nc\rd\u2028e\x1b[2Jf") == ["a", "b", "c", "d", "e[2Jf"]


def test_brackets_are_no_markup() -> None:
    content = plain("[/][bold]x[/bold]\x07", "bold")
    assert content.plain == "[/][bold]x[/bold]"
    assert [span.style for span in content.spans] == ["bold"]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-1, "0.0 s"),
        (0.04, "0.0 s"),
        (9.94, "9.9 s"),
        (12.4, "12 s"),
        (59.6, "1 min"),
        (200, "3 min 20 s"),
        (3900, "1 h 5 min"),
    ],
)
def test_durations_are_told_as_people_tell_them(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def test_counting() -> None:
    assert [count(1, "source"), count(0, "source"), count(1204, "point")] == ["1 source", "0 sources", "1,204 points"]
