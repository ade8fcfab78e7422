"""Rows that hold data: an image, a font or a table of numbers as one literal within code that people have written."""

from __future__ import annotations

import re
from typing import Final

LONG: Final = 1000
"""Characters of a row that nobody has written by hand."""

_DATA: Final = re.compile(
    r"data:[\w.+-]{1,60}/[\w.+-]{1,60}[;,][^\"\s)>]{400,}"  # a picture as an address
    r"|[A-Za-z0-9+/=_%\\-]{400,}"  # base64, hexadecimal, escapes
    r"|[0-9][0-9a-fA-FxX.,;:|+ \t-]{400,}"  # numbers
)
_KEPT: Final = 60
"""Characters of each such run that stay: they say what it was."""
_CUT: Final = "…"
_ROWS_FOR_ONE: Final = 4
_ROWS_FOR_EACH: Final = 16
"""Other rows of a file that is code around one run of data, and around each of several."""


def shortened(text: str, source_type: str) -> str:
    """The text with as many rows, and runs of data in long ones cut to their beginnings.

    Notebooks and API descriptions stay as they are: they are read as a whole.
    """
    if source_type in ("notebook", "api-spec"):
        return text
    return "\n".join(without_data(row) if len(row) > LONG else row for row in text.split("\n"))


def without_data(row: str) -> str:
    """The row with its runs of data cut to their beginnings."""
    return _DATA.sub(_beginning, row)


def around_data(text: str) -> str:
    """The text as it was written: with its runs of data cut, if there are rows enough around each of them."""
    rows = text.split("\n")
    cut = {number: without_data(row) for number, row in enumerate(rows) if len(row) > LONG}
    held = [number for number, row in cut.items() if len(row) <= LONG]
    written = sum(len(row) <= LONG and bool(row.strip()) for row in rows)
    if not held or written < (_ROWS_FOR_ONE if len(held) == 1 else _ROWS_FOR_EACH * len(held)):
        return text
    for number in held:
        rows[number] = cut[number]
    return "\n".join(rows)


def _beginning(run: re.Match[str]) -> str:
    return run[0][:_KEPT] + _CUT
