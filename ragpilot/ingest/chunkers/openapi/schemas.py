"""A schema in words: types, fields, formats and choices, its references written out to a depth."""

from __future__ import annotations

from ragpilot.ingest.chunkers.openapi.references import reference, resolve, short_name
from ragpilot.ingest.chunkers.trees import Value

_MOST_VALUES = 150
"""Values that one schema may take to write out; what lies beyond is left to the schema's own chunk."""
_MOST_CHOICES = 12
_COMPOSED = {"allOf": " and ", "oneOf": " or ", "anyOf": " or "}
_BOUNDS = ("format", "pattern", "minimum", "maximum", "minLength", "maxLength", "default", "const")


class SchemaWriter:
    """Writes the schemas of one document. References deeper than ``depth`` are left as names, cycles always are."""

    def __init__(self, root: Value, depth: int) -> None:
        self._root = root
        self._depth = depth
        self._left = _MOST_VALUES
        self._written: dict[str, str] = {}

    def write(self, schema: Value | None) -> str:
        """A schema on one line, ``Order {id: string (uuid), lines: [Line {...}]}``; empty for None."""
        if schema is None:
            return ""
        target = reference(schema)
        if target not in self._written:
            self._left = _MOST_VALUES
            text = self._write(schema, ())
            if not target:
                return text
            self._written[target] = text
        return self._written[target]

    def _write(self, schema: Value, trail: tuple[str, ...]) -> str:
        """The recursion is as deep as ``trail`` is long, which ``depth`` bounds."""
        self._left -= 1
        if self._left < 0:
            return "…"
        if schema.kind != "map":
            return schema.text or "…"
        target = reference(schema)
        if target:
            name = short_name(target)
            if target in trail:
                return f"{name} (recursive)"
            found = resolve(self._root, schema)
            if found is None or found.kind != "map" or len(trail) >= self._depth:
                return name
            return self._named(name, self._body(found, (*trail, target)))
        if len(trail) >= self._depth + _INLINE_DEPTH:
            return schema.string("type") or "…"
        return self._body(schema, trail)

    @staticmethod
    def _named(name: str, body: str) -> str:
        return f"{name} {body}" if body else name

    def _body(self, schema: Value, trail: tuple[str, ...]) -> str:
        inner = (*trail, "") if len(trail) < self._depth + _INLINE_DEPTH else trail
        parts = [self._type(schema)]
        if (items := schema.get("items")) is not None:
            parts = [f"[{self._write(items, inner)}]"]
        fields = self._fields(schema, inner)
        if fields:
            parts = [f"{{{fields}}}"]
        for keyword, joint in _COMPOSED.items():
            choices = schema.get(keyword)
            if choices is not None and choices.elements:
                written = joint.join(self._write(choice, inner) for choice in choices.elements)
                parts.append(f"({written})" if joint == " or " and len(choices.elements) > 1 else written)
        if (extra := schema.get("additionalProperties")) is not None and extra.kind == "map":
            parts.append(f"{{*: {self._write(extra, inner)}}}")
        return " ".join(part for part in (*parts, self._choices(schema), self._bounds(schema)) if part)

    def _type(self, schema: Value) -> str:
        kind = schema.get("type")
        if kind is None:
            return ""
        return kind.text or "|".join(element.text for element in kind.elements)

    def _fields(self, schema: Value, trail: tuple[str, ...]) -> str:
        properties = schema.get("properties")
        if properties is None or properties.kind != "map":
            return ""
        needed = schema.get("required")
        required = {element.text for element in needed.elements} if needed is not None else set()
        written: list[str] = []
        for name, field in properties.items():
            if self._left < 0:
                written.append("…")
                break
            star = "*" if name in required else ""
            about = " ".join(filter(None, (self._write(field, trail), _quoted(field.string("description")))))
            written.append(f"{name}{star}: {about}" if about else f"{name}{star}")
        return ", ".join(written)

    def _choices(self, schema: Value) -> str:
        choices = schema.get("enum")
        if choices is None or not choices.elements:
            return ""
        more = "|…" if len(choices.elements) > _MOST_CHOICES else ""
        return "one of " + "|".join(choice.text for choice in choices.elements[:_MOST_CHOICES]) + more

    def _bounds(self, schema: Value) -> str:
        bounds = [f"{name} {text}" if name != "format" else text for name in _BOUNDS if (text := schema.string(name))]
        return f"({', '.join(bounds)})" if bounds else ""


_INLINE_DEPTH = 6
"""How much deeper than references schemas are written that stand where they are used."""


def _quoted(description: str) -> str:
    return f'"{description}"' if description else ""
