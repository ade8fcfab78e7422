from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ragpilot.ingest.chunkers.lines import Lines, cut, cut_row, paragraph_cost


def pieces(text: str, max_chars: int) -> list[str]:
    lines = Lines(text)
    return [piece.text for piece in cut(lines, 0, len(lines) - 1, max_chars, paragraph_cost(lines))]


def test_what_fits_stays_whole_without_blank_edges() -> None:
    assert pieces("\n\na\n\nb\n\n", 100) == ["a\n\nb"]
    assert pieces("\n \t\n", 100) == []


def test_pieces_are_of_like_size_and_begin_at_paragraphs() -> None:
    text = "\n\n".join("word " * 8 + str(number) for number in range(10))

    assert [len(piece) for piece in pieces(text, 200)] == [127, 127, 170]
    assert all(piece.startswith("word") for piece in pieces(text, 200))


def test_a_long_row_is_cut_at_white_space_and_its_pieces_share_a_row() -> None:
    lines = Lines("first\n" + "word " * 100 + "\nlast")
    found = list(cut(lines, 0, 2, 100, paragraph_cost(lines)))

    assert {piece.start for piece in found} == {0, 1, 2}
    assert all(piece.text.startswith("word") for piece in found if piece.start == 1)
    assert "".join(piece.text for piece in found if piece.start == 1) == lines.rows[1]


def test_the_last_piece_is_no_stump_either() -> None:
    text = "\n".join(["statement();" * 4] * 20 + ["end"])

    assert len(pieces(text, 500)[-1]) > 100


def test_a_rule_of_any_length_is_one_piece() -> None:
    assert list(cut_row("# " + "=" * 3000, 1000)) == ["# " + "=" * 998]
    assert list(cut_row("  " + "+-" * 300, 100)) == ["+-" * 50]


def test_a_row_without_any_boundary_is_cut_anyway_but_not_inside_a_cluster() -> None:
    assert [len(part) for part in cut_row("x" * 2500, 1000)] == [1000, 1000, 500]
    family = "\U0001f469\u200d\U0001f469\u200d\U0001f467"
    for part in cut_row(family * 50, 23):
        assert not part.startswith("\u200d")
        assert not part.endswith("\u200d")


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=300), st.integers(1, 40))
def test_a_row_loses_nothing_but_white_space(row: str, max_chars: int) -> None:
    parts = list(cut_row(row, max_chars))

    assert all(0 < len(part) <= max_chars and part.strip() for part in parts)
    assert "".join("".join(parts).split()) == "".join(row.split())


@given(st.text(alphabet="ab \n\r\u2028é漢", max_size=200), st.integers(1, 30))
def test_every_row_that_is_not_blank_is_in_a_piece(text: str, max_chars: int) -> None:
    lines = Lines(text)
    covered = {
        row
        for piece in cut(lines, 0, len(lines) - 1, max_chars, paragraph_cost(lines))
        for row in range(piece.start, piece.end + 1)
    }

    assert {row for row in range(len(lines)) if not lines.blank(row)} <= covered
