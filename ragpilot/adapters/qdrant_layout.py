"""How a corpus stands on a Qdrant server: vectors, indexes, and what is known of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Literal

from qdrant_client import models

from ragpilot.adapters.index_identity import REBUILD
from ragpilot.errors import IndexMismatchError, StoreError
from ragpilot.types import EmbedderIdentity, IndexIdentity

LEXICAL = "lexical"
DENSE = ("header", "body")
SCHEMA = 1
"""Of vectors, indexes and payload fields."""
METADATA = "ragpilot"
"""Key of the collection's metadata; a collection without it is not ours."""
REVISION = "revision"
LAST_INGESTION = "last_ingestion"
TERMS = "terms"
"""Payload field of collections whose terms are counted by RagPilot (``Layout.counted``): those of the chunk."""

# The tenant index stands before the first chunk, so that graphs are built with links among what shares a reader.
INDEXES: dict[str, models.PayloadSchemaType | models.KeywordIndexParams | models.IntegerIndexParams] = {
    "readers": models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=True),
    "document_id": models.PayloadSchemaType.KEYWORD,
    "source_type": models.PayloadSchemaType.KEYWORD,
    "path": models.PayloadSchemaType.KEYWORD,
    "indexed_at": models.IntegerIndexParams(type=models.IntegerIndexType.INTEGER, lookup=False, range=True),
    "mtime_ns": models.IntegerIndexParams(type=models.IntegerIndexType.INTEGER, lookup=False, range=True),
}
TERMS_INDEX = models.IntegerIndexParams(type=models.IntegerIndexType.INTEGER, lookup=True, range=False)


@dataclass(frozen=True, slots=True)
class Layout:
    """What an operator decides about new collections."""

    shards: int = 1
    replicas: int = 1
    write_consistency: int | None = None
    """Replicas that must have a write before it is acknowledged; None: more than half."""
    on_disk: bool = False
    """Vectors and graphs are read from disk; for collections that do not fit the memory."""
    quantization: Literal["none", "scalar"] = "none"
    """``scalar``: 8-bit copies in memory find candidates, which are scored again by the originals."""
    prefix: str = "ragpilot_"
    """Before the corpus in a collection's name. RagPilots that share a server and not their corpora differ in it."""
    exact_limit: int = 100_000
    """Points up to which every chunk is compared; beyond, graphs find the nearest."""

    @property
    def counted(self) -> bool:
        """Whether RagPilot counts in how many chunks a term stands, and weighs it; else the server does.

        A server weighs terms within each shard. With several, the same chunk would score by where it happens to lie.
        """
        return self.shards > 1

    def parameters(self, corpus: str, identity: IndexIdentity) -> dict[str, Any]:
        """Arguments of ``create_collection``."""
        dense = models.VectorParams(
            size=identity.embedder.dimensions, distance=models.Distance.COSINE, on_disk=self.on_disk
        )
        lexical = models.SparseVectorParams(
            modifier=models.Modifier.NONE if self.counted else models.Modifier.IDF,
            index=models.SparseIndexParams(on_disk=self.on_disk),
        )
        return {
            "vectors_config": dict.fromkeys(DENSE, dense),
            "sparse_vectors_config": {LEXICAL: lexical},
            "shard_number": self.shards,
            "replication_factor": self.replicas,
            "write_consistency_factor": self.write_consistency or self.replicas // 2 + 1,
            "on_disk_payload": True,
            "hnsw_config": models.HnswConfigDiff(m=16, ef_construct=128, payload_m=16, on_disk=self.on_disk),
            "quantization_config": _scalar() if self.quantization == "scalar" else None,
            "metadata": {METADATA: to_metadata(corpus, identity)},
        }

    def search_params(self, points: int) -> models.SearchParams:
        """How the nearest vectors are looked for among ``points``."""
        if self.quantization == "scalar":
            rescored = models.QuantizationSearchParams(rescore=True, oversampling=3.0)
            return models.SearchParams(hnsw_ef=256, quantization=rescored)
        if points <= self.exact_limit and not self.on_disk:
            return models.SearchParams(exact=True)
        return models.SearchParams(hnsw_ef=256)


def _scalar() -> models.ScalarQuantization:
    return models.ScalarQuantization(
        scalar=models.ScalarQuantizationConfig(type=models.ScalarType.INT8, quantile=0.99, always_ram=True)
    )


def is_counted(config: models.CollectionConfig) -> bool:
    """Whether a collection was made to be ``Layout.counted``."""
    lexical = (config.params.sparse_vectors or {}).get(LEXICAL)
    return lexical is not None and lexical.modifier is not models.Modifier.IDF


def to_metadata(corpus: str, identity: IndexIdentity) -> dict[str, Any]:
    """What a collection says about itself."""
    return {
        "schema": SCHEMA,
        "corpus": corpus,
        "embedder": asdict(identity.embedder),
        "chunker": identity.chunker,
    }


def from_metadata(name: str, corpus: str, config: models.CollectionConfig) -> IndexIdentity:
    """What the collection was built with.

    Raises StoreError for a collection of someone else, IndexMismatchError for one of another version of RagPilot, or
    whose vectors are not those it speaks of.
    """
    data = (config.metadata or {}).get(METADATA)
    if not isinstance(data, Mapping):
        raise StoreError(
            f"The collection {name!r} on the Qdrant server was not made by RagPilot.",
            hint="Choose another corpus name, or another collection prefix.",
        )
    if data.get("schema") != SCHEMA:
        raise IndexMismatchError(
            f"The collection {name!r} was written by another version of RagPilot "
            f"(layout {data.get('schema')!r}, this version has {SCHEMA}).",
            hint=REBUILD,
        )
    try:
        identity = IndexIdentity(EmbedderIdentity(**data["embedder"]), data["chunker"])
    except (KeyError, TypeError) as error:
        raise IndexMismatchError(f"The metadata of the collection {name!r} cannot be read.", hint=REBUILD) from error
    if data.get("corpus") != corpus:
        raise StoreError(f"The collection {name!r} holds the corpus {data.get('corpus')!r}, not {corpus!r}.")
    vectors = config.params.vectors
    sizes = {name: params.size for name, params in vectors.items()} if isinstance(vectors, dict) else {}
    if sizes != dict.fromkeys(DENSE, identity.embedder.dimensions):
        raise IndexMismatchError(
            f"The collection {name!r} has vectors of {sizes or 'no'} dimensions; "
            f"its embedder has {identity.embedder.dimensions}.",
            hint=REBUILD,
        )
    return identity


def moment(text: Any) -> datetime | None:
    """A time as the record point holds it."""
    return datetime.fromisoformat(text) if isinstance(text, str) else None
