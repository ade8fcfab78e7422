"""What Kubernetes' Secrets hold: every value under ``data`` and ``stringData``, whatever its key says."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Generator, Iterator
from itertools import pairwise

from ragpilot.ingest.secrets.placeholders import is_literal
from ragpilot.ingest.secrets.values import Found

KIND = "kubernetes-secret"

_YAML_KIND = re.compile(
    r"^(?P<indent>[ \t]{0,40}(?:-[ \t]{1,4})?)kind:[ \t]{1,4}[\"']?Secret[\"']?[ \t]{0,8}(?:#.{0,200})?\r?$",
    re.MULTILINE,
)
_DATA = re.compile(r"(?:data|stringData):[ \t]{0,8}(?:#.*)?\r?")
_ENTRY = re.compile(r"[ \t]*(?:\"[^\"]{1,253}\"|'[^']{1,253}'|[\w./-]{1,253}):[ \t]+(?P<value>\S.*?)[ \t]*\r?")
_FLOW = re.compile(r"(?:data|stringData):[ \t]{1,8}\{(?P<entries>.*)\}[ \t]*(?:#.*)?\r?")
_FLOW_ENTRY = re.compile(
    r"(?<![\w./-])[\"']?[\w./-]{1,253}[\"']?:[ \t]+(?P<quote>[\"']?)(?P<value>[^\s\"',{}]+)(?P=quote)(?=[ \t]*(?:,|$))"
)
_BLOCK = re.compile(r"[|>][+-]?\d?[+-]?(?:[ \t]+#.*)?")
_COMMENT = re.compile(r"[ \t]+#.*")
_TEMPLATED = re.compile(r"\{\{|\$\{|\$\(|<\w")
_BETWEEN = ("---", "```", "~~~")
_MOST_LINES = 500
"""How far from its kind a manifest is looked at, in either direction."""

_JSON_OBJECT = re.compile(r"(?:\\?\"kind\\?\"\s{0,4}:\s{0,4}\\?\"\w{1,60}\\?\"\s{0,4},\s{0,60})?\\?\"apiVersion")
_JSON_KIND = re.compile(r"\\?\"kind\\?\"\s{0,4}:\s{0,4}\\?\"Secret\\?\"")
_JSON_DATA = re.compile(r"\\?\"(?:data|stringData)\\?\"\s{0,4}:\s{0,4}\{")
_JSON_ENTRY = re.compile(
    r"\s{0,40},?\s{0,40}\\?\"[\w./-]{1,253}\\?\"\s{0,4}:\s{0,4}\\?\"(?P<value>(?:[^\"\\\n]|\\(?![\"])){0,20000})\\?\""
)


def find_in_manifests(text: str) -> Iterator[Found]:
    """The values of Secrets in YAML and JSON, also among other documents. Linear in the text's length."""
    if "Secret" not in text or "ata" not in text:
        return
    yield from _in_yaml(text)
    if "apiVersion" in text:
        yield from _in_json(text)


def _in_yaml(text: str) -> Iterator[Found]:
    reached = 0
    for kind in _YAML_KIND.finditer(text):
        if kind.start() < reached:
            continue
        column = len(kind["indent"])
        start = _first_line(text, kind.start(), column, kind["indent"].rstrip().endswith("-"), reached)
        reached = yield from _values(text, start, column, kind.end())


def _first_line(text: str, at: int, column: int, is_first: bool, reached: int) -> int:
    """Where the mapping begins that the line at ``at`` belongs to: its lines above are indented as it is, or more."""
    for _ in range(_MOST_LINES):
        if is_first or at <= reached:
            break
        above = text.rfind("\n", reached, at - 1) + 1 if at > reached + 1 else reached
        above = max(above, reached)
        line = text[above : at - 1]
        dashed = line[:column].rstrip().endswith("-") and len(line) > column
        if line.strip() and not dashed and (not _is_inside(line, column) or line.startswith(_BETWEEN)):
            break
        at, is_first = above, dashed
    return at


def _is_inside(line: str, column: int) -> bool:
    stripped = line.lstrip(" \t")
    return len(line) - len(stripped) >= column or stripped.startswith(("#", "{{"))


def _values(text: str, start: int, column: int, kind_end: int) -> Generator[Found, None, int]:
    """What stands under ``data`` and ``stringData`` of the mapping that begins at ``start``; returns its end."""
    at, in_data, encoded, block = start, False, False, -1
    block_start = block_end = 0
    lines = 0
    while at < len(text):
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        line = text[at:end]
        first = line[:column].strip() in ("", "-") and at == start
        depth = len(line) - len(line.lstrip(" \t"))
        if line.strip():
            lines += at > kind_end
            outside = not first and at > start and not _is_inside(line, column)
            if block >= 0 and (depth <= block or outside):
                yield from _block(text, block_start, block_end)
                block = -1
            if outside or line.startswith(_BETWEEN) or lines > _MOST_LINES:
                break
            if block >= 0:
                block_start, block_end = block_start or at + depth, end
            elif depth <= column or first:
                in_data = _DATA.fullmatch(line[column:]) is not None
                encoded = line.startswith("data", column)
                if flow := _FLOW.fullmatch(line[column:]):
                    yield from _flow(flow["entries"], at + column + flow.start("entries"), encoded=encoded)
            elif in_data and (entry := _ENTRY.fullmatch(line)) is not None:
                if _BLOCK.fullmatch(entry["value"]):
                    block, block_start, block_end = depth, 0, 0
                elif span := _scalar(entry["value"], encoded=encoded):
                    yield at + entry.start("value") + span[0], at + entry.start("value") + span[1], KIND
        at = end + 1
    if block >= 0:
        yield from _block(text, block_start, block_end)
    return at


def _flow(entries: str, start: int, *, encoded: bool) -> Iterator[Found]:
    """``data: {key: value, …}``, in one line."""
    for entry in _FLOW_ENTRY.finditer(entries):
        if _is_secret(entry["value"], encoded=encoded):
            yield start + entry.start("value"), start + entry.end("value"), KIND


def _block(text: str, start: int, end: int) -> Iterator[Found]:
    """A value of several lines, as a whole; one that a template fills in is left to what finds single secrets."""
    value = text[start:end].rstrip()
    if value and "[redacted:" not in value and not _TEMPLATED.search(value):
        yield start, start + len(value), KIND


def _scalar(value: str, *, encoded: bool) -> tuple[int, int] | None:
    start, end = 0, len(value)
    if value[0] in "\"'":
        start, end = 1, value.find(value[0], 1)
    elif comment := _COMMENT.search(value):
        end = comment.start()
    return (start, end) if end > start and _is_secret(value[start:end], encoded=encoded) else None


def _is_secret(value: str, *, encoded: bool) -> bool:
    if not is_literal(value):
        return False
    if encoded:
        try:
            decoded = base64.b64decode(value, validate=True).decode("utf-8").strip()
        except (binascii.Error, UnicodeDecodeError):
            return True
        return is_literal(decoded) or not decoded.isprintable()
    return True


def _in_json(text: str) -> Iterator[Found]:
    """Each object from its ``apiVersion`` to the next one's: its kind may stand before its data or behind."""
    starts = [start.start() for start in _JSON_OBJECT.finditer(text)]
    for at, end in pairwise((*starts, len(text))):
        if _JSON_KIND.search(text, at, end) is None:
            continue
        for data in _JSON_DATA.finditer(text, at, end):
            entry = _JSON_ENTRY.match(text, data.end(), end)
            while entry is not None:
                if _is_secret(entry["value"], encoded="stringData" not in data[0]):
                    yield *entry.span("value"), KIND
                entry = _JSON_ENTRY.match(text, entry.end(), end)
