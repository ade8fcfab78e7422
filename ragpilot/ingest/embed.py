"""Texts to vectors through an embedder that may fail on some, on all, or never answer."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ragpilot.counted import counted
from ragpilot.errors import EmbedderError, EmbedderUnavailableError, RagPilotError, TextsNotEmbeddedError
from ragpilot.ports import Embedder
from ragpilot.types import Vector

GIVE_UP = 12
"""Texts refused, each alone, without one embedded between them: the embedder fails, not the texts."""


@dataclass(slots=True)
class Embedded:
    """What became of some texts: each is in one of the two."""

    vectors: dict[str, Vector] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    """Text -> why."""


class TextEmbedder:
    """Embeds what can be embedded. A call that fails is halved until the texts that it fails for stand alone."""

    def __init__(self, embedder: Embedder, *, seconds: float) -> None:
        self._embedder = embedder
        self._seconds = seconds
        self._in_a_row = 0
        self.embedded = 0
        """Texts that the embedder has given a vector for."""

    async def embed(self, texts: Sequence[str]) -> Embedded:
        """Vectors of distinct texts.

        Raises EmbedderError when the embedder fails altogether: it cannot be reached, does not answer in time, or
        refuses one text after the other. What was embedded by then is lost, and will be asked for again.
        """
        result = Embedded()
        await self._embed(list(texts), result)
        return result

    async def _embed(self, texts: list[str], result: Embedded) -> None:
        try:
            vectors = await self._call(texts)
        except EmbedderUnavailableError:
            raise
        except TextsNotEmbeddedError as error:
            for text, vector in zip(texts, self._checked(error.vectors, len(texts)), strict=True):
                self._note(text, vector, str(error), result)
        except EmbedderError as error:
            if len(texts) == 1:
                self._note(texts[0], None, str(error), result)
                if self._in_a_row >= GIVE_UP:
                    raise
                return
            middle = len(texts) // 2
            await self._embed(texts[:middle], result)
            await self._embed(texts[middle:], result)
        else:
            for text, vector in zip(texts, vectors, strict=True):
                self._note(text, vector, "", result)

    async def _call(self, texts: list[str]) -> list[Vector | None]:
        try:
            async with asyncio.timeout(self._seconds):
                vectors = await self._embedder.embed_documents(texts)
        except TimeoutError:
            raise EmbedderUnavailableError(
                f"The embedder gave no answer for {counted(len(texts), 'text')} within {self._seconds:.0f} seconds."
            ) from None
        except RagPilotError:
            raise
        # The port promises EmbedderError; one from outside that breaks this must not take the run with it.
        except Exception as error:
            raise EmbedderError(f"The embedder failed: {type(error).__name__}.") from error
        checked = self._checked(vectors, len(texts))
        if any(vector is None for vector in checked):
            raise EmbedderError("The embedder gave no vector for a text.")
        return checked

    def _checked(self, vectors: Sequence[Any], expected: int) -> list[Vector | None]:
        """The vectors, if each can be stored; None stays None."""
        if len(vectors) != expected:
            given = counted(len(vectors), "vector")
            raise EmbedderError(f"The embedder gave {given} for {counted(expected, 'text')}.")
        return [None if vector is None else self._vector(vector) for vector in vectors]

    def _vector(self, value: Any) -> Vector:
        try:
            vector = np.asarray(value, dtype=np.float32)
        except (TypeError, ValueError):
            raise EmbedderError("The embedder gave something that is no vector.") from None
        dimensions = self._embedder.identity.dimensions
        if vector.shape != (dimensions,):
            raise EmbedderError(f"The embedder gave a vector of shape {vector.shape}, not ({dimensions},).")
        if not np.isfinite(vector).all() or not vector.any():
            raise EmbedderError("The embedder gave a vector that is zero or not finite.")
        return vector

    def _note(self, text: str, vector: Vector | None, reason: str, result: Embedded) -> None:
        if vector is None:
            self._in_a_row += 1
            result.refused[text] = reason
        else:
            self._in_a_row = 0
            self.embedded += 1
            result.vectors[text] = vector


def missing(texts: Sequence[str], known: Mapping[str, Vector]) -> list[str]:
    """The distinct texts that are not known yet, in order."""
    return [text for text in dict.fromkeys(texts) if text not in known]
