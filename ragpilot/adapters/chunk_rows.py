"""Chunks as the rows and payloads that stand in the store, and the checks that come before a write.

A row is a chunk as a plain tuple: its id, then a value a field of ``FIELDS``. Rows pass between the processes,
where a few hundred dataclasses would cost more than the search that found them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from operator import itemgetter
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from ragpilot.errors import StoreError
from ragpilot.types import Chunk, IndexedChunk, SparseVector, Vector

Row = tuple[Any, ...]

FIELDS = (
    "document_id",
    "path",
    "source_type",
    "symbol",
    "title",
    "header",
    "text",
    "start_line",
    "end_line",
    "readers",
    "content_hash",
    "mtime_ns",
    "size",
    "indexed_at",
    "commit",
)
"""Payload fields; the corpus is the collection's own, the id is the point's."""

DOCUMENT_CHUNKS = "document_chunks"
"""Payload field: how many chunks the document had when this one was written. Tells a document written in half."""

DOCUMENT_FIELDS = ("document_id", "path", "content_hash", "mtime_ns", "size", "readers", DOCUMENT_CHUNKS)
DocumentRow = tuple[Any, ...]
"""The values of ``DOCUMENT_FIELDS``, of one chunk."""

_FIELDS_OF = itemgetter(*FIELDS)
_INTEGERS = ("start_line", "end_line", "mtime_ns", "size", "indexed_at")
_TEXTS = tuple(field for field in FIELDS if field not in (*_INTEGERS, "readers"))
_TERM_LIMIT = 2**32
_INTEGER_LIMIT = 2**63
_LARGEST_WEIGHT = float(np.finfo(np.float32).max)


def to_row(chunk: Chunk) -> Row:
    """A chunk as a row."""
    values = (sorted(chunk.readers) if field == "readers" else getattr(chunk, field) for field in FIELDS)
    return (chunk.id, *values)


def to_chunk(corpus: str, row: Row) -> Chunk:
    """The chunk of a row."""
    chunk_id, *values = row
    named = dict(zip(FIELDS, values, strict=True))
    named["readers"] = frozenset(named["readers"])
    return Chunk(id=chunk_id, corpus=corpus, **named)


def to_payload(row: Row, document_chunks: int) -> dict[str, Any]:
    """A row as the payload of a point, its id left out."""
    return {**dict(zip(FIELDS, row[1:], strict=True)), DOCUMENT_CHUNKS: document_chunks}


def from_payload(point_id: object, payload: Mapping[str, Any]) -> Row:
    """The row of a point."""
    return (str(point_id), *_FIELDS_OF(payload))


def is_point_id(text: str) -> bool:
    """Whether ``text`` is a UUID in its one usual spelling; the engine takes others for the same point."""
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False


def check_chunks(corpus: str, document_id: str, chunks: Sequence[IndexedChunk]) -> None:
    """Raise StoreError unless every chunk can be stored whole.

    The engine applies the good points of a batch before it refuses a bad one, and does so again when it replays
    its log: so a document is checked to its last chunk before the first one is written.
    """
    seen: set[str] = set()
    for entry in chunks:
        problem = _problem(corpus, document_id, entry)
        if not problem and entry.chunk.id in seen:
            problem = "its id stands twice in the document"
        if problem:
            raise StoreError(f"The chunk {entry.chunk.id!r} of {entry.chunk.path!r} cannot be stored: {problem}.")
        seen.add(entry.chunk.id)


def _problem(corpus: str, document_id: str, entry: IndexedChunk) -> str | None:
    chunk = entry.chunk
    if not is_point_id(chunk.id):
        return "its id is no UUID"
    if (chunk.corpus, chunk.document_id) != (corpus, document_id):
        return f"it belongs to document {chunk.document_id!r} of corpus {chunk.corpus!r}"
    for field in _INTEGERS:
        if not -_INTEGER_LIMIT <= getattr(chunk, field) < _INTEGER_LIMIT:
            return f"{field} has more than 64 bits"
    if not all(_encodes(getattr(chunk, field)) for field in _TEXTS) or not all(map(_encodes, chunk.readers)):
        return "a text holds a lone surrogate"
    return _lexical_problem(entry.lexical)


def _encodes(text: str | None) -> bool:
    if text is None or text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _lexical_problem(lexical: SparseVector) -> str | None:
    terms, weights = lexical.indices, lexical.values
    if len(terms) != len(weights):
        return "its lexical vector has terms without weights"
    if any(first >= second for first, second in pairwise(terms)):
        return "its lexical terms are not ascending"
    if terms and not 0 <= terms[0] <= terms[-1] < _TERM_LIMIT:
        return "a lexical term has more than 32 bits"
    if not all(0.0 < weight <= _LARGEST_WEIGHT for weight in weights):
        return "a lexical weight is not a positive number"
    return None


def is_term(term: int) -> bool:
    """Whether a chunk could hold this lexical term."""
    return 0 <= term < _TERM_LIMIT


def stack_vectors(vectors: Mapping[str, Vector]) -> tuple[list[str], NDArray[np.float32]]:
    """Ids and a float32 matrix of shape ``(len(vectors), dimensions)``, in the same order.

    Raises StoreError for vectors of unlike shape or a number that is not finite: the engine would store a NaN.
    """
    shapes = {vector.shape for vector in vectors.values()}
    if len(shapes) > 1 or any(len(shape) != 1 for shape in shapes):
        raise StoreError(f"The vectors to store have the shapes {sorted(shapes)}, not one and the same.")
    if not vectors:
        return [], np.zeros((0, 0), dtype=np.float32)
    matrix = np.stack(list(vectors.values())).astype(np.float32, copy=False)
    whole = np.isfinite(matrix).all(axis=1)
    if not whole.all():
        broken = list(vectors)[int(np.argmin(whole))]
        raise StoreError(f"The vector of chunk {broken!r} holds a number that is not finite.")
    return list(vectors), matrix


def check_question(vector: Vector, lexical: SparseVector) -> None:
    """Raise StoreError for a question whose numbers are not finite: its scores would mean nothing."""
    if not np.isfinite(vector).all() or not all(map(math.isfinite, lexical.values)):
        raise StoreError("The question's vector holds a number that is not finite.")
