"""What is known of embedding models: prefixes that belong before texts, how much is read, and what a cosine means."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ragpilot.types import GateCalibration

FLOOR = 0.35
MINILM_GATE = GateCalibration(threshold=0.493, per_decade=0.06, reference_chunks=2000)
"""Measured with all-MiniLM-L6-v2, whose vectors are the same in every service."""
_PASSAGES = "Represent this sentence for searching relevant passages: "
_INSTRUCT = "Instruct: Given a question about a codebase, retrieve the passages that answer it\nQuery:"


@dataclass(frozen=True, slots=True)
class EmbeddingModel:
    """How a model wants its texts. Vectors made without these prefixes find markedly less."""

    question_prefix: str = ""
    document_prefix: str = ""
    window: int = 512
    """Tokens of a text that are read, where the service does not say another number."""
    floor: float = FLOOR
    """The lowest cosine that means anything. Above 0.35 where unrelated texts are known to lie higher."""
    gate: GateCalibration | None = None
    """What a question's evidence must reach; None: only `ragpilot calibrate` can tell."""


UNKNOWN = EmbeddingModel()

MODELS: dict[str, EmbeddingModel] = {
    "nomic-embed-text-v2": EmbeddingModel("search_query: ", "search_document: ", 512),
    # Unrelated texts score 0.4 to 0.6.
    "nomic-embed-text": EmbeddingModel("search_query: ", "search_document: ", 2048, floor=0.45),
    "nomic-embed-code": EmbeddingModel("Represent this query for searching relevant code: ", "", 2048),
    "mxbai-embed": EmbeddingModel(_PASSAGES, "", 512),
    "snowflake-arctic-embed2": EmbeddingModel("query: ", "", 2048),
    "snowflake-arctic-embed-m-v2": EmbeddingModel("query: ", "", 2048),
    "snowflake-arctic-embed-l-v2": EmbeddingModel("query: ", "", 2048),
    "snowflake-arctic-embed": EmbeddingModel(_PASSAGES, "", 512),
    "embeddinggemma": EmbeddingModel("task: code retrieval | query: ", "title: none | text: ", 2048),
    "qwen3-embedding": EmbeddingModel(_INSTRUCT, "", 2048),
    "multilingual-e5-large-instruct": EmbeddingModel(_INSTRUCT, "", 512),
    "e5-mistral": EmbeddingModel(_INSTRUCT, "", 2048),
    # Its makers: cosines lie between 0.7 and 1, whatever the texts.
    "e5": EmbeddingModel("query: ", "passage: ", 512, floor=0.7),
    "bge-m3": EmbeddingModel("", "", 2048),
    "bge-large-en": EmbeddingModel(_PASSAGES, "", 512),
    "bge-base-en": EmbeddingModel(_PASSAGES, "", 512),
    "bge-small-en": EmbeddingModel(_PASSAGES, "", 512),
    "bge-large": EmbeddingModel(_PASSAGES, "", 512),
    "all-minilm": EmbeddingModel("", "", 256, gate=MINILM_GATE),
    "all-minilm-33m": EmbeddingModel("", "", 256),
    "all-minilm-l12": EmbeddingModel("", "", 128),
    "paraphrase-multilingual": EmbeddingModel("", "", 128),
    "jina-embeddings-v2": EmbeddingModel("", "", 2048),
    "granite-embedding": EmbeddingModel("", "", 512),
    "text-embedding-3": EmbeddingModel("", "", 2048),
    "text-embedding-ada-002": EmbeddingModel("", "", 2048),
}
"""By the words of a model's name that say what it is. Windows end at 2,048 tokens: no chunk has more."""


def embedding_model(name: str) -> EmbeddingModel:
    """What is known of a model by any of its names; the longest name in the table that stands in it decides.

    ``nomic-embed-text:v1.5``, ``nomic-ai/nomic-embed-text-v1.5`` and ``text-embedding-nomic-embed-text-v1.5@q8_0``
    are the same model.
    """
    words = re.sub(r"[^a-z0-9]+", "-", name.lower())
    found = [known for known in MODELS if re.search(rf"(?:^|-){re.escape(known)}", words)]
    return MODELS[max(found, key=len)] if found else UNKNOWN
