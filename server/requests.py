"""The bodies of requests: strict models whose refusals name the field and its limit, never the value."""

from __future__ import annotations

import difflib
import json
from typing import Annotated, Any, Literal, NoReturn, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel
from quart import request

from ragpilot.errors import InvalidRequestError
from ragpilot.types import QUESTION_MAX_CHARS, TOP_K_RANGE, AskRequest, Turn
from server.problems import Problem, ProblemError

SEARCH_K_MAX = 200
LIST_MAX = 50
NAME_MAX_CHARS = 200
PATH_MAX_CHARS = 4_000
CONTEXT_LINES_MAX = 200

B = TypeVar("B", bound=BaseModel)


def whole_number(least: int, most: int) -> Any:
    """The rule of a number from ``least`` to ``most``, in the words that a refusal quotes."""
    return Field(ge=least, le=most, description=f"a whole number from {least} to {most}")


def _whole(text: str) -> str:
    """Refuses half of a surrogate pair: JSON can spell it, UTF-8 cannot, and what is asked is encoded later."""
    text.encode()
    return text


def _visible(text: str) -> str:
    """Refuses a text of blanks and of characters that show nothing."""
    if not any(character.isprintable() and not character.isspace() for character in text):
        raise ValueError
    return text


def _without_null(path: str) -> str:
    if "\0" in path:
        raise ValueError
    return path


Text = Annotated[str, Field(max_length=QUESTION_MAX_CHARS), AfterValidator(_whole)]
Path = Annotated[
    str,
    Field(max_length=PATH_MAX_CHARS),
    AfterValidator(_whole),
    AfterValidator(_visible),
    AfterValidator(_without_null),
]
Question = Annotated[
    Text,
    AfterValidator(_visible),
    Field(description=f"a text of 1 to {QUESTION_MAX_CHARS:,} characters that is not blank"),
]
Corpus = Annotated[
    Annotated[str, Field(max_length=NAME_MAX_CHARS), AfterValidator(_whole)] | None,
    Field(description=f"the name of a corpus, a text of at most {NAME_MAX_CHARS} characters"),
]
TopK = Annotated[int | None, whole_number(*TOP_K_RANGE)]
Focus = Annotated[
    list[Path],
    Field(
        max_length=LIST_MAX,
        description=f"a list of at most {LIST_MAX} paths or globs, each a text of 1 to {PATH_MAX_CHARS:,} characters",
    ),
]


class Body(BaseModel):
    """A JSON object whose fields have these names in camel case, and no others."""

    model_config = ConfigDict(
        strict=True, extra="forbid", frozen=True, alias_generator=to_camel, hide_input_in_errors=True
    )


class TurnBody(Body):
    """An earlier turn of the conversation."""

    role: Annotated[Literal["user", "assistant"], Field(description='"user" or "assistant"')]
    content: Annotated[Text, Field(description=f"a text of at most {QUESTION_MAX_CHARS:,} characters")]


class AskBody(Body):
    """``POST /ask``."""

    question: Question
    top_k: TopK = None
    corpus: Corpus = None
    focus: Focus = []
    conversation: Annotated[
        list[TurnBody],
        Field(max_length=LIST_MAX, description=f'a list of at most {LIST_MAX} turns, each {{"role", "content"}}'),
    ] = []
    page: Annotated[
        Path | None, Field(description=f"a path or route, a text of 1 to {PATH_MAX_CHARS:,} characters")
    ] = None

    def request(self, request_id: str) -> AskRequest:
        """The question as the core takes it."""
        return AskRequest(
            question=self.question,
            request_id=request_id,
            top_k=self.top_k,
            corpus=self.corpus,
            focus=tuple(self.focus),
            conversation=tuple(Turn(turn.role, turn.content) for turn in self.conversation),
            page=self.page,
        )


class SearchBody(Body):
    """``POST /search``."""

    question: Question
    k: Annotated[int, whole_number(1, SEARCH_K_MAX)] = 8
    corpus: Corpus = None
    focus: Focus = []


class IndexBody(Body):
    """``POST /index``. ``path`` narrows the run to one folder or file inside a root."""

    corpus: Corpus = None
    path: Annotated[
        Path | None,
        Field(description=f"a path inside a root of the corpus, a text of 1 to {PATH_MAX_CHARS:,} characters"),
    ] = None
    rebuild: Annotated[bool, Field(description="true or false")] = False
    vectors: Annotated[bool, Field(description="true or false")] = True
    """False: the run ends once everything can be found by its words; all vectors follow in the background."""


class SourceQuery(Body):
    """The query of ``GET /sources/{id}``. Its values are texts, so a number is read from one."""

    corpus: Corpus = None
    context: Annotated[
        int,
        BeforeValidator(lambda value: int(value) if isinstance(value, str) and value.isdecimal() else value),
        whole_number(0, CONTEXT_LINES_MAX),
    ] = 10


class CorpusQuery(Body):
    """The query of ``GET /index/stats``."""

    corpus: Corpus = None


async def body(kind: type[B]) -> B:
    """The body of the current request as ``kind``; raises as ``parse`` does."""
    return parse(kind, await request.get_data(cache=True, as_text=False, parse_form_data=False))


def parse(kind: type[B], content: bytes) -> B:
    """``content`` as ``kind``.

    Raises:
        ProblemError: 400; it is not JSON, not UTF-8, or no object.
        InvalidRequestError: A field is unknown, missing or breaks its rule.
    """
    try:
        data = json.loads(content.decode("utf-8-sig"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise ProblemError(Problem(400, "malformed_json", "The body is not valid JSON in UTF-8.")) from None
    if not isinstance(data, dict):
        raise ProblemError(Problem(400, "malformed_json", "The body must be a JSON object."))
    return check(kind, data)


def check(kind: type[B], data: dict[str, Any]) -> B:
    """``data`` as ``kind``. Raises InvalidRequestError for the first field that is wrong."""
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        found = error.errors(include_input=False, include_url=False)
        # An unknown field is told first: what is missing or wrong beside it may be the same slip.
        first = min(found, key=lambda one: one["type"] != "extra_forbidden")
        raise _refusal(kind, first["type"], first["loc"], data) from None


def _refusal(
    kind: type[BaseModel], problem: str, location: tuple[int | str, ...], data: dict[str, Any]
) -> InvalidRequestError:
    model, path, name, rule = kind, "", "", ""
    for part in location:
        if isinstance(part, int):
            path += f"[{part}]"
            continue
        path = f"{path}.{part}" if path else part
        fields = {field.alias or key: field for key, field in model.model_fields.items()}
        if part not in fields:
            return _unknown(path, part, list(fields))
        name, rule = path, fields[part].description or ""
        model = TurnBody if part == "conversation" else model
    if not name:
        return InvalidRequestError("The name of a field is not a text that UTF-8 can hold.")
    if problem == "missing":
        return InvalidRequestError(f"The field {name!r} is missing: it must be {rule}.", field=name)
    has = f" It has {len(data[name]):,}." if problem == "string_too_long" and name in data else ""
    return InvalidRequestError(f"{name!r} must be {rule}.{has}", field=name)


def _unknown(name: str, word: str, fields: list[str]) -> InvalidRequestError:
    folded = {field.lower(): field for field in fields}
    near = difflib.get_close_matches(word.lower().replace("_", ""), folded, n=1, cutoff=0.6)
    hint = f"Did you mean {folded[near[0]]!r}?" if near else f"There are: {', '.join(fields)}."
    return InvalidRequestError(f"There is no field {word[:100]!r}.", field=name[:100], hint=hint)


def _refuse_constant(_: str) -> NoReturn:
    raise ValueError
