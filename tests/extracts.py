"""Prompts, and what is quoted of them."""

from __future__ import annotations

from dataclasses import replace

from ragpilot.adapters.extractive import LABEL, extract
from ragpilot.types import Chunk, Prompt
from tests.builders import block, chunk, hit

PLENTY = 1_000_000


def prompt(question: str, *chunks: Chunk, scores: tuple[float, ...] = ()) -> Prompt:
    """Blocks of these chunks, in order, of equal score unless told otherwise."""
    given = scores or (0.6,) * len(chunks)
    hits = [hit(item, score=score, rank=rank) for rank, (item, score) in enumerate(zip(chunks, given, strict=True), 1)]
    return Prompt("Use the context.", tuple(block(number, item) for number, item in enumerate(hits, 1)), question)


def passage(text: str, question: str = "where is the budget", **given: object) -> str:
    """The answer from a single chunk, without label, heading and the blank lines around them."""
    lines = text.count("\n") + 1
    item = replace(chunk(symbol="run", end=lines, **given), text=text)  # type: ignore[arg-type]
    label, _, _, _, *rest = extract(prompt(question, item), PLENTY).split("\n")
    assert label == LABEL
    return "\n".join(rest)


def code(count: int, **lines: str) -> str:
    """``count`` lines of a function body; ``at3=...`` replaces the third."""
    body = ["def run(self):"] + [f"    step_{at}()" for at in range(2, count + 1)]
    for name, line in lines.items():
        body[int(name.removeprefix("at")) - 1] = line
    return "\n".join(body)
