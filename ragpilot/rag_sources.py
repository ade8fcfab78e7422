"""Further sources: registered once, asked with every question, held to floor, gate and budget like the index."""

from __future__ import annotations

import asyncio
import importlib
import logging
import math
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ragpilot.config import RagSourceSettings
from ragpilot.errors import ConfigError
from ragpilot.lexical import document_vector, question_vector
from ragpilot.logs import log_unexpected
from ragpilot.ports import RagSource
from ragpilot.refusal import inverse_document_frequency_of
from ragpilot.types import Actor, Candidate, Chunk, RagRequest, RagResult, TermStatistics

logger = logging.getLogger(__name__)

SOURCE_SECONDS = 5.0
"""The longest that a question waits for a further source."""
MAX_RESULTS = 20


@dataclass(frozen=True, slots=True)
class RegisteredSource:
    """A source under its name, with the floor of the configuration, which wins over its own."""

    name: str
    source: RagSource
    min_score: float | None = None

    def floor(self, otherwise: float) -> float:
        """Configured, else the source's own, else ``otherwise``."""
        for bound in (self.min_score, self.source.default_min_score):
            if bound is not None:
                return bound
        return otherwise


def register(name: str, source: RagSource, *, min_score: float | None = None) -> RegisteredSource:
    """``source`` ready to be asked. Raises ConfigError for one that overrides neither of its two methods."""
    kind = type(source)
    if kind.search is RagSource.search and kind.search_text is RagSource.search_text:
        raise ConfigError(
            f"The source {name!r} ({kind.__name__}) overrides neither 'search' nor 'search_text'.",
            hint="Each calls the other by default; override one of them.",
        )
    return RegisteredSource(name, source, min_score)


def load_sources(settings: Iterable[RagSourceSettings]) -> tuple[RegisteredSource, ...]:
    """The sources that ``[[sources]]`` names. Raises ConfigError for one that cannot be imported or made."""
    return tuple(register(item.name, _make(item), min_score=item.min_score) for item in settings)


def _make(item: RagSourceSettings) -> RagSource:
    module_name, _, class_name = item.module.partition(":")
    hint = "sources.module is written as package.module:ClassName."
    if not class_name:
        raise ConfigError(f"The source {item.name!r} names no class: {item.module!r}.", hint=hint)
    try:
        kind = getattr(importlib.import_module(module_name), class_name)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"The source {item.name!r} cannot be loaded: {error}.", hint=hint) from error
    if not (isinstance(kind, type) and issubclass(kind, RagSource)):
        raise ConfigError(f"The source {item.name!r} is no RagSource: {item.module!r}.", hint=hint)
    return kind()


async def ask_sources(
    sources: Sequence[RegisteredSource],
    actor: Actor,
    question: str,
    statistics: TermStatistics,
    *,
    floor: float,
    strict: bool,
) -> tuple[list[Candidate], list[str]]:
    """Candidates of all sources above their floors, and a warning for each that failed. Never raises for a source.

    Args:
        sources: Asked at once.
        actor: Who asks; sources are told, and must respect what he may read.
        question: As it was asked.
        statistics: Of the question's terms, for lexical scores.
        floor: For sources without one of their own.
        strict: Whether ``floor`` was set by hand, and holds for all.
    """
    answers = await asyncio.gather(*(_ask(source, actor, question) for source in sources))
    candidates: list[Candidate] = []
    warnings: list[str] = []
    for source, answer in zip(sources, answers, strict=True):
        if isinstance(answer, str):
            warnings.append(answer)
            continue
        bound = floor if strict else source.floor(floor)
        candidates += [
            _candidate(source.name, result, question, statistics)
            for result in answer
            if result.text.strip() and math.isfinite(result.score) and bound <= result.score <= 1.0
        ]
    return candidates, warnings


async def _ask(source: RegisteredSource, actor: Actor, question: str) -> list[RagResult] | str:
    try:
        async with asyncio.timeout(SOURCE_SECONDS):
            return (await source.source.search(RagRequest(question, actor, MAX_RESULTS)))[:MAX_RESULTS]
    except TimeoutError:
        return f"The source {source.name!r} did not answer within {SOURCE_SECONDS:g} s and was left out."
    except Exception as error:  # noqa: BLE001 - a plug-in's failure must not take the answer with it; it is told
        log_unexpected(logger, error, f"in source {source.name}")
        return f"The source {source.name!r} failed and was left out."


def _candidate(name: str, result: RagResult, question: str, statistics: TermStatistics) -> Candidate:
    """A result in the form of a chunk, with its lexical score by the statistics of what the actor may read."""
    identity = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{name}\0{result.path}\0{result.start_line}\0{result.text}"))
    chunk = Chunk(
        id=identity,
        document_id=str(uuid.uuid5(uuid.NAMESPACE_URL, f"{name}\0{result.path}")),
        corpus=name,
        path=result.path,
        source_type=result.source_type,
        symbol=result.symbol,
        title=result.title or result.path,
        header=result.title or result.path,
        text=result.text,
        start_line=result.start_line,
        end_line=max(result.start_line, result.end_line),
        readers=frozenset(),
        content_hash="",
        mtime_ns=0,
        size=0,
        indexed_at=0,
    )
    own = document_vector(result.text, path=result.path, symbol=result.symbol, header=chunk.header)
    weights = dict(zip(own.indices, own.values, strict=True))
    asked = question_vector(question).indices
    lexical = sum(weights.get(term, 0.0) * inverse_document_frequency_of(statistics, term) for term in asked)
    return Candidate(chunk, header_score=None, body_score=result.score, lexical_score=lexical)
