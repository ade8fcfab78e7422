"""The operations of an API description: where they stand, what they are called, what they take and give."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ragpilot.ingest.chunkers.openapi.references import reference, resolve, short_name
from ragpilot.ingest.chunkers.openapi.schemas import SchemaWriter
from ragpilot.ingest.chunkers.trees import Value

_METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace", "query")
_LONGEST_SYMBOL = 240
_DEPTHS = (4, 2, 1, 0)


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one path, on rows ``start`` to ``end`` (from 0, both included)."""

    method: str
    path: str
    start: int
    end: int
    item: Value
    value: Value
    webhook: bool = False

    @property
    def symbol(self) -> str:
        """``GET /orders/{id}``."""
        return f"{self.method.upper()} {self.path}"[:_LONGEST_SYMBOL]


def operations(root: Value) -> Iterator[Operation]:
    """Operations under paths and webhooks, in the order of the file."""
    for group in ("paths", "webhooks"):
        paths = root.get(group)
        if paths is None or paths.kind != "map":
            continue
        for path, given in paths.items():
            item = resolve(root, given)
            if item is None or item.kind != "map":
                continue
            path_row = paths.key_rows.get(path, given.start)
            for method, value in item.items():
                if _is_operation(method, value):
                    start, end = _place(path_row, given, item, method)
                    yield Operation(method, path, start, end, item, value, group == "webhooks")


def _is_operation(method: str, value: Value) -> bool:
    return method.lower() in _METHODS and value.kind == "map"


def _place(path_row: int, given: Value, item: Value, method: str) -> tuple[int, int]:
    """The rows of an operation; the path's key, and what stands below it for all methods, is with the first one.

    One that a reference or a YAML merge brings in stands where the path says so.
    """
    if item is not given or method not in item.entries:
        return path_row, max(given.end, path_row)
    row = item.key_rows[method]
    first = min(item.key_rows[name] for name, value in item.entries.items() if _is_operation(name, value))
    return path_row if row == first else row, max(item.entries[method].end, row)


def own_entries(operation: Operation) -> Iterator[tuple[str, Value]]:
    """What the operation says itself, then what its path says for all its methods."""
    yield from operation.value.entries.items()
    yield from ((key, value) for key, value in operation.item.entries.items() if not _is_operation(key, value))


def writers(root: Value) -> list[SchemaWriter]:
    """Writers of a document's schemas, the most thorough first."""
    return [SchemaWriter(root, depth) for depth in _DEPTHS]


def render(root: Value, operation: Operation, schemas: Sequence[SchemaWriter], max_chars: int) -> str:
    """The operation as text: all that it says itself, and of what it refers to as much as suits ``max_chars``."""
    text = ""
    for writer in schemas:
        text = "\n".join(_lines(root, operation, writer))
        if len(text) <= max_chars:
            break
    return text


def parameter_names(root: Value, operation: Operation) -> list[str]:
    """Names of the operation's parameters, the path's included."""
    return [parameter.string("name") for parameter in _parameters(root, operation)]


def _lines(root: Value, operation: Operation, schemas: SchemaWriter) -> Iterator[str]:
    value = operation.value
    title = operation.symbol + (" (webhook)" if operation.webhook else "")
    summary = value.string("summary") or operation.item.string("summary")
    yield f"{title} — {summary}" if summary else title
    for label, key in (("operation", "operationId"), ("", "description")):
        if text := value.string(key):
            yield f"{label}: {text}".lstrip(": ")
    if value.string("deprecated") == "true":
        yield "deprecated"
    for key in ("tags", "consumes", "produces", "security"):
        if listed := _listed(value.get(key)):
            yield f"{key}: {listed}"
    parameters = list(_parameters(root, operation))
    if parameters:
        yield "parameters:"
        yield from (_parameter(parameter, schemas) for parameter in parameters)
    yield from _body(root, value.get("requestBody"), schemas)
    yield from _responses(root, value.get("responses"), schemas)
    if callbacks := value.get("callbacks"):
        yield "callbacks: " + ", ".join(name for name, _ in callbacks.items())


def _parameters(root: Value, operation: Operation) -> Iterator[Value]:
    """The operation's own parameters, then those of its path that it does not replace."""
    seen: set[tuple[str, str]] = set()
    for owner in (operation.value, operation.item):
        listed = owner.get("parameters")
        for given in listed.elements if listed is not None else []:
            parameter = resolve(root, given) or given
            key = (parameter.string("name") or reference(parameter), parameter.string("in"))
            if parameter.kind == "map" and key not in seen:
                seen.add(key)
                yield parameter


def _parameter(parameter: Value, schemas: SchemaWriter) -> str:
    if target := reference(parameter):
        return f"- {short_name(target)}"
    place = parameter.string("in")
    needed = ", required" if parameter.string("required") == "true" else ""
    schema = schemas.write(parameter.get("schema")) or (schemas.write(parameter) if parameter.get("type") else "")
    about = f" — {text}" if (text := parameter.string("description")) else ""
    return f"- {parameter.string('name')} ({place}{needed}): {schema}{about}".replace(": —", " —")


def _body(root: Value, given: Value | None, schemas: SchemaWriter) -> Iterator[str]:
    if given is None:
        return
    body = resolve(root, given)
    if body is None:
        yield f"body: {short_name(reference(given))}"
        return
    needed = " (required)" if body.string("required") == "true" else ""
    about = f" {text}" if (text := body.string("description")) else ""
    yield f"body{needed}:{about}"
    yield from _contents(body, schemas)


def _responses(root: Value, responses: Value | None, schemas: SchemaWriter) -> Iterator[str]:
    if responses is None or responses.kind != "map":
        return
    yield "responses:"
    for status, given in responses.items():
        response = resolve(root, given)
        if response is None or response.kind != "map":
            yield f"- {status} {short_name(reference(given)) if given.kind == 'map' else given.text}"
            continue
        name = short_name(reference(given)) if reference(given) else ""
        yield f"- {' '.join(filter(None, (status, name, response.string('description'))))}"
        yield from _contents(response, schemas)


def _contents(owner: Value, schemas: SchemaWriter) -> Iterator[str]:
    """Media types with their schemas; of Swagger 2 the schema alone; headers by name."""
    if (schema := owner.get("schema")) is not None:
        yield f"  {schemas.write(schema)}"
    content = owner.get("content")
    for media, value in content.items() if content is not None else ():
        written = schemas.write(value.get("schema"))
        yield f"  {media}: {written}" if written else f"  {media}"
    if (headers := owner.get("headers")) is not None and headers.kind == "map":
        yield "  headers: " + ", ".join(name for name, _ in headers.items())


def _listed(value: Value | None) -> str:
    """Scalars of a list, and the keys of maps in it, such as security schemes."""
    if value is None:
        return ""
    return ", ".join(
        element.text if element.kind == "scalar" else "+".join(name for name, _ in element.items())
        for element in value.elements
    )
