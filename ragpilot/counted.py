"""How many of a thing there are, in words. Pure."""

from __future__ import annotations


def counted(count: int, noun: str) -> str:
    """``1 chunk``, ``2,000 chunks``."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")
