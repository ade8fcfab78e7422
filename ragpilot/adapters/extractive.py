"""A ChatModel without a language model: the answer is made of the best passages of the blocks, quoted and cited."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable

from ragpilot.adapters.extract_choice import Passage, choose
from ragpilot.adapters.extract_code import excerpt
from ragpilot.adapters.extract_markdown import markdown_units
from ragpilot.adapters.extract_markup import code_span, fenced, language_of, name_span, one_line
from ragpilot.adapters.extract_rst import rst_units
from ragpilot.adapters.extract_units import choose_units, rendered
from ragpilot.adapters.extract_words import Words
from ragpilot.citations import citation_line
from ragpilot.types import NOT_FOUND_ANSWER, Health, ModelIdentity, ModelUsage, Prompt

LABEL = "*Extract: the best passages, quoted; no language model is configured.*"
PASSAGE_ROWS = 16
ANSWER_ROWS = 46
"""Rows of all passages together, their headings and blank lines included."""
FEWEST_ROWS = 12
"""Rows that are kept for each further passage, heading and fence included."""
AROUND_A_PASSAGE = 5
"""Rows of a passage that are not its text: heading, fence and blank lines."""
ALSO = 3
CHARACTERS_A_TOKEN = 4

_PIECE = re.compile(r"\s*\S+\s*|\s+")
_FENCE = re.compile(r"`{3,}")
_LATER_PART = re.compile(r"\((?!1/)\d+/\d+\)$")


class ExtractiveModel:
    """Quotes; it writes nothing of its own but the first line and the words between passages. Deterministic."""

    identity = ModelIdentity("extractive", "ragpilot", extract=True)
    context_window = 32_768

    def __init__(self, because: str | None = None) -> None:
        """``because``: why the configured language model does not answer; None: none is configured."""
        self._label, self._detail = LABEL, "extracts from the sources; no language model is configured"
        if because is not None:
            self._label = f"*Extract: the best passages, quoted, because {one_line(because)}.*"
            self._detail = f"extracts, because {because}"

    async def stream(
        self,
        prompt: Prompt,
        *,
        temperature: float,  # noqa: ARG002
        max_tokens: int,
        report: Callable[[ModelUsage], None] | None = None,  # noqa: ARG002 - there is nothing to tell
    ) -> AsyncIterator[str]:
        """The answer, word by word. ``max_tokens`` counts as four characters each; temperature means nothing here."""
        for piece in _PIECE.findall(extract(prompt, max_tokens * CHARACTERS_A_TOKEN, self._label)):
            yield piece
            await asyncio.sleep(0)  # others get their turn, and a reader who leaves is noticed

    async def check(self) -> Health:
        """Always well: there is nothing that could be away."""
        return Health(ok=True, detail=self._detail)

    async def aclose(self) -> None:
        """Nothing is held."""


def extract(prompt: Prompt, max_chars: int, label: str = LABEL) -> str:
    """The whole answer, of at most about ``max_chars`` characters; ``label`` is its first line."""
    if not prompt.blocks:
        return NOT_FOUND_ANSWER
    words = Words(prompt.searched or prompt.question, prompt.blocks)
    chosen, others = choose(prompt.blocks, words)
    rows = [label, ""]
    left = ANSWER_ROWS
    for index, passage in enumerate(chosen):
        reserved = FEWEST_ROWS * (len(chosen) - index - 1)
        limit = max(left - reserved, FEWEST_ROWS) - AROUND_A_PASSAGE
        shown = [heading(passage), "", *quotation(passage, words, min(PASSAGE_ROWS, limit)), ""]
        left -= len(shown)
        rows += shown
    if others:
        rows.append("Also: " + ", ".join(f"{_citations(each)} {code_span(_place(each))}" for each in others[:ALSO]))
    return _cut("\n".join(rows).rstrip(), max_chars)


def heading(passage: Passage) -> str:
    """What is quoted, where it stands, and its citation."""
    name, path = one_line(passage.title), passage.chunk.path
    named = f"{name_span(name)} {code_span(_place(passage))}"
    if not name or name in (path, path.rsplit("/", 1)[-1]):
        named = f"**{code_span(_place(passage))}**"
    return f"{named} {_citations(passage)}"


def quotation(passage: Passage, words: Words, limit: int) -> list[str]:
    """At most about ``limit`` rows of the passage as Markdown."""
    chunk, lines = passage.chunk, passage.lines
    if not lines:
        return []
    language = language_of(chunk)
    if language in ("markdown", "rst"):
        units = markdown_units(lines, chunk.title) if language == "markdown" else rst_units(lines)
        units = [unit.bounded(words, limit) for unit in units]
        return rendered(units, choose_units(units, words, limit))
    begins = chunk.symbol is not None and not _LATER_PART.search(chunk.title)
    return fenced(excerpt(lines, words, language, limit=limit, begins=begins), language)


def _citations(passage: Passage) -> str:
    return "".join(f"[{number}]" for number in passage.numbers)


def _place(passage: Passage) -> str:
    return citation_line(passage.chunk.path, passage.chunk.start_line, passage.end_line)


def _cut(answer: str, max_chars: int) -> str:
    """``answer`` up to the last line that fits, with its fence closed; never less than the first line."""
    if len(answer) <= max_chars:
        return answer
    first, *rest = answer.split("\n")
    kept, size, fence = [first], len(first), ""
    for line in rest:
        after = _fence_behind(line, fence)
        size += 1 + len(line)
        if size + 1 + len(after) > max_chars:
            break
        kept.append(line)
        fence = after
    if fence and kept[-1].startswith(fence):
        kept.pop()  # nothing of what it was opened for is left
    elif fence:
        kept.append(fence)
    return "\n".join(kept).rstrip()


def _fence_behind(line: str, fence: str) -> str:
    """The fence that is open behind ``line`` where ``fence`` was open before it; empty: none."""
    if fence:
        return "" if line == fence else fence
    opened = _FENCE.match(line)
    return opened.group() if opened else ""
