"""A token counter for models whose tokenizer is not at hand: the worst case."""

from __future__ import annotations

from ragpilot.adapters.token_prefix import encodable


class ByteCounter:
    """Counts bytes of UTF-8: no tokenizer in use needs more tokens than that, however dense the text."""

    def count(self, text: str) -> int:
        """Bytes of ``text``; 0 for the empty string."""
        return len(encodable(text).encode())

    def truncate(self, text: str, tokens: int) -> str:
        """The longest prefix of ``text`` of at most ``tokens`` bytes, at a whole character."""
        raw = encodable(text).encode()
        return text if len(raw) <= tokens else text[: len(raw[: max(tokens, 0)].decode("utf-8", "ignore"))]
