"""Configuration by section: tables, top-level keys, stages, targets."""

from __future__ import annotations

import posixpath
import re

from ragpilot.ingest.chunkers.lines import Cut, Lines
from ragpilot.ingest.chunkers.parts import Part, chunk_parts
from ragpilot.ingest.chunkers.spans import Span
from ragpilot.ingest.chunkers.starts import indent_cost, rows_between, split_at

_TABLE = re.compile(r"^[ \t]*\[\[?[ \t]*([^\[\]]+?)[ \t]*\]\]?[ \t]*(?:[#;].*)?$")
_YAML_KEY = re.compile(r"^(\"[^\"]*\"|'[^']*'|[\w./@$*<-][^:#{}\[\]]*?)[ \t]*:(?:[ \t]|$)|^(---)[ \t]*$")
_STAGE = re.compile(r"^FROM[ \t]+(?:\S+[ \t]+AS[ \t]+(\S+)|(\S+))", re.IGNORECASE)
_TARGET = re.compile(r"^(?!\.[A-Z_]+[ \t]*:)([\w.%/$()@{} -]+?)[ \t]*::?(?!=)|^define[ \t]+(\S+)")
_ABOVE_TARGET = ("#", ".PHONY")
_BLOCK = re.compile(
    r"^([A-Za-z_][\w.\-\"' \t]*?)[ \t]*(?:\([^()]*\)[ \t]*)?[{(][ \t]*$|^(?P<together>[\w.-]+)[ \t]*[:=]"
)
_ELEMENT = re.compile(r"^(?:  |    |\t)<([A-Za-z][\w:.-]*)")
_COMMAND = re.compile(
    r"^[ \t]*(?:function|macro)[ \t]*\([ \t]*([\w.-]+)|^(?P<together>(?!end|else|function|macro)\w+)[ \t]*\(",
    re.IGNORECASE,
)
"""Of CMake."""
_NESTED_KEY = re.compile(r"^\s*[\"']?([\w./@$-]+)[\"']?[ \t]*:(?:[ \t]|$)")
_MOST_KEYS = 4
_FARTHEST_KEY = 400
_LONGEST_KEY_ROW = 200
_HASH = ("#",)


def chunk_config(path: str, lines: Lines, max_chars: int) -> list[Span]:
    """A configuration file as spans, by what its name says it is; a format not known here is cut by indentation."""
    name = posixpath.basename(path).lower()
    stem, dot, suffix = name.rpartition(".")
    if suffix in ("yaml", "yml"):
        parts = split_at(lines, _YAML_KEY, _HASH)
    elif suffix in ("json", "jsonc", "json5", "webmanifest", "avsc") or name in (
        ".babelrc",
        ".eslintrc",
        ".prettierrc",
    ):
        parts = split_at(lines, _json_key(lines), ("//",))
    elif suffix in ("toml", "ini", "cfg", "conf", "properties", "service") or name in (".editorconfig", ".gitconfig"):
        parts = split_at(lines, _TABLE, ("#", ";"), inside=rows_between(lines, '"""'), apart=True)
    elif "dockerfile" in name or "containerfile" in name:
        parts = split_at(lines, _STAGE, _HASH, apart=True)
    elif "makefile" in name or name == "justfile" or suffix in ("mk", "mak"):
        parts = split_at(lines, _TARGET, _ABOVE_TARGET, apart=True)
    elif suffix in ("xml", "csproj", "props", "targets", "xaml", "plist", "svg", "xsd"):
        parts = split_at(lines, _ELEMENT, ("<!--",))
    elif suffix == "cmake" or name == "cmakelists.txt":
        parts = split_at(lines, _COMMAND, _HASH, apart=True)
    elif dot and stem and suffix in ("tf", "hcl", "gradle", "bzl", "bazel", "nix", "groovy"):
        parts = split_at(lines, _BLOCK, ("#", "//"), apart=True)
    else:
        parts = [Part(0, len(lines) - 1, "")]

    def piece_name(part: Part, piece: Cut) -> str:
        return _key_path(lines, part, piece.start)

    return chunk_parts(path, lines, parts, indent_cost(lines), max_chars, piece_name=piece_name)


def _json_key(lines: Lines) -> re.Pattern[str]:
    """A key at the indentation of the first one, whatever this file's is."""
    for text in lines.rows[:50]:
        if (match := re.match(r"^([ \t]+)\"", text)) is not None:
            return re.compile(rf"^{re.escape(match.group(1))}\"((?:[^\"\\]|\\.)*)\"[ \t]*:")
    return re.compile(r"(?!)")


def _key_path(lines: Lines, part: Part, row: int) -> str:
    """The keys above a row by indentation, ``jobs.test.steps``; the part's name where there are none."""
    keys: list[str] = []
    indent = lines.indent(row) + 1
    for above in range(row, max(part.start - 1, row - _FARTHEST_KEY), -1):
        if lines.blank(above) or lines.indent(above) >= indent:
            continue
        text = lines.rows[above][:_LONGEST_KEY_ROW]
        if (match := _NESTED_KEY.match(text)) is not None:
            keys.append(match.group(1))
        # The key of a list may stand at the indentation of its items.
        indent = lines.indent(above) + text.lstrip().startswith("-")
        if not indent:
            break
    keys.reverse()
    if keys[:1] == [part.name]:
        del keys[0]
    return ".".join(filter(None, [part.name, *keys[-_MOST_KEYS:]]))
