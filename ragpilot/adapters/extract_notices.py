"""The notice of copyright and licence that a file begins with: nobody asks for it who does not ask about licences."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ragpilot.adapters.extract_opening import comment_at
from ragpilot.adapters.extract_words import Words

ASKED = "license licence licensed copyright"
"""Who asks with one of these words is shown the notice."""

_NOTICE = re.compile(
    r"copyright\b.*\d{4}|copyright \(c\)|\u00a9|SPDX-License-Identifier|\blicen[sc]ed (?:under|to)\b"
    r"|all rights reserved|permission is hereby granted|redistribution and use in source|is free software[;:,]",
    re.IGNORECASE,
)
_BEFORE = re.compile(r"#!|\W{1,4}.*coding[:=]|\s*$")


def notice_in(lines: Sequence[str], sign: str, words: Words) -> range:
    """The rows of the notice, where ``lines`` begin with one; none where the question is about licences.

    What a comment says before its notice, what the file is for, is no part of it.
    """
    start = 0
    while start < len(lines) and _BEFORE.match(lines[start]):
        start += 1
    if start == len(lines) or words.found(ASKED) or (comment := comment_at(lines, start, sign)) is None:
        return range(0)
    at = next((row for row in comment if _NOTICE.search(lines[row])), None)
    if at is None:
        return range(0)
    while at > comment.start and re.search(r"\w", lines[at - 1]):
        at -= 1  # the paragraph that says so
    return range(at, comment.stop)
