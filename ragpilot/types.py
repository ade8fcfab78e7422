"""The values that pass between layers: frozen, free of vendors, free of behaviour that does input or output."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ragpilot.errors import PermissionDeniedError

Vector = NDArray[np.float32]
"""A dense embedding: shape ``(dimensions,)``, float32, unit length."""

Permission = Literal["ask", "ingest", "admin"]
VectorName = Literal["header", "body"]
FacetField = Literal["source_type", "path"]
Role = Literal["system", "user", "assistant"]

NOT_FOUND_ANSWER = "Not found in the indexed sources."
"""The whole of a not-found answer, byte for byte (DESIGN vocabulary)."""

UNKNOWN_ANSWER_PREFIX = "I don't know"
"""What a chat model is told to say when the context does not hold the answer."""


# --- who asks


@dataclass(frozen=True, slots=True)
class Actor:
    """Who asks. A document is readable when its readers and these principals share a member."""

    name: str
    principals: frozenset[str]
    permissions: frozenset[Permission] = frozenset({"ask"})
    default_corpus: str | None = None
    """The corpus of a request that names none; None: the first one that this actor may know of."""

    def may(self, permission: Permission) -> bool:
        """Whether this actor holds ``permission``."""
        return permission in self.permissions

    def need(self, permission: Permission) -> None:
        """Raise PermissionDeniedError unless this actor holds ``permission``."""
        if permission not in self.permissions:
            raise PermissionDeniedError(f"The actor {self.name!r} lacks the permission {permission!r}.")


@dataclass(frozen=True, slots=True)
class IngestScope:
    """The right to write one corpus; only an actor who may ingest can obtain one."""

    actor: Actor
    corpus: str

    def __post_init__(self) -> None:
        if not self.actor.may("ingest"):
            raise PermissionDeniedError(
                f"The actor {self.actor.name!r} may not index: it lacks the permission 'ingest'."
            )


# --- what is indexed


@dataclass(frozen=True, slots=True)
class SparseVector:
    """A lexical vector: term hashes (unsigned 32-bit, ascending, unique) and their weights, of equal length."""

    indices: tuple[int, ...]
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Document:
    """One file of a corpus, decoded. ``path`` is POSIX, relative to its root, and printable."""

    id: str
    corpus: str
    path: str
    text: str
    source_type: str
    content_hash: str
    size: int
    mtime_ns: int
    readers: frozenset[str]
    commit: str | None = None


@dataclass(frozen=True, slots=True)
class Chunk:
    """A citable span of a document.

    ``id`` is a UUID made of corpus, path, header, text and the occurrence of that text in the document, so that
    a chunk that only moved to other lines keeps its id and its vectors. Lines count from 1 and both are included.
    ``header`` names the chunk in plain words; the header vector embeds it alone, the body vector header and text.
    """

    id: str
    document_id: str
    corpus: str
    path: str
    source_type: str
    symbol: str | None
    title: str
    header: str
    text: str
    start_line: int
    end_line: int
    readers: frozenset[str]
    content_hash: str
    """Of the whole file's bytes, like ``mtime_ns`` and ``size``."""
    mtime_ns: int
    size: int
    indexed_at: int
    """Seconds since the epoch, UTC."""
    commit: str | None = None


@dataclass(frozen=True, slots=True)
class IndexedChunk:
    """A chunk on its way into the store, with the one vector that it always has."""

    chunk: Chunk
    lexical: SparseVector


@dataclass(frozen=True, slots=True)
class DocumentState:
    """What the store holds of one document; the manifest is rebuilt from these."""

    document_id: str
    path: str
    content_hash: str
    mtime_ns: int
    size: int
    chunk_count: int
    readers: frozenset[str]


@dataclass(frozen=True, slots=True)
class EmbedderIdentity:
    """What makes vectors comparable. Two that differ in any field are never mixed in a collection."""

    name: str
    dimensions: int
    question_prefix: str = ""
    document_prefix: str = ""
    revision: str = ""
    truncation: int = 0
    """The most tokens of one text that influence its vector; 0: not known."""


@dataclass(frozen=True, slots=True)
class IndexIdentity:
    """What a collection was built with: the embedder, and the chunker whose spans it embeds."""

    embedder: EmbedderIdentity
    chunker: str


@dataclass(frozen=True, slots=True)
class CollectionInfo:
    """What is known about a collection without reading a chunk of it."""

    corpus: str
    identity: IndexIdentity
    revision: int
    """Grows with every acknowledged write; the manifest is checked against it."""
    last_ingestion: datetime | None
    """End of the last run (UTC). For writers alone: a run over unreadable documents must not show."""


# --- searching


@dataclass(frozen=True, slots=True)
class StoreQuery:
    """One search over one corpus: the nearest chunks and the best lexical matches, each to its limit.

    Near is judged by the larger cosine of header and body.
    """

    corpus: str
    vector: Vector
    lexical: SparseVector
    dense_limit: int = 100
    lexical_limit: int = 100


@dataclass(frozen=True, slots=True)
class Candidate:
    """A chunk that some branch of a search returned, with its raw score in **every** branch.

    A cosine is None only where that vector is not in the store yet. ``lexical_score`` is the IDF-weighted dot
    product over the statistics of what the actor may read, 0.0 where no term is shared. ``name_score`` is the cosine
    of the question and the bare name of what the chunk defines or lies in, for a chunk that the question names.
    """

    chunk: Chunk
    header_score: float | None
    body_score: float | None
    lexical_score: float
    name_score: float | None = None

    @property
    def cosine(self) -> float | None:
        """The larger of header's and body's cosine; None while neither vector is in."""
        return max((score for score in (self.header_score, self.body_score) if score is not None), default=None)


@dataclass(frozen=True, slots=True)
class TermStatistics:
    """Document frequencies, over the chunks that the actor may read."""

    total: int
    frequencies: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk that passed floor and gate. ``score`` is its raw cosine; the order of hits is their rank."""

    chunk: Chunk
    score: float
    rank: int
    signals: Mapping[str, float] = field(default_factory=dict)
    also_at: tuple[str, ...] = ()
    """Paths (with lines) of near-duplicates that this hit stands for."""


@dataclass(frozen=True, slots=True)
class GateCalibration:
    """The gate of one embedder: what a question's evidence must reach, by how much the actor may read.

    Evidence is the best cosine, plus ``word_weight`` times the largest share of the question's IDF mass that one of
    the best hits holds, less ``foreign_name`` where the question names something that stands nowhere. The background
    of unrelated text rises with the logarithm of the corpus's size.
    """

    threshold: float
    """At ``reference_chunks`` readable chunks."""
    per_decade: float
    """Added for each tenfold of that."""
    reference_chunks: int = 2000
    word_weight: float = 0.1
    foreign_name: float = 0.1


@dataclass(frozen=True, slots=True)
class Calibration:
    """Floor and gate as measured for one embedder on this installation, and how well they tell questions apart."""

    embedder: EmbedderIdentity
    floor: float
    gate: GateCalibration
    made_at: datetime
    background_refused: float
    """Share, 0 to 1, of the unrelated questions that these bounds refuse on the texts they were fitted on."""
    answerable_refused: float
    """The same of the questions that belong to those texts."""

    @property
    def origin(self) -> str:
        """Where the bounds came from, in the words of ``Bounds``."""
        return f"calibrated {self.made_at:%Y-%m-%d}"


@dataclass(frozen=True, slots=True)
class Bounds:
    """Floor and gate in force for one search, and where each came from."""

    floor: float
    floor_origin: str
    gate: float | None
    """None: the gate is off."""
    gate_origin: str


@dataclass(frozen=True, slots=True)
class NearMiss:
    """A rejected hit, for not-found answers: what came closest and what it failed."""

    path: str
    symbol: str | None
    start_line: int
    end_line: int
    score: float
    bound: Literal["floor", "gate"]
    needed: float


@dataclass(frozen=True, slots=True)
class RetrievalPlan:
    """How one question is searched: made by ``routing`` and ``classify``, carried out by ``retrieval``."""

    intent: str
    k: int
    temperature: float = 0.1
    strictness: Literal["strict", "normal", "broad"] = "normal"
    per_document: int = 3
    """The most chunks of one document among the hits."""
    source_types: frozenset[str] = frozenset()
    """Types that are boosted; none is ever hidden."""
    document_prior: float = 0.0
    """Positive: prose (docs) is preferred to code; negative: code to prose. In fused-score units."""
    depth: int = 100
    """How many candidates each branch is asked for."""


# --- prompting


@dataclass(frozen=True, slots=True)
class Turn:
    """An earlier turn of the conversation."""

    role: Literal["user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """A message as chat models take it."""

    role: Role
    content: str


@dataclass(frozen=True, slots=True)
class ContextBlock:
    """A numbered hit as it stands in the prompt. ``tokens`` counts all of ``text``: fence, header, separator."""

    number: int
    hit: Hit
    text: str
    tokens: int
    body: str
    """The chunk's text as far as it stands in the block."""
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Prompt:
    """The parts of a prompt; an extractive model works on the blocks, a chat model on ``messages()``."""

    system: str
    blocks: tuple[ContextBlock, ...]
    question: str
    turns: tuple[Turn, ...] = ()
    tokens: int = 0
    """Everything together, by the project's token counter."""
    searched: str = ""
    """What the blocks were searched for, where the question goes on from an earlier one; no message holds it."""

    def messages(self) -> list[ChatMessage]:
        """Render as chat messages: system text, earlier turns, then context blocks and question."""
        context = "".join(block.text for block in self.blocks)
        turns = [ChatMessage(turn.role, turn.content) for turn in self.turns]
        asked = f"Context blocks:\n\n{context}Question: {self.question}"
        return [ChatMessage("system", self.system), *turns, ChatMessage("user", asked)]


@dataclass(frozen=True, slots=True)
class ModelIdentity:
    """A chat model. ``extract`` is true where answers are quoted passages and no language model speaks."""

    name: str
    provider: str
    extract: bool = False


@dataclass(frozen=True, slots=True)
class ModelUsage:
    """What a chat model says of one answer, once it is whole. None: it did not say."""

    prompt_tokens: int | None = None
    answer_tokens: int | None = None
    warnings: tuple[str, ...] = ()
    """What the asker should know, such as a prompt that was not read whole."""


# --- answering


@dataclass(frozen=True, slots=True)
class Source:
    """What an answer cites: a chunk that really stood in the prompt (wire format, DESIGN section 5)."""

    file_path: str
    symbol: str | None
    score: float
    """Raw cosine, to 4 places."""
    id: str
    title: str
    start_line: int
    end_line: int
    citation: str
    source_type: str
    stale: bool = False
    cited: bool = False


class Outcome(StrEnum):
    """How a question ended."""

    ANSWERED = "answered"
    NOT_FOUND = "not_found"
    UNKNOWN = "unknown"


# --- health and statistics


@dataclass(frozen=True, slots=True)
class Health:
    """Whether a part can be reached. ``detail`` is for a reader and holds no secret."""

    ok: bool
    detail: str
    latency_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a diagnosis found, and what to do about it."""

    part: str
    """``configuration``, ``services``, ``store``, ``embedder``, ``model`` or ``corpus NAME``."""
    state: Literal["ok", "note", "bad"]
    text: str
    advice: str = ""
    settings: Mapping[str, str | int | bool] = field(default_factory=dict)
    """Dotted key -> value that the advice would put into config.toml."""


@dataclass(frozen=True, slots=True)
class IndexStats:
    """What an actor may know about a corpus: only of chunks that the actor may read."""

    corpus: str
    point_count: int
    last_ingestion_time: datetime | None
    documents: int
    chunks_by_source_type: Mapping[str, int]
    header_share: float
    """Share of chunks whose header vector is in, 0 to 1; 1.0 when there are none."""
    body_share: float
    embedder: EmbedderIdentity
    """What the index was built with; the configured one where there is no index."""
    bounds: Bounds
    left_out: Mapping[str, int] | None = None
    """How many files and folders are not indexed, by reason, as far as the actor may hear of them; None for one who may
    not ingest."""
    misfit: str | None = None
    """Why the configured embedder cannot search this index, and what to do; None where it can."""


# --- ingestion


@dataclass(frozen=True, slots=True)
class IngestProgress:
    """Where a run stands. ``done`` and ``total`` count what the stage works through, as far as its actor may know."""

    stage: Literal["scan", "chunks", "headers", "bodies"]
    done: int
    total: int
    files: int
    """Documents of the corpus seen by this run so far."""
    chunks: int
    per_second: float
    seconds_left: float | None
    note: str = ""
    """What its user should know of this run while it lasts; it stands in ``IngestReport.notes`` as well."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A file that is not indexed, and why. Reasons are short fixed words such as ``binary`` or ``too large``."""

    path: str
    reason: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class IngestReport:
    """What a run did. ``partial``: some documents failed and are named in ``failed``.

    To an actor without ``admin``, names and numbers are of the files that the actor may read, and ``embedded`` counts
    the vectors stored for them, wherever these came from.
    """

    corpus: str
    outcome: Literal["complete", "partial", "nothing"]
    added: int
    changed: int
    unchanged: int
    removed: int
    chunks: int
    """Chunks of the corpus in the store after the run."""
    embedded: int
    left_out: tuple[LeftOut, ...]
    failed: tuple[LeftOut, ...]
    seconds: float
    seconds_to_searchable: float
    warnings: tuple[str, ...] = ()
    redacted: tuple[LeftOut, ...] = ()
    """Indexed documents in which secrets were replaced; ``reason`` names the kinds of them."""
    notes: tuple[str, ...] = ()
    """What the run did beyond bringing the index up to date, such as cutting everything anew; nothing to mend."""


# --- asking

TOP_K_RANGE = (1, 50)
QUESTION_MAX_CHARS = 16_000


@dataclass(frozen=True, slots=True)
class AskRequest:
    """A question, checked. ``top_k`` None: the plan decides."""

    question: str
    request_id: str
    top_k: int | None = None
    corpus: str | None = None
    focus: tuple[str, ...] = ()
    """Paths or globs that the asker is looking at: hits under them rank higher, nothing else is hidden."""
    conversation: tuple[Turn, ...] = ()
    page: str | None = None
    """What the asker has open (a route or a file), a further hint for ranking."""


@dataclass(frozen=True, slots=True)
class CorpusInfo:
    """A corpus that the actor may know of."""

    name: str
    default: bool
    point_count: int
    last_ingestion_time: datetime | None
    dimensions: int
    embedder: str


@dataclass(frozen=True, slots=True)
class SourceText:
    """A source's own text with the lines around it, from the file while it is unchanged since it was indexed."""

    source: Source
    text: str
    before: str
    after: str
    first_line: int
    """Line number of the first line of ``before``, or of ``text`` where that is empty."""


# --- further sources


@dataclass(frozen=True, slots=True)
class RagRequest:
    """What a further source is asked. It must itself respect what ``actor`` may read."""

    query: str
    actor: Actor
    max_results: int


@dataclass(frozen=True, slots=True)
class RagResult:
    """A passage of a further source. ``score`` is a cosine to the query, -1 to 1."""

    text: str
    score: float
    path: str
    """Where it stands, as a person would look it up: a path, a page's address, a ticket."""
    title: str = ""
    symbol: str | None = None
    source_type: str = "docs-text"
    start_line: int = 1
    end_line: int = 1
