"""Reads one TOML file, so that whatever is wrong with it is said with file, line and column."""

from __future__ import annotations

import os
import re
import stat
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragpilot.errors import ConfigError

MAX_BYTES = 1_000_000

KeyPath = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """A configuration file as it was read: once, so that what is judged and what is used are the same bytes."""

    path: Path
    content: bytes
    text: str
    data: dict[str, Any]

    def line(self, key: KeyPath) -> int | None:
        """The line that sets ``key``, or the nearest table around it; None where it cannot be had."""
        lines = _key_lines(self.text)
        return next((lines[key[:n]] for n in range(len(key), 0, -1) if key[:n] in lines), None)

    def place(self, key: KeyPath) -> str:
        """``file:line`` of ``key``, as far as it is known."""
        number = self.line(key)
        return str(self.path) if number is None else f"{self.path}:{number}"


def read_bytes(path: Path) -> bytes:
    """The bytes of a regular file of at most 1 MB.

    Never waits: a named pipe or a device is refused, not read. Raises ConfigError.
    """
    try:
        # Opened before it is judged, so that nothing can be swapped in between; NONBLOCK keeps a pipe from hanging.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except FileNotFoundError:
        raise ConfigError(f"There is no configuration file {path}.") from None
    except IsADirectoryError:
        raise ConfigError(f"{path} is a folder, not a configuration file.") from None
    except (OSError, ValueError) as error:
        raise ConfigError(f"The configuration file {path} cannot be read: {_reason(error)}.") from None
    mode = os.fstat(handle).st_mode
    if not stat.S_ISREG(mode):
        os.close(handle)
        what = "a folder, not a configuration file" if stat.S_ISDIR(mode) else "a pipe or a device, no regular file"
        raise ConfigError(f"{path} is {what}.")
    try:
        with os.fdopen(handle, "rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"The configuration file {path} cannot be read: {_reason(error)}.") from None
    if len(content) > MAX_BYTES:
        raise ConfigError(f"{path} is larger than 1 MB; that is no configuration of RagPilot.")
    return content


def parse(path: Path, content: bytes) -> ConfigFile:
    """The parsed file. Raises ConfigError that names file, line and column."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise ConfigError(f"{path} is UTF-16 text.", hint="Save it as UTF-8.")
    try:
        text = content.removeprefix(b"\xef\xbb\xbf").decode()
    except UnicodeDecodeError as error:
        before = content[: error.start]
        line = before.count(b"\n") + 1
        column = len(before.rpartition(b"\n")[2].decode(errors="replace")) + 1
        raise ConfigError(
            f"{path}:{line}:{column}: the byte 0x{content[error.start]:02x} is not UTF-8.", hint="Save it as UTF-8."
        ) from None
    try:
        return ConfigFile(path, content, text, tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(_syntax(path, text, str(error))) from None
    except RecursionError:
        raise ConfigError(f"{path} is nested too deeply.") from None


def read(path: Path) -> ConfigFile:
    """Read and parse one file. Raises ConfigError."""
    return parse(path, read_bytes(path))


def _syntax(path: Path, text: str, message: str) -> str:
    """``file:line:column: what is wrong`` from tomllib's message, which ends in ``(at line 1, column 8)``."""
    match = re.fullmatch(r"(?s)(.*?) \(at (?:line (\d+), column (\d+)|end of document)\)", message)
    if match is None:
        return f"{path}: this is not TOML: {message}."
    lines = text.split("\n")
    line, column = match[2] or len(lines), match[3] or len(lines[-1]) + 1
    # tomllib names tables as Python tuples: ('server', 'tls').
    said = re.sub(r"\(('[^']*'(?:, '[^']*')*),?\)", lambda found: found[1].replace("', '", ".").strip("'"), match[1])
    return f"{path}:{line}:{column}: this is not TOML: {said}."


def _reason(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or error).lower()


_HEADER = re.compile(r"\s*(\[\[?)\s*([^\]#]+?)\s*\]\]?\s*(?:#.*)?$")
_ASSIGNMENT = re.compile(r"""\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*=""")
_PART = re.compile(r"""[\w-]+|"[^"]*"|'[^']*'""")


def _key_lines(text: str) -> dict[KeyPath, int]:
    """Key path -> line, for keys at the start of a line: what an error message needs, not a second parser."""
    lines: dict[KeyPath, int] = {}
    counts: dict[KeyPath, int] = {}
    table: KeyPath = ()
    quote = ""
    for number, line in enumerate(text.split("\n"), start=1):
        if quote:
            quote = "" if line.count(quote) % 2 else quote
            continue
        if header := _HEADER.match(line):
            *outer, last = _parts(header[2])
            path: KeyPath = ()
            for part in outer:
                path = _latest((*path, part), counts)
            table = (*path, last)
            if header[1] == "[[":
                counts[table] = counts.get(table, 0) + 1
                lines.setdefault(table, number)
            table = _latest(table, counts)
            lines.setdefault(table, number)
        elif assignment := _ASSIGNMENT.match(line):
            lines.setdefault((*table, *_parts(assignment[1])), number)
        quote = next((mark for mark in ('"""', "'''") if line.count(mark) % 2), "")
    return lines


def _parts(dotted: str) -> list[str]:
    return [part.strip("\"'") for part in _PART.findall(dotted)] or [dotted]


def _latest(path: KeyPath, counts: dict[KeyPath, int]) -> KeyPath:
    return (*path, counts[path] - 1) if path in counts else path
