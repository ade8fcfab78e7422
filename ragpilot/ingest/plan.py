"""The dry run: what would be indexed and left out, and what it would take. Writes nothing."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ragpilot.config import CorpusSettings
from ragpilot.ingest.grants import Grants, Sight
from ragpilot.ingest.parts import Parts
from ragpilot.ingest.roots import resolve_roots, scopes
from ragpilot.ingest.scan import scan
from ragpilot.types import Actor, LeftOut

HEADERS_PER_SECOND, BODIES_PER_SECOND = 400.0, 60.0
"""What the embedded default reaches on two cores; a service may be faster or slower."""
_CHUNK_BYTES, _CACHED_BYTES = 2_500, 500
"""What a chunk takes in the store beside its vectors (text, payload, lexical vector), and each vector in the cache."""
_LOG_BYTES = 64_000_000
"""The most that the store's log of writes takes."""


@dataclass(frozen=True, slots=True)
class IngestPlan:
    """What a first run over these files would do."""

    corpus: str
    documents: int
    chunks: int
    bytes: int
    """Of the documents that would be indexed."""
    documents_by_type: Mapping[str, int]
    chunks_by_type: Mapping[str, int]
    left_out: tuple[LeftOut, ...]
    failed: tuple[LeftOut, ...]
    redacted: tuple[LeftOut, ...]
    """Files that hold what looks like a secret; ``reason`` names the kinds."""
    seconds_to_searchable: float
    """Until everything is found by its words, about: as long as reading and cutting has taken now."""
    seconds: float
    """Until every vector is in, about."""
    disk_bytes: int
    """What index and cache would take, about."""
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """What a run would do about an index that is there and was cut otherwise."""


def make_plan(
    parts: Parts, corpus: CorpusSettings, path: Path | None, actor: Actor, *, allow_broad: bool = False
) -> IngestPlan:
    """Walk, read and chunk as a first run would, and tell what ``actor`` may hear of. Blocking; raises RootError."""
    started = time.monotonic()
    roots = resolve_roots(corpus, allow_broad=allow_broad)
    grants = Grants(corpus)
    sight = Sight(actor, grants)
    preparer = parts.preparer(corpus.name)
    found = scan(scopes(roots, path), roots, {}, grants, rules=preparer.rules, state=parts.state)
    documents: Counter[str] = Counter()
    chunks: Counter[str] = Counter()
    left_out, failed, redacted = sight.seen(found.left_out), sight.seen(found.failed), []
    size = 0
    for task in filter(lambda task: sight.sees(task.entry.path), found.tasks):
        prepared = preparer.prepare(task)
        row = prepared.row
        if row is None:
            failed += [prepared.failure] if prepared.failure else []
        elif not row.indexed:
            left_out.append(row.left_out())
        else:
            documents[row.source_type] += 1
            chunks[row.source_type] += row.chunks
            size += row.size
            if row.redacted:
                redacted.append(row.held_secrets())
    total = chunks.total()
    searchable = time.monotonic() - started
    return IngestPlan(
        corpus=corpus.name,
        documents=documents.total(),
        chunks=total,
        bytes=size,
        documents_by_type=dict(documents.most_common()),
        chunks_by_type=dict(chunks.most_common()),
        left_out=tuple(sorted(left_out, key=lambda item: (item.path, item.reason))),
        failed=tuple(failed),
        redacted=tuple(redacted),
        seconds_to_searchable=searchable,
        seconds=searchable + total / HEADERS_PER_SECOND + total / BODIES_PER_SECOND,
        disk_bytes=_disk_bytes(total, 4 * parts.identity.embedder.dimensions),
        warnings=(*grants.problems, *found.notes) if sight.whole else (),
    )


def _disk_bytes(chunks: int, vector: int) -> int:
    """The store with its log, and the cache of vectors; a chunk has two vectors, each of ``vector`` bytes."""
    stored = chunks * (2 * vector + _CHUNK_BYTES)
    return stored + min(stored, _LOG_BYTES) + chunks * 2 * (vector + _CACHED_BYTES)
