"""Creating and opening a shard: its vectors and indexes, and what the engine's refusals mean. In the owner process."""

from __future__ import annotations

from pathlib import Path

from qdrant_edge import (
    Distance,
    EdgeConfig,
    EdgeOptimizersConfig,
    EdgeShard,
    EdgeSparseVectorParams,
    EdgeVectorParams,
    IntegerIndexParams,
    KeywordIndexParams,
    Memory,
    Modifier,
    PayloadSchemaType,
    UpdateOperation,
)

from ragpilot.adapters.edge_room import fills_when_read, unreadable
from ragpilot.adapters.index_identity import REBUILD
from ragpilot.disk import free_bytes, is_full
from ragpilot.errors import StoreDamagedError, StoreInUseError

LEXICAL = "lexical"
DENSE = ("header", "body")

_UNREACHABLE_KB = 2**40
"""Size at which the engine would build an HNSW graph: never, since graphs lose recall under a narrow filter."""

# Each index stands before the first chunk: the engine keeps counts and facets exact and quick by them.
_INDEXES: dict[str, PayloadSchemaType | KeywordIndexParams | IntegerIndexParams] = {
    "readers": KeywordIndexParams(is_tenant=True),
    "document_id": PayloadSchemaType.Keyword,
    "source_type": PayloadSchemaType.Keyword,
    "path": PayloadSchemaType.Keyword,
    "indexed_at": IntegerIndexParams(lookup=False, range=True),
    "mtime_ns": IntegerIndexParams(lookup=False, range=True),
}


def create_shard(folder: Path, dimensions: int) -> EdgeShard:
    """A new, empty shard in ``folder``, on disk when this returns.

    Its files look like 150 MB (two write-ahead logs and six pages, 32 MB each, of which the engine offers no
    smaller size), but they are sparse: an empty shard takes 200 kB of the disk.

    In a file system in memory they would be filled by being opened, and on a full one that ends the process. There,
    nothing is read ahead; what the engine reads all the same is read at once, while there is room: some 40 MB.
    """
    in_memory = fills_when_read(folder.parent)
    ahead = Memory.Cold if in_memory else Memory.Cached
    dense = EdgeVectorParams(size=dimensions, distance=Distance.Cosine, memory=ahead)
    config = EdgeConfig(
        vectors=dict.fromkeys(DENSE, dense),
        sparse_vectors={LEXICAL: EdgeSparseVectorParams(modifier=Modifier.Idf)},
        # By default the engine drops payloads from the page cache whenever it opens a shard: then each chunk of a
        # result is a read of the disk, and all of them take longer than the rest of the search.
        payload_memory=ahead,
        optimizers=EdgeOptimizersConfig(indexing_threshold=_UNREACHABLE_KB, default_segment_number=1),
        wal_enabled=True,
    )
    shard = EdgeShard.create(str(folder), config)
    for field, parameters in _INDEXES.items():
        shard.update(UpdateOperation.create_field_index(field, parameters))
    shard.flush()
    if in_memory:
        shard.close()
        shard = open_shard(folder)
    return shard


def open_shard(folder: Path) -> EdgeShard:
    """The shard in ``folder``, with whatever its write-ahead log still holds.

    Raises StoreInUseError when another process has it open, StoreFullError when its disk has no room for the log's
    replay, StoreDamagedError when it cannot be opened.
    """
    if not folder.is_dir():
        raise StoreDamagedError(f"The store's folder {folder} is missing.", hint=REBUILD)
    try:
        return EdgeShard.load(str(folder))
    except (KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException as error:
        # The engine raises bare Exception, and its panics derive from BaseException alone.
        if "WouldBlock" in str(error):
            raise StoreInUseError(f"Another process has the store in {folder} open.") from error
        if is_full(error):
            raise unreadable(folder, free_bytes(folder)) from error
        raise StoreDamagedError(f"The store in {folder} cannot be opened: {error}.", hint=REBUILD) from error
