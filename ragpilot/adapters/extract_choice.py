"""Which passages an extract quotes: the best, and those near it that say something else."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from ragpilot.adapters.extract_code import imports_in
from ragpilot.adapters.extract_markup import clean_lines, comment_sign, language_of
from ragpilot.adapters.extract_notices import notice_in
from ragpilot.adapters.extract_words import Words
from ragpilot.types import Chunk, ContextBlock

MOST = 3
NEAR = 0.10
"""How much weaker than the best passage another may be that is quoted too."""
WORDS_COUNT = 0.2
"""How much holding all words of the question adds to a cosine."""
ALIKE = 0.7
"""The share of lines in common from which on two texts are the same."""
APART = 3
"""How many lines may lie between the ends of two parts of one thing: blank ones, which are in no chunk."""

_PREAMBLE = re.compile(r"#!|\W{1,4}(?:.*coding[:=]|frozen_string_literal|use strict)")
_PART = re.compile(r" \((\d+)/\d+\)$")


@dataclass(frozen=True)
class Passage:
    """One block, or several that follow each other in a file as parts of one thing."""

    blocks: tuple[ContextBlock, ...]

    @property
    def chunk(self) -> Chunk:
        """Where the passage begins."""
        return self.blocks[0].hit.chunk

    @property
    def end_line(self) -> int:
        """Where it ends."""
        return self.blocks[-1].hit.chunk.end_line

    @property
    def numbers(self) -> list[int]:
        """Of the blocks, ascending."""
        return sorted(block.number for block in self.blocks)

    @property
    def title(self) -> str:
        """The chunk's; without a part number where several parts are here."""
        return self.chunk.title if len(self.blocks) == 1 else _PART.sub("", self.chunk.title)

    @cached_property
    def lines(self) -> list[str]:
        """The text, without blank lines at either end."""
        lines: list[str] = []
        end = self.chunk.start_line - 1
        for block in self.blocks:
            if block.hit.chunk.start_line > end + 1:
                lines.append("")
            lines += clean_lines(block.body)
            end = block.hit.chunk.end_line
        return lines

    def substantial(self, words: Words) -> bool:
        """Whether it holds more than a notice of copyright, imports and brackets, or a heading."""
        if self.chunk.source_type == "docs-markdown":
            return any(re.search(r"\w", line) for line in self.lines if not line.startswith("#"))
        notice = notice_in(self.lines, comment_sign(language_of(self.chunk)), words)
        beside = {*imports_in(self.lines), *notice}
        rows = (line for at, line in enumerate(self.lines) if at not in beside)
        return any(re.search(r"\w", row) and not _PREAMBLE.match(row) for row in rows)


def choose(blocks: Sequence[ContextBlock], words: Words) -> tuple[list[Passage], list[Passage]]:
    """The passages to quote, best first, and the others that hold something that these do not."""
    distinct: list[ContextBlock] = []
    for block in blocks:
        if not any(_repeats(block, other) for other in distinct):
            distinct.append(block)
    passages = sorted(_joined(distinct), key=lambda passage: passage.numbers[0])
    # What says nothing is no measure for the others, however well its name fits the question.
    telling = [passage for passage in passages if passage.substantial(words)] or passages[:1]
    strengths = [max(_strength(block, words) for block in passage.blocks) for passage in telling]
    least = max(strengths, default=0.0) - NEAR
    chosen = [passage for at, passage in enumerate(telling) if at == 0 or strengths[at] >= least][:MOST]
    return chosen, [passage for passage in passages if passage not in chosen]


def _strength(block: ContextBlock, words: Words) -> float:
    return block.hit.score + WORDS_COUNT * words.share(block)


def _joined(blocks: Sequence[ContextBlock]) -> list[Passage]:
    """Blocks as passages, each with the parts that follow it."""
    passages: list[list[ContextBlock]] = []
    for block in sorted(blocks, key=lambda block: (block.hit.chunk.path, block.hit.chunk.start_line)):
        if passages and _follows(passages[-1][-1].hit.chunk, block.hit.chunk) and not passages[-1][-1].cut:
            passages[-1].append(block)
        else:
            passages.append([block])
    return [Passage(tuple(parts)) for parts in passages]


def _follows(chunk: Chunk, later: Chunk) -> bool:
    if (chunk.path, chunk.symbol) != (later.path, later.symbol) or later.start_line - chunk.end_line > APART:
        return False
    part, next_part = _PART.search(chunk.title), _PART.search(later.title)
    if part is None or next_part is None:
        return chunk.symbol is None and chunk.title == later.title
    same = chunk.title[: part.start()] == later.title[: next_part.start()]
    return same and int(next_part.group(1)) == int(part.group(1)) + 1


def _repeats(block: ContextBlock, other: ContextBlock) -> bool:
    """Whether one shows lines that the other shows too, or much the same text at another place."""
    one, two = block.hit.chunk, other.hit.chunk
    if one.path == two.path and one.start_line <= two.end_line and two.start_line <= one.end_line:
        return True
    lines, others = ({line.strip() for line in clean_lines(each.body)} - {""} for each in (block, other))
    return bool(lines) and len(lines & others) >= ALIKE * len(lines | others)
