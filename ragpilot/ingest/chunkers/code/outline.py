"""A syntax tree as nested units: what is declared, on which rows, under which name.

No function here recurses: trees of generated or hostile files are thousands of levels deep.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tree_sitter import Node

from ragpilot.ingest.chunkers.code.language import Declared, Kind, Language, Source
from ragpilot.ingest.chunkers.lines import Lines

_LONGEST_NAME = 120


@dataclass(slots=True)
class Name:
    """A field, constant or prototype, and the rows it stands on."""

    start: int
    end: int
    text: str


@dataclass(slots=True)
class Unit:
    """A declaration on rows ``start`` to ``end`` (from 0, both included), with its comments and decorators."""

    start: int
    end: int
    declared_at: int
    """The row of the declaration itself."""
    kind: Kind
    symbol: str
    """Qualified; empty for the module."""
    signature: str = ""
    doc: str = ""
    children: list[Unit] = field(default_factory=list)
    names: list[Name] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The last part of the symbol."""
        return self.symbol.rpartition(".")[2]


@dataclass(slots=True)
class _Visit:
    node: Node
    owner: Unit
    start: int
    comments: list[Node]


def outline(root: Node, lines: Lines, source: Source, language: Language, max_chars: int) -> Unit:
    """The module as a unit, its declarations as children, to the depth that chunks of ``max_chars`` need."""
    module = Unit(0, len(lines) - 1, 0, Kind.SCOPE, "", doc=language.docstring(root, source))
    stack = _children(root, module, language)
    while stack:
        visit = stack.pop()
        node, owner = visit.node, visit.owner
        end = last_row(node)
        oversized = end > node.start_point.row and lines.size(visit.start, end) > max_chars
        declared = _read(node, source, language)
        if declared is None:
            _note_names(visit, end, source, language)
            if oversized or node.is_error or node.type in language.transparent:
                stack += _children(node, owner, language)
            continue
        if declared.kind is Kind.CALLABLE and declared.body is None:
            owner.names.append(Name(visit.start, end, declared.name))
            continue
        unit = _unit(visit, declared, end, source, language)
        _take_overloads(unit, owner, declared.name, lines)
        owner.children.append(unit)
        if oversized or declared.kind is not Kind.CALLABLE:
            stack += _children(declared.node, unit, language)
    return module


def last_row(node: Node) -> int:
    """The last row that holds something of the node; some grammars let a node end at the start of the next row."""
    end = node.end_point
    return end.row - 1 if end.column == 0 and end.row > node.start_point.row else end.row


def _children(node: Node, owner: Unit, language: Language) -> list[_Visit]:
    """Visits of a node's children, last first, each with the comments and attributes right above it."""
    visits: list[_Visit] = []
    comments: list[Node] = []
    lead = lead_end = before = -1
    for child in node.named_children:
        start = child.start_point.row
        if child.type in language.leading:
            if start == before and child.type in language.comments:
                continue  # a remark at the end of the row before
            if not comments or start - lead_end > 1:
                lead, comments = start, []
            comments.append(child)
            lead_end = last_row(child)
            continue
        attached = bool(comments) and start - lead_end <= 1
        documentation = [comment for comment in comments if comment.type in language.comments] if attached else []
        visits.append(_Visit(child, owner, lead if attached else start, documentation))
        comments, before = [], last_row(child)
    visits.reverse()
    return visits


def _read(node: Node, source: Source, language: Language) -> Declared | None:
    """The node as a declaration, seen through its wrappers."""
    inner = node
    while inner.type in language.wrappers:
        declaration = _wrapped(inner, language)
        if declaration is None:
            return None
        inner = declaration
    if language.read is not None and (declared := language.read(inner, source)) is not None:
        return declared
    kind = language.definitions.get(inner.type)
    if kind is None:
        return None
    name = language.name_of(inner, source)
    return Declared(kind, name, inner, inner.child_by_field_name("body")) if name else None


def _wrapped(node: Node, language: Language) -> Node | None:
    for name in ("declaration", "definition"):
        if (child := node.child_by_field_name(name)) is not None:
            return child
    for child in reversed(node.named_children):
        if child.type in language.definitions or child.type in language.wrappers:
            return child
    return None


def _note_names(visit: _Visit, end: int, source: Source, language: Language) -> None:
    node = visit.node
    if node.type not in language.minor or visit.owner.kind is Kind.CALLABLE:
        return
    if language.minor_names is not None:
        names = language.minor_names(node, source)
    else:
        name = source.field(node, language.minor[node.type])
        names = [name] if name else []
    visit.owner.names += [Name(visit.start, end, name) for name in names if len(name) <= _LONGEST_NAME]


def _unit(visit: _Visit, declared: Declared, end: int, source: Source, language: Language) -> Unit:
    node, inner = visit.node, declared.node
    comment = "\n".join(source.text(comment) for comment in visit.comments)
    name = " ".join(declared.name.split())[:_LONGEST_NAME]
    return Unit(
        start=visit.start,
        end=end,
        declared_at=inner.start_point.row,
        kind=declared.kind,
        symbol=".".join(part for part in (visit.owner.symbol, name) if part),
        signature=language.signature(node, declared, source),
        doc=language.docstring(inner, source) or comment,
    )


def _take_overloads(unit: Unit, owner: Unit, name: str, lines: Lines) -> None:
    """Bodiless signatures of the same name right above belong to the implementation."""
    while owner.names and owner.names[-1].text == name and lines.trim(owner.names[-1].end + 1, unit.start - 1) is None:
        unit.start = owner.names.pop().start
