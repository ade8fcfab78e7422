"""How much each word of a question says about blocks, and how much of it a text holds."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from ragpilot.adapters.extract_markup import clean_lines
from ragpilot.lexical import question_terms, terms
from ragpilot.types import ContextBlock

_WORD = re.compile(r"\w+")

REPEATED = 0.3
"""What a word that was found before still counts."""
LISTED = 40
"""How many texts are put in order at most."""


class Words:
    """The terms of a question, weighted by how rare they are among the lines of the blocks of one prompt."""

    def __init__(self, question: str, blocks: Sequence[ContextBlock]) -> None:
        asked = set(question_terms(question))
        lines = {block.number: [asked & set(terms(line)) for line in _lines_of(block)] for block in blocks}
        held = Counter(term for found in lines.values() for line in found for term in line)
        total = sum(len(found) for found in lines.values())
        self.weights: Mapping[str, float] = {
            term: math.log(1 + (total - count + 0.5) / (count + 0.5)) for term, count in held.items()
        }
        self._shares = {number: self._sum(set().union(*found)) for number, found in lines.items()}

    def share(self, block: ContextBlock) -> float:
        """How much of what any block holds of the question this block holds, 0 to 1."""
        total = self._sum(self.weights)
        return self._shares[block.number] / total if total else 0.0

    def found(self, text: str) -> set[str]:
        """The question's terms in ``text``."""
        return {term for term in terms(text) if term in self.weights}

    def best_first(self, texts: Sequence[str], *, worth: float = 0.0) -> list[int]:
        """Indices of the texts that hold terms of the question, most telling first.

        A term counts little once a text before has it, so that the first few hold as many terms as they can. The
        list ends with the first text that adds less than the share ``worth`` of what the best one holds.
        """
        left = {at: found for at, text in enumerate(texts) if (found := self.found(text))}
        order: list[int] = []
        seen: set[str] = set()
        most = 0.0
        while left and len(order) < LISTED:
            added = {at: self._sum(found - seen) + REPEATED * self._sum(found & seen) for at, found in left.items()}
            best = max(added, key=lambda at: (added[at], -at))
            most = most or added[best]
            if added[best] < worth * most:
                break
            order.append(best)
            seen |= left.pop(best)
        return order

    def place(self, line: str) -> int:
        """Where in ``line`` the most telling word of the question begins; 0 where there is none."""
        found = [(self._sum(self.found(word.group())), -word.start()) for word in _WORD.finditer(line)]
        return -max(found, default=(0.0, 0))[1] if any(weight for weight, _ in found) else 0

    def _sum(self, found: Iterable[str]) -> float:
        return math.fsum(self.weights[term] for term in found)  # exact: the order of a set is no order


def _lines_of(block: ContextBlock) -> Iterable[str]:
    chunk = block.hit.chunk
    return (*clean_lines(block.body), f"{chunk.path} {chunk.symbol or ''}")
