r"""File names as the index shows them: printable text for any bytes a file system allows, and the way back.

A name that is UTF-8, printable and free of backslashes stands as it is. Elsewhere a backslash is doubled, a byte
that is no UTF-8 or a control character becomes ``\xNN``, another unprintable character ``\uNNNN`` or
``\UNNNNNNNN``. So two files never share a shown path, and the file can be opened from it.
"""

from __future__ import annotations

import re

_PLAIN = re.compile(rb"[ -\[\]-~]*")
_ESCAPE = re.compile(r"\\(?:(\\)|x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8}))")
_STRAY_BYTES = range(0xDC80, 0xDD00)


def shown_path(raw: bytes) -> str:
    """The printable form of a POSIX path."""
    if _PLAIN.fullmatch(raw):
        return raw.decode("ascii")
    text = raw.decode("utf-8", "surrogateescape")
    return "".join(c if c.isprintable() and c != "\\" else _escaped(c) for c in text)


def raw_path(shown: str) -> bytes:
    """The bytes that ``shown_path`` was made of."""
    if "\\" not in shown:
        return shown.encode("utf-8", "surrogateescape")
    parts: list[bytes] = []
    at = 0
    for match in _ESCAPE.finditer(shown):
        parts.append(shown[at : match.start()].encode("utf-8", "surrogateescape"))
        backslash, byte, short, long = match.groups()
        if backslash:
            parts.append(b"\\")
        elif byte:
            parts.append(bytes.fromhex(byte))
        else:
            parts.append(chr(min(int(short or long, 16), 0x10FFFF)).encode("utf-8", "surrogatepass"))
        at = match.end()
    parts.append(shown[at:].encode("utf-8", "surrogateescape"))
    return b"".join(parts)


def _escaped(character: str) -> str:
    code = ord(character)
    if character == "\\":
        return "\\\\"
    if code in _STRAY_BYTES:
        return f"\\x{code - 0xDC00:02x}"
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
