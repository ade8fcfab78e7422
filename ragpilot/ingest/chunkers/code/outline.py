"""A syntax tree as nested units: what is declared, on which rows, under which name.

No function here recurses: trees of generated or hostile files are thousands of levels deep.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tree_sitter import Node

from ragpilot.ingest.chunkers.code.language import Declared, Kind, Language, Source
from ragpilot.ingest.chunkers.lines import Lines

_LONGEST_NAME = 120
_LONGEST_SYMBOL = 240
_SUBSTANTIAL = 200
"""A constant, field or prototype of so many characters gets a chunk of its own."""
_DOCUMENTED = 100
"""The same with a comment above it."""


@dataclass(slots=True)
class Name:
    """A field, constant or prototype, and the rows it stands on."""

    start: int
    end: int
    text: str
    documented: bool = False
    """Whether a comment stands right above."""


@dataclass(slots=True, eq=False)
class Unit:
    """A declaration on rows ``start`` to ``end`` (from 0, both included), with its comments and decorators."""

    start: int
    end: int
    declared_at: int
    """The row of the declaration itself."""
    kind: Kind
    symbol: str
    """Qualified; empty for the module."""
    scope: str
    """What qualifies its members: its symbol, or a namespace that a statement in it opened."""
    signature: str = ""
    doc: str = ""
    children: list[Unit] = field(default_factory=list)
    names: list[Name] = field(default_factory=list)
    """In the order of their rows."""
    prototype: bool = False
    """Whether it declares what is written elsewhere."""

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
    end: int


def outline(root: Node, lines: Lines, source: Source, language: Language, max_chars: int) -> Unit:
    """The module as a unit, its declarations as children, to the depth that chunks of ``max_chars`` need."""
    module = Unit(0, len(lines) - 1, 0, Kind.SCOPE, "", "", doc=language.docstring(root, source))
    stack = _children(root, module, lines, language)
    while stack:
        visit = stack.pop()
        node, owner = visit.node, visit.owner
        end = visit.end
        oversized = end > node.start_point.row and lines.size(visit.start, end) > max_chars
        inner = _unwrapped(node, language)
        declared = _read(inner, source, language) or _value(visit, inner, end, lines, source, language, max_chars)
        if declared is None:
            if oversized or inner.is_error or inner.type in language.transparent:
                stack += _children(inner, owner, lines, language, visit)
        elif declared.kind is Kind.CALLABLE and declared.body is None and language.bodiless:
            if _stands_alone(visit, end, lines, max_chars):
                unit = _unit(visit, declared, end, source, language)
                unit.prototype = True
                owner.children.append(unit)
            else:
                owner.names.append(Name(visit.start, end, declared.name, bool(visit.comments)))
        elif declared.body is None and inner.type in language.file_scopes:
            owner.scope = declared.name
        else:
            unit = _unit(visit, declared, end, source, language)
            _take_overloads(unit, owner, declared.name, lines)
            owner.children.append(unit)
            if oversized or declared.kind in (Kind.TYPE, Kind.SCOPE):
                stack += _children(declared.node, unit, lines, language)
    return module


def last_row(node: Node, lines: Lines) -> int:
    """The last row that holds something of the node: some grammars let it end before the first word of a later one."""
    end = node.end_point
    if end.row > node.start_point.row and not lines.rows[end.row][: end.column].strip():
        return _last_before(end.row, node.start_point.row, lines)
    return end.row


def _last_before(row: int, start: int, lines: Lines) -> int:
    """The last row above one that is not blank, and not above ``start``."""
    row = max(row - 1, start)
    while row > start and lines.blank(row):
        row -= 1
    return row


def _comments_at_the_end(node: Node, language: Language) -> list[Node]:
    """Comments that the grammar has inside a declaration, and that stand left of all it holds."""
    column = node.start_point.column
    last: Node | None = node
    while last is not None and last.end_point.row > node.start_point.row:
        children = last.named_children
        found: list[Node] = []
        while children and children[-1].type in language.comments and children[-1].start_point.column <= column:
            found.append(children.pop())
        if found:
            return found[::-1]
        last = children[-1] if children else None
    return []


def _children(node: Node, owner: Unit, lines: Lines, language: Language, outer: _Visit | None = None) -> list[_Visit]:
    """Visits of a node's children, last first, each with the comments and attributes right above it.

    What stands on the first row of a node that declares nothing itself has the comments of that ``outer`` visit.
    """
    visits: list[_Visit] = []
    above: list[Node] = []
    lead = lead_end = before = -1
    for child in node.named_children:
        start = child.start_point.row
        is_comment = child.type in language.comments
        if is_comment or child.type in language.leading:
            if is_comment and start == before:
                continue  # a remark at the end of the row before
            if not above or start - lead_end > 1:
                lead, above = start, []
            above.append(child)
            lead_end = last_row(child, lines)
            continue
        attached = bool(above) and start - lead_end <= 1
        comments = [node for node in above if node.type in language.comments] if attached else []
        end = last_row(child, lines)
        tail = _comments_at_the_end(child, language) if language.indented else []
        if tail:
            end = _last_before(tail[0].start_point.row, start, lines)
        visits.append(_Visit(child, owner, lead if attached else start, comments, end))
        above, before = tail, end
        if tail:
            lead, lead_end = tail[0].start_point.row, last_row(tail[-1], lines)
    if outer is not None and visits and visits[0].start == node.start_point.row:
        visits[0].start = outer.start
        visits[0].comments = outer.comments + visits[0].comments
    visits.reverse()
    return visits


def _unwrapped(node: Node, language: Language) -> Node:
    """The declaration inside decorators, exports and the like; the innermost wrapper when there is none."""
    while node.type in language.wrappers:
        inner = None
        for name in ("declaration", "definition", "value"):
            inner = inner or node.child_by_field_name(name)
        inner = inner or next((c for c in reversed(node.named_children) if c.type not in language.comments), None)
        if inner is None:
            break
        node = inner
    return node


def _read(node: Node, source: Source, language: Language) -> Declared | None:
    if (declared := language.read(node, source)) is not None:
        return declared
    kind = language.definitions.get(node.type)
    if kind is None:
        return None
    name = language.name_of(node, source)
    return Declared(kind, name, node, language.body_of(node)) if name else None


def _value(
    visit: _Visit, node: Node, end: int, lines: Lines, source: Source, language: Language, max_chars: int
) -> Declared | None:
    """A field or constant as a declaration of its own when it is long; otherwise its name is noted with its owner."""
    if node.type not in language.minor or visit.owner.kind is Kind.CALLABLE:
        return None
    names = [name for name in language.names_in(node, source) if len(name) <= _LONGEST_NAME]
    if len(names) == 1 and _stands_alone(visit, end, lines, max_chars):
        return Declared(Kind.VALUE, names[0], node, None)
    visit.owner.names += [Name(visit.start, end, name, bool(visit.comments)) for name in names]
    return None


def _stands_alone(visit: _Visit, end: int, lines: Lines, max_chars: int) -> bool:
    """Whether what could go with its neighbours is long enough for a chunk, in an owner that has no room for it."""
    owner = visit.owner
    fits = owner.kind is Kind.TYPE and lines.size(owner.start, owner.end) <= max_chars
    if fits or owner.kind is Kind.CALLABLE or end == visit.start:
        return False
    return lines.size(visit.start, end) >= (_DOCUMENTED if visit.comments else _SUBSTANTIAL)


def _unit(visit: _Visit, declared: Declared, end: int, source: Source, language: Language) -> Unit:
    name = " ".join(declared.name.split())[:_LONGEST_NAME]
    symbol = _bounded(".".join(part for part in (visit.owner.scope, name) if part))
    above = [source.text(comment) for comment in visit.comments]
    comment = "\n".join(text for text in above if not text.startswith("@"))
    annotations = " ".join(text for text in above if text.startswith("@"))  # shown to the grammar as comments
    signature = f"{annotations} {language.signature(visit.node, declared, source)}".strip()
    if visit.owner.kind is Kind.SCOPE:
        signature += " " + visit.owner.signature  # of what trait an implementation is
    return Unit(
        start=visit.start,
        end=end,
        declared_at=declared.node.start_point.row,
        kind=declared.kind,
        symbol=symbol,
        scope=symbol,
        signature=signature,
        doc=language.docstring(declared.node, source) or comment,
    )


def _bounded(symbol: str) -> str:
    """The last parts of a symbol that is nested beyond reason."""
    return symbol if len(symbol) <= _LONGEST_SYMBOL else symbol[-_LONGEST_SYMBOL:].partition(".")[2]


def _take_overloads(unit: Unit, owner: Unit, name: str, lines: Lines) -> None:
    """Bodiless signatures of the same name right above belong to the implementation."""

    def right_above(end: int) -> bool:
        return lines.trim(end + 1, unit.start - 1) is None

    while True:
        names, children = owner.names, owner.children
        if names and names[-1].text == name and right_above(names[-1].end):
            unit.start = names.pop().start
        elif children and children[-1].prototype and children[-1].name == name and right_above(children[-1].end):
            unit.start = children.pop().start
        else:
            return
