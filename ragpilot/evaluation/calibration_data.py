"""What embedders are calibrated on: small software texts with a question each, and questions about anything else.

The texts are of one made-up project, in the languages that are indexed, and are cut as files of a corpus are.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from ragpilot.ingest.chunkers import chunk_text
from ragpilot.ingest.documents import chunks_of, document_id
from ragpilot.ingest.kinds import source_type
from ragpilot.types import Chunk, Document

_CORPUS = "calibration"


@dataclass(frozen=True, slots=True)
class Material:
    """A corpus in small, the questions that it answers, and questions that it does not."""

    chunks: tuple[Chunk, ...]
    answerable: tuple[str, ...]
    background: tuple[str, ...]


def load_material() -> Material:
    """The package's own material."""
    texts = list(_rows("texts.jsonl"))
    return Material(
        chunks=tuple(chunk for row in texts for chunk in _chunks(row["path"], row["text"])),
        answerable=tuple(row["question"] for row in texts),
        background=tuple(row["question"] for row in _rows("background.jsonl")),
    )


def _rows(name: str) -> Iterator[dict[str, Any]]:
    content = files("ragpilot").joinpath("data", "calibration", name).read_text(encoding="utf-8")
    return (json.loads(line) for line in content.splitlines())


def _chunks(path: str, text: str) -> list[Chunk]:
    document = Document(
        id=document_id(_CORPUS, path),
        corpus=_CORPUS,
        path=path,
        text=text,
        source_type=source_type(path, text),
        content_hash="",
        size=len(text),
        mtime_ns=0,
        readers=frozenset(),
    )
    return chunks_of(document, chunk_text(path, text, document.source_type), indexed_at=0)
