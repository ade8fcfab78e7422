"""Bytes to text: marks, declarations, UTF-8, then a guess; and whether they are text at all."""

from __future__ import annotations

import codecs
import re

from charset_normalizer import from_bytes

HEAD = 8192
"""Bytes that decide whether a file is text; a larger binary is never read further."""

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16: its mark begins with the same two bytes
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_MAGIC = (
    *(b"\x89PNG", b"\xff\xd8\xff", b"\x1aE\xdf\xa3", b"PK\x03\x04", b"PK\x05\x06", b"\x1f\x8b", b"\xfd7zXZ"),
    *(b"\x28\xb5\x2f\xfd", b"7z\xbc\xaf", b"\x7fELF", b"\xca\xfe\xba\xbe", b"\xcf\xfa\xed\xfe", b"\xce\xfa\xed\xfe"),
    *(b"\0asm", b"dex\n03", b"%PDF-", b"SQLite format 3\0", b"Obj\x01", b"\x89HDF", b"\x93NUMPY", b"\xd0\xcf\x11\xe0"),
    *(b"\0\0\x01\0", b"\0\x01\0\0", b"OTTO\0", b"bplist00", b"\x04\x22\x4d\x18", b"GIF87a", b"GIF89a"),
    b"!<arch>\n",
)
_MAGIC_WORDS = (
    *(b"RIFF", b"OggS", b"ID3", b"fLaC", b"wOFF", b"wOF2", b"BZh", b"Rar!", b"PAR1", b"GGUF"),
    b"LZIP",
)
"""What a text may begin with as well."""
_CONTROLS = bytes(code for code in range(32) if code not in b"\t\n\x0b\x0c\r\x08\x1b") + b"\x7f"
_MOST_CONTROLS = 0.02
_MOST_NULS = 0.05
_MOST_OF_A_FEW = 0.25
"""A few such bytes are let pass, unless there is little else."""
_DECLARATION = re.compile(
    rb"coding[:=]\s{0,8}([-\w.]{1,40})"
    rb"|<\?xml[^>]{0,200}\sencoding\s{0,8}=\s{0,8}[\"']([-\w.]{1,40})"
    rb"|<meta[^>]{0,200}charset\s{0,8}=\s{0,8}[\"']?([-\w.]{1,40})"
    rb"|^@charset\s{1,8}\"([-\w.]{1,40})\"",
    re.IGNORECASE,
)
_NO_TEXT = frozenset({"unicode_escape", "raw_unicode_escape", "utf-7", "idna", "punycode", "undefined", "charmap"})
_ESCAPING = ("iso2022", "hz")
"""Encodings whose bytes are all ASCII, so that UTF-8 seems to fit."""
_CANDIDATES = """
    cp1252 cp1250 iso8859_2 cp1251 koi8_r cp866 iso8859_5 cp1253 cp1254 cp1255 cp1256
    shift_jis cp932 euc_jp gb18030 big5 euc_kr cp437 cp850
""".split()
_SAMPLE = 16_384
_LEAST_WIDE = 32
"""Bytes that say enough of a script."""
_SPELLED = tuple(map(re.compile, ("[\u3040-\u30ff]", "[\uac00-\ud7a3]", "[\u0400-\u045f]", "[\u0370-\u03ff]")))
"""Kana, Hangul, Cyrillic, Greek."""
_USUAL = re.compile(
    "[\\t\\r\\n -~\xa0-\xff\u0370-\u045f\u2010-\u203b\u2190-\u22ff\u3000-\u30ff\u4e00-\u9fff\uac00-\ud7a3\uff01-\uff9f]"
)
_EURO = re.compile(rb"[0-9][ \xa0]?\xa4|\xa4[ \xa0]?[0-9]")
"""A price, where the sign is that of ISO 8859-15; what the same byte is in others stands before no number."""
_WINDOWS = re.compile(rb"[\x80-\x9f]")
_SURROGATE = re.compile("[\ud800-\udfff]")


def is_binary(head: bytes) -> bool:
    """Whether the first bytes of a file (up to ``HEAD``) belong to something that is no text."""
    if head.startswith(_MAGIC) or head[257:262] == b"ustar":
        return True
    if head.startswith(_MAGIC_WORDS) and not (_fits_utf8(head) and head.translate(None, _CONTROLS) == head):
        return True
    if marked_encoding(head) or wide_encoding(head):
        return False
    nuls = head.count(0)
    if nuls and (nuls > max(4, len(head) * _MOST_NULS) or not _fits_utf8(head.replace(b"\0", b""))):
        return True
    controls = len(head) - len(head.translate(None, _CONTROLS)) - nuls
    if controls + nuls > len(head) * _MOST_OF_A_FEW:
        return True
    return controls > max(2, len(head) * _MOST_CONTROLS)


def marked_encoding(data: bytes) -> str | None:
    """The encoding whose byte order mark begins ``data``."""
    return next((encoding for mark, encoding in _MARKS if data.startswith(mark)), None)


def wide_encoding(head: bytes) -> str | None:
    """UTF-16 without a mark: every other byte of western text is a NUL, and of other texts one of few values."""
    sample = head[: len(head) & ~1]
    if len(sample) < 4:
        return None
    even, odd = sample[::2].count(0), sample[1::2].count(0)
    half = len(sample) // 2
    if odd > half * 0.4 and even < half * 0.02:
        encoding = "utf-16-le"
    elif even > half * 0.4 and odd < half * 0.02:
        encoding = "utf-16-be"
    else:
        return _wide_script(sample, even, odd)
    text = sample.decode(encoding, "replace")
    readable = sum(character.isprintable() or character in "\t\r\n\f" for character in text)
    return encoding if readable > len(text) * 0.95 else None


def _wide_script(sample: bytes, even: int, odd: int) -> str | None:
    """UTF-16 of another script. Ends of lines and blanks say which half of a character stands first.

    Pairs of western letters would be Chinese characters: only what is spelled, as Japanese is in part, tells text from
    chance.
    """
    if len(sample) < _LEAST_WIDE or bool(even) == bool(odd):
        return None
    encoding = "utf-16-le" if odd else "utf-16-be"
    text = sample.decode(encoding, "replace")
    usual = len(_USUAL.findall(text))
    spelled = max(len(script.findall(text)) for script in _SPELLED)
    return encoding if usual > len(text) * 0.98 and spelled > len(text) * 0.2 else None


def decode(data: bytes) -> tuple[str, str] | None:
    """Text and the name of its encoding; None for what turns out to be no text.

    The text has no mark at its start, no NUL and no lone surrogate, and its lines end with LF, one for each line that
    git or an editor would count: CR LF is one end, a CR alone counts where the file has no LF at all.
    """
    found = _decode(data)
    if found is None:
        return None
    text, encoding = found
    text = text.lstrip("\ufeff").replace("\0", " ").replace("\r\n", "\n")
    if "\n" not in text:
        text = text.replace("\r", "\n")
    return text, encoding


def _decode(data: bytes) -> tuple[str, str] | None:
    wide = marked_encoding(data) or wide_encoding(data[:HEAD])
    if wide:
        return data.decode(wide, "replace"), wide
    declared = _declared(data[:1024])
    escaping = [declared] if declared and declared.startswith(_ESCAPING) else _escaping(data)
    for encoding in escaping:
        text = _strictly(data, encoding)
        if text is not None:
            return text, encoding
    text = _strictly(data, "utf-8")
    if text is not None:
        return text, "utf-8"
    if data.count(0):
        return None
    if declared and declared not in ("utf-8", "ascii"):
        text = _strictly(data, declared)
        if text is not None:
            return text, declared
    return _guess(data)


def _guess(data: bytes) -> tuple[str, str]:
    damaged = data.decode("utf-8", "replace")
    wrong = damaged.count("\ufffd")
    right = sum(not character.isascii() for character in damaged) - wrong
    if right >= 2 * wrong:  # by chance, other encodings hold few of its sequences
        return damaged, "utf-8"
    # Only lines that are not ASCII say anything, and few are enough.
    telling = b"\n".join(line for line in data[: 1 << 18].split(b"\n") if not line.isascii())[:_SAMPLE]
    best = from_bytes(telling, cp_isolation=_CANDIDATES).best()
    encoding = best.encoding if best is not None else "cp1252"
    if _strictly(telling, "cp1252") == telling.decode(encoding, "replace"):
        encoding = "iso8859_15" if _EURO.search(telling) and not _WINDOWS.search(telling) else "cp1252"
    text = _strictly(data, encoding)
    return (text, encoding) if text is not None else (data.decode(encoding, "replace"), encoding)


def _escaping(data: bytes) -> tuple[str, ...]:
    """Encodings of mail and old documents that change alphabets by escapes, of which UTF-8 makes control characters."""
    if b"\x1b$)C" in data[:1024]:
        return ("iso2022_kr",)
    return ("iso2022_jp_2",) if b"\x1b$B" in data[:HEAD] or b"\x1b$@" in data[:HEAD] else ()


def _declared(head: bytes) -> str | None:
    match = _DECLARATION.search(head)
    if match is None:
        return None
    name = next(group for group in match.groups() if group).decode("ascii", "replace")
    try:
        codec = codecs.lookup(name).name
        "".encode(codec)  # refuses codecs from bytes to bytes, such as zlib
    except (LookupError, ValueError):
        return None
    return None if codec.replace("-", "_") in _NO_TEXT or codec in _NO_TEXT else codec


def _strictly(data: bytes, encoding: str) -> str | None:
    try:
        text = data.decode(encoding)
    except (UnicodeError, ValueError):
        return None
    # Some legacy codecs let lone surrogates through; they could not be stored.
    return None if _SURROGATE.search(text) else text


def _fits_utf8(head: bytes) -> bool:
    """Whether ``head`` is UTF-8, the last character perhaps cut."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        decoder.decode(head)
    except UnicodeDecodeError:
        return False
    return True
