"""Counting and cutting by any tokenizer: in segments, so that long texts stay cheap and none can break it."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator

SEGMENT_CHARS = 4096
"""A segment ends at the first safe boundary behind this many characters."""
SEGMENT_LIMIT = 8192
"""Where a segment ends that holds no such boundary: one endless word, or a run of blanks."""
LOOKAHEAD_CHARS = 128
"""How far behind the cut between two tokens a longer prefix of as few tokens is looked for."""

# Between a word and a blank, and between a line's end and what follows it, no tokenizer here has a token that
# reaches across: counts on both sides add up to the count of the whole.
_BOUNDARY = re.compile(r"[^\W_](?=[ \t\r\n])|\n(?=\S)")
_SURROGATE = re.compile("[\ud800-\udfff]")


def encodable(text: str) -> str:
    """``text`` with each lone surrogate replaced: of the same length, and valid UTF-8."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def segments(text: str, size: int = SEGMENT_CHARS, limit: int = SEGMENT_LIMIT) -> Iterator[str]:
    """Cut ``text`` into parts of about ``size`` and at most ``limit`` characters, at boundaries where there are any.

    A prefix of ``text`` is cut at the same places, as far as it reaches.
    """
    start = 0
    while len(text) - start > size:
        boundary = _BOUNDARY.search(text, start + size - 1, start + limit)
        end = boundary.end() if boundary else min(start + limit, len(text))
        yield text[start:end]
        start = end
    if start < len(text):
        yield text[start:]


class PrefixCounter(ABC):
    """A TokenCounter over a tokenizer that can count a short text and say how far its first tokens reach."""

    @abstractmethod
    def _tokens(self, text: str) -> int:
        """Tokens of a text of at most ``SEGMENT_LIMIT`` characters, valid UTF-8."""

    @abstractmethod
    def _reach(self, text: str, tokens: int) -> int:
        """Whole characters that the first ``tokens`` tokens of such a text cover."""

    def count(self, text: str) -> int:
        """Tokens of ``text``; 0 for the empty string."""
        return sum(self._tokens(segment) for segment in segments(encodable(text)))

    def truncate(self, text: str, tokens: int) -> str:
        """The longest prefix of ``text`` found that counts at most ``tokens``, at a whole character."""
        kept, left = 0, tokens
        if left <= 0:
            return ""
        for segment in segments(encodable(text)):
            needed = self._tokens(segment)
            if needed > left:
                return text[: kept + self._longest(segment, left)]
            kept += len(segment)
            left -= needed
        return text

    def _longest(self, segment: str, tokens: int) -> int:
        """Length of the longest prefix of ``segment`` that counts at most ``tokens``.

        A prefix is counted anew, not taken at the cut between two tokens: cut text may count more than it did as
        part of the whole, and a longer one sometimes less.
        """
        reach = self._reach(segment, tokens)
        anchor = max((found.end() for found in _BOUNDARY.finditer(segment, 0, reach + 1)), default=0)
        room = tokens - self._tokens(segment[:anchor])
        for end in range(min(reach + LOOKAHEAD_CHARS, len(segment)), anchor, -1):
            if self._tokens(segment[anchor:end]) <= room:
                return end
        return anchor
