"""What the tools for agents take and give: models whose JSON schemas are shown to agents, and which both sides keep."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel

from ragpilot.types import QUESTION_MAX_CHARS
from server.requests import NAME_MAX_CHARS, PATH_MAX_CHARS, Body, Corpus, Path, Question, TopK, whole_number

LIMIT_RANGE = (1, 20)
DEFAULT_LIMIT = 3
DEFAULT_THRESHOLD = 0.5


def _told(words: str, **limits: Any) -> Any:
    """What an agent is told of an argument; the description proper is the rule that a refusal quotes."""
    return Field(json_schema_extra={"description": words, **limits})


def _whole(value: Any) -> Any:
    """JSON knows one kind of numbers: 3.0 is a whole one too, and some agents write it so."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


AskedQuestion = Annotated[
    Question,
    _told(
        "The question in plain words, with the names from the code that you know. One question at a time.",
        minLength=1,
        maxLength=QUESTION_MAX_CHARS,
    ),
]
Collection = Annotated[
    Corpus,
    Field(description=f"the name of a collection, a text of at most {NAME_MAX_CHARS} characters"),
    _told("Which collection. Default: the one that rag_collections names as such.", maxLength=NAME_MAX_CHARS),
]


class AskArguments(Body):
    """Arguments of ``ask``."""

    question: AskedQuestion
    top_k: Annotated[
        TopK,
        BeforeValidator(_whole),
        _told("The most passages that the answer may rest on.", default=8),
    ] = None
    """None: as for a question by any other way, the plan of the question decides."""
    corpus: Collection = None


class QueryArguments(Body):
    """Arguments of ``rag_query``."""

    question: AskedQuestion
    collection: Collection = None
    limit: Annotated[
        int,
        whole_number(*LIMIT_RANGE),
        BeforeValidator(_whole),
        _told("The most passages to return."),
    ] = DEFAULT_LIMIT
    threshold: Annotated[
        float,
        Field(ge=0, le=1, description="a number from 0 to 1"),
        _told("The lowest cosine a passage may have. The collection's own floor counts where it is higher."),
    ] = DEFAULT_THRESHOLD


class CollectionsArguments(Body):
    """``rag_collections`` takes none."""


class IngestArguments(Body):
    """Arguments of ``rag_ingest``."""

    path: Annotated[
        Path,
        Field(description=f"a relative path inside a root, a text of 1 to {PATH_MAX_CHARS:,} characters"),
        _told(
            'A folder or file, relative to a configured root and inside it; "." for everything.',
            minLength=1,
            maxLength=PATH_MAX_CHARS,
        ),
    ]
    collection: Collection = None


class Result(BaseModel):
    """A result whose fields have these names in camel case, as on the wire."""

    model_config = ConfigDict(extra="ignore", frozen=True, alias_generator=to_camel, use_attribute_docstrings=True)


class PlaceResult(Result):
    """A chunk of a document, and how near it is to the question."""

    file_path: str
    symbol: str | None
    score: float
    """Cosine to the question, to 4 places."""
    id: str
    title: str
    start_line: int
    end_line: int
    citation: str
    """Path, lines and symbol in one line."""
    source_type: str
    stale: bool
    """The file has changed since it was indexed."""


class SourceResult(PlaceResult):
    """A chunk that the answer rests on."""

    cited: bool
    """The answer names it, as [n]: its place in this list, from 1."""


class AskResult(Result):
    """An answer."""

    answer: str
    outcome: Literal["answered", "not_found", "unknown"]
    sources: list[SourceResult]
    extract: bool
    """The answer quotes passages; no language model wrote it."""
    warnings: list[str]


class PassageResult(PlaceResult):
    """A chunk with its text."""

    text: str


class MissResult(Result):
    """A chunk that came close."""

    # `path` in POST /search; here every place has the same name.
    file_path: Annotated[str, Field(validation_alias="path", serialization_alias="filePath")]
    symbol: str | None
    start_line: int
    end_line: int
    score: float
    """Its cosine."""
    bound: str
    """What it failed: "floor" by its score, "gate" by the evidence of the whole question; needed is in those terms."""
    needed: float


class QueryResult(Result):
    """Passages, best first."""

    hits: list[PassageResult]
    floor: float
    """The lowest cosine that counted."""
    near_misses: list[MissResult]
    warnings: list[str]


class CollectionResult(Result):
    """A collection."""

    name: str
    default: bool
    point_count: int
    """Chunks in it that you may read."""
    dimensions: int
    embedder: str
    last_ingestion_time: str | None
    """RFC 3339, UTC."""
    roots: list[str]
    """The names of its root folders: which project it is."""
    indexing: bool
    """A run over it is under way; told to those who may index."""


class CollectionsResult(Result):
    """The collections there are."""

    collections: list[CollectionResult]


class FailedFile(Result):
    """A file that could not be indexed."""

    path: str
    reason: str


class LeftOutFile(FailedFile):
    """A file that is not indexed, on purpose."""

    why: str
    """The reason in a sentence's words."""


class IngestResult(Result):
    """What a run did."""

    collection: str
    outcome: Literal["complete", "partial", "nothing", "running"]
    """running: it goes on in the server."""
    added: int = 0
    changed: int = 0
    unchanged: int = 0
    removed: int = 0
    chunks: int = 0
    """Chunks in the collection after the run."""
    left_out: dict[str, int] = {}
    """Files that are not indexed, by reason."""
    left_out_files: list[LeftOutFile] = []
    """Some of them by name, of every reason a few."""
    failed: list[FailedFile] = []
    redacted: list[FailedFile] = []
    """Files in which secrets were replaced; the reason names their kinds."""
    seconds: float = 0.0
    warnings: list[str] = []
    notes: list[str] = []
    """What it did beyond bringing the index up to date."""


def input_schema(kind: type[Body]) -> dict[str, Any]:
    """The JSON schema of a tool's arguments."""
    schema: dict[str, Any] = _plain(kind.model_json_schema(by_alias=True))
    # What the model is here, for whoever reads its source.
    schema.pop("description", None)
    return schema


def output_schema(kind: type[Result]) -> dict[str, Any]:
    """The JSON schema of a tool's structured output; every field is always there."""
    schema: dict[str, Any] = _plain(kind.model_json_schema(by_alias=True, mode="serialization"))
    return schema


def _plain(schema: Any, *, names: bool = False) -> Any:
    """The schema without what only pydantic reads: titles, and null as a value of arguments that may be left away."""
    if isinstance(schema, list):
        return [_plain(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    cleaned = {
        key: _plain(value, names=key in ("properties", "$defs"))
        for key, value in schema.items()
        if names or not (key == "title" and isinstance(value, str))
    }
    kinds = cleaned.get("anyOf")
    if not names and isinstance(kinds, list) and "default" in cleaned and {"type": "null"} in kinds:
        (one,) = (kind for kind in kinds if kind != {"type": "null"})
        del cleaned["anyOf"]
        if cleaned["default"] is None:
            del cleaned["default"]
        cleaned = {**one, **cleaned}
    return cleaned
