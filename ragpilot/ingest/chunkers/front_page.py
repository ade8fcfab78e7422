"""What a project says of itself: the opening of its README.

"What does this project do?" shares neither words nor meaning with the sentences that answer it, which name the project
and its subject. So the opening is named by what readers look for there; its body vector still holds what it says.
"""

from __future__ import annotations

import re
from dataclasses import replace

from ragpilot.ingest.chunkers.spans import Span

HEADER = "readme: overview of this repository: what this project is, what it does, what it is for"
_README = re.compile(r"readme(?:\.(?:md|markdown|mdx|rst|adoc|asciidoc|txt))?", re.IGNORECASE)
_PART = re.compile(r" \(\d+/\d+\)$")
_MOST = 3
"""Spans of a long opening that are named so; what follows is about details."""


def name_opening(path: str, spans: list[Span]) -> list[Span]:
    """The spans of a document, those under the first heading of the outermost README with ``HEADER``."""
    if not spans or not _README.fullmatch(path):
        return spans
    heading = _PART.sub("", spans[0].title)
    opening = [span for span in spans[:_MOST] if _PART.sub("", span.title) == heading]
    return [*(replace(span, header=HEADER) for span in opening), *spans[len(opening) :]]
