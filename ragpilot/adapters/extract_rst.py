"""reStructuredText to units: what a reader of Markdown would see of it, without roles, labels and directive marks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ragpilot.adapters.extract_code import dedented, depth_of
from ragpilot.adapters.extract_markdown import heading_unit, prose_unit
from ragpilot.adapters.extract_units import Unit

_RULE = re.compile(r"([=\-`:.'\"~^_*+#])\1{2,}\s*$")
_DIRECTIVE = re.compile(r"\s*\.\.\s+(?P<name>[\w:-]+)::\s*(?P<argument>.*)$")
_COMMENT = re.compile(r"\s*\.\.(?:\s+(?:_.*:|\|[^|]+\|.*|[^\s\[].*))?\s*$")
_OPTION = re.compile(r"\s+:[\w-]+:")
_ITEM = re.compile(r"\s*(?:[-*+]|\d{1,3}[.)]|#\.)\s+")

_ROLE = re.compile(r":[\w:.+-]+:(?=`)")
_TARGET = re.compile(r"`([^`<]*[^`<\s])\s*<[^`>]*>`(_{0,2})")
_REFERENCE = re.compile(r"`([^`]+)`_{1,2}(?!\w)")
_LITERAL = re.compile(r"``(.+?)``(?!`)")

_CODE_DIRECTIVES = frozenset({"code-block", "code", "sourcecode", "parsed-literal", "prompt", "literalinclude"})
_TABS = frozenset({"tab", "group-tab", "tab-item", "code-tab"})
_WRAPPERS = frozenset({"tabs", "tab-set", "container", "only", "rst-class", "class"})
_DROPPED = frozenset({"image", "figure", "toctree", "contents", "index", "module", "currentmodule", "highlight"})


def rst_units(lines: Sequence[str]) -> list[Unit]:
    """The units of ``lines``, reStructuredText without blank lines at either end, in order."""
    return [unit for unit in _read(lines) if unit.lines]


def _read(lines: Sequence[str]) -> Iterator[Unit]:
    at, apart = 0, True
    code = depth_of(lines[0]) >= 4  # these lines begin within a literal block
    language = "text"
    while at < len(lines):
        line = lines[at]
        if not line.strip():
            at, apart = at + 1, True
            continue
        if code:
            stop = _indented(lines, at, depth_of(line))
            yield Unit(tuple(dedented(lines[at:stop])), language)
            at, apart, code = stop, True, False
            continue
        directive = _DIRECTIVE.match(line)
        if directive is not None:
            at += 1
            while at < len(lines) and _OPTION.match(lines[at]):
                at += 1
            name, argument = directive["name"], directive["argument"].strip()
            follows = _next_depth(lines, at) > depth_of(line)
            if name in _CODE_DIRECTIVES:
                code, language = follows, re.sub(r"[^\w+#-].*", "", argument) or "text"
            elif name in _DROPPED:
                at = _indented(lines, at, depth_of(line) + 1) if follows else at
            elif name not in _WRAPPERS:
                tab = name in _TABS and bool(argument)
                yield heading_unit(argument) if tab else prose_unit([f"**{name}** {_markdown(argument)}"], apart=True)
            apart = True
        elif _COMMENT.match(line) or _RULE.match(line):
            at += 1
        elif at + 1 < len(lines) and _RULE.match(lines[at + 1]) and len(lines[at + 1].strip()) >= len(line.strip()):
            yield heading_unit(_markdown(line.strip()))
            at, apart = at + 2, True
        else:
            stop = _paragraph(lines, at)
            text = [_markdown(row) for row in dedented(lines[at:stop])]
            code, language = text[-1].endswith("::"), "text"
            if code:
                text[-1] = text[-1][:-2].rstrip() + ":" if text[-1] != "::" else ""
            code = code and _next_depth(lines, stop) > depth_of(line)
            yield prose_unit(text, apart=apart)
            at, apart = stop, False


def _paragraph(lines: Sequence[str], start: int) -> int:
    """Where the paragraph or the item that begins at ``start`` ends."""
    at = start + 1
    while at < len(lines) and lines[at].strip() and not _ITEM.match(lines[at]) and not _DIRECTIVE.match(lines[at]):
        at += 1
    return at


def _indented(lines: Sequence[str], start: int, depth: int) -> int:
    """Where the rows from ``start`` on that are indented to ``depth`` or more end, blank ones among them included."""
    end = start
    for at in range(start, len(lines)):
        if lines[at].strip():
            if depth_of(lines[at]) < depth:
                break
            end = at + 1
    return end


def _next_depth(lines: Sequence[str], start: int) -> int:
    return next((depth_of(line) for line in lines[start:] if line.strip()), 0)


def _markdown(text: str) -> str:
    """Inline marks as Markdown has them: roles and link targets aside, every interpreted text is code."""
    text = _TARGET.sub(lambda found: f"`{found[1]}`{found[2]}", text)
    text = _REFERENCE.sub(r"\1", text) if "``" not in text else text
    text = _ROLE.sub("", text).replace("`~", "`")
    return _LITERAL.sub(r"`\1`", text)
