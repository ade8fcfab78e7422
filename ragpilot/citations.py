"""From a path to a citation line, and from ``[n]`` in an answer to the sources it names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from ragpilot.types import Chunk, ContextBlock, Source

_CODE = re.compile(r"(?P<fence>^[ ]{0,3}(`{3,}|~{3,})).*?(?:^[ ]{0,3}\2|\Z)|`[^`\n]+`", re.DOTALL | re.MULTILINE)
_CITED = re.compile(r"(?<![\w)\]])((?:\[\d{1,3}(?:\s*[,;–-]\s*\d{1,3})*\])+)(?!\()")
_RANGE = re.compile(r"(\d{1,3})\s*[–-]\s*(\d{1,3})")


def citation_line(path: str, start_line: int, end_line: int, symbol: str | None = None) -> str:
    """Where a source stands, in one line: ``src/app.py:10-42 (App.run)``; one line number where it is one line."""
    lines = f"{start_line}-{end_line}" if end_line > start_line else f"{start_line}"
    return f"{path}:{lines}" + (f" ({symbol})" if symbol else "")


def cited_numbers(answer: str) -> tuple[int, ...]:
    """The block numbers that an answer cites, ascending: ``[2]``, ``[1, 3]``, ``[1-3]``; none inside code."""
    prose = _CODE.sub(" ", answer)
    numbers: set[int] = set()
    for match in _CITED.finditer(prose):
        listed = match.group(1)
        for first, last in _RANGE.findall(listed):
            numbers.update(range(int(first), min(int(last), int(first) + 50) + 1))
        numbers.update(int(number) for number in re.findall(r"\d+", listed))
    return tuple(sorted(numbers))


def sources_of(blocks: Sequence[ContextBlock], *, stale: frozenset[str] = frozenset()) -> tuple[Source, ...]:
    """The sources of the blocks that stand in a prompt, in their order. ``stale``: ids of chunks whose file changed."""
    hits = [block.hit for block in blocks]
    return tuple(source_of(hit.chunk, hit.score, stale=hit.chunk.id in stale) for hit in hits)


def source_of(chunk: Chunk, score: float, *, stale: bool = False) -> Source:
    """A chunk as a source; ``score`` is its cosine to the question, 0.0 where there was none."""
    return Source(
        file_path=chunk.path,
        symbol=chunk.symbol,
        score=round(score, 4),
        id=chunk.id,
        title=chunk.title,
        start_line=chunk.start_line,
        end_line=chunk.end_line,
        citation=citation_line(chunk.path, chunk.start_line, chunk.end_line, chunk.symbol),
        source_type=chunk.source_type,
        stale=stale,
    )


def mark_cited(sources: Sequence[Source], answer: str) -> tuple[tuple[Source, ...], tuple[int, ...]]:
    """Sources with ``cited`` set where the answer names their number, and the numbers that name no source."""
    numbers = cited_numbers(answer)
    marked = tuple(replace(source, cited=at in numbers) for at, source in enumerate(sources, start=1))
    return marked, tuple(number for number in numbers if not 1 <= number <= len(sources))
