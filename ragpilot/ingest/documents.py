"""Ids that are the same on every machine and in every run, and spans as chunks."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterable

from ragpilot.ingest.chunkers import Span
from ragpilot.types import Chunk, Document

_NAMESPACE = uuid.UUID("5f0e6a52-6c0b-5a3e-9d0e-1f6f3c1f7a52")


def document_id(corpus: str, path: str) -> str:
    """The id of the document at ``path``."""
    return _id(corpus, path)


def chunks_of(document: Document, spans: Iterable[Span], *, indexed_at: int) -> list[Chunk]:
    """The spans of a document's text as chunks; a span keeps its id wherever in the document it moves."""
    seen: Counter[tuple[str, str]] = Counter()
    chunks: list[Chunk] = []
    for span in spans:
        occurrence = seen[span.header, span.text]
        seen[span.header, span.text] += 1
        chunks.append(
            Chunk(
                id=_id(document.corpus, document.path, span.header, span.text, str(occurrence)),
                document_id=document.id,
                corpus=document.corpus,
                path=document.path,
                source_type=document.source_type,
                symbol=span.symbol,
                title=span.title,
                header=span.header,
                text=span.text,
                start_line=span.start_line,
                end_line=span.end_line,
                readers=document.readers,
                content_hash=document.content_hash,
                mtime_ns=document.mtime_ns,
                size=document.size,
                indexed_at=indexed_at,
                commit=document.commit,
            )
        )
    return chunks


def header_text(chunk: Chunk) -> str:
    """What the header vector embeds."""
    return chunk.header or chunk.path


def body_text(chunk: Chunk) -> str:
    """What the body vector embeds."""
    return f"{chunk.header}\n{chunk.text}"


def _id(*parts: str) -> str:
    # No part holds a NUL, so ("a", "bc") and ("ab", "c") stay apart.
    return str(uuid.uuid5(_NAMESPACE, "\0".join(parts)))
