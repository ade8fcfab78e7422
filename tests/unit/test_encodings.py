"""Bytes to text, whatever they are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragpilot.ingest.encodings import decode
from tests.linear import assert_linear

LIMIT = 1_000_000


def text(data: bytes) -> str:
    decoded = decode(data)
    assert decoded is not None
    return decoded[0]


@pytest.mark.parametrize(
    ("data", "expected", "encoding"),
    [
        ("x = 'é 漢'\n".encode(), "x = 'é 漢'\n", "utf-8"),
        (b"\xef\xbb\xbfexport function first() {}\n", "export function first() {}\n", "utf-8"),
        (b"\xff\xfe" + "Zähler\r\n".encode("utf-16-le"), "Zähler\n", "utf-16-le"),
        (b"\xfe\xff" + "Größe\n".encode("utf-16-be"), "Größe\n", "utf-16-be"),
        (b"\xff\xfe\0\0" + "wide\n".encode("utf-32-le"), "wide\n", "utf-32-le"),
        ("no mark, two bytes\r\n".encode("utf-16-le"), "no mark, two bytes\n", "utf-16-le"),
        ("no mark, other way\n".encode("utf-16-be"), "no mark, other way\n", "utf-16-be"),
        ("日本語の文章です。注文を処理します。\n".encode("utf-16-le"), "注文を処理", "utf-16-le"),
        ("日本語の文章です。注文を処理します。\n".encode("utf-16-be"), "注文を処理", "utf-16-be"),
        ("Обработка заказа и возврата\n".encode("utf-16-le"), "возврата\n", "utf-16-le"),
        ("주문을 처리하는 함수의 설명서입니다.\n".encode("utf-16-le"), "처리하는 함수", "utf-16-le"),
        ("# Prix en été: 5 \u20ac\n".encode("iso8859-15"), "été: 5 \u20ac\n", "iso8859_15"),
        (b"# -*- coding: cp1252 -*-\nL = '\x93quoted\x94'\n", "# -*- coding: cp1252 -*-\nL = '“quoted”'\n", "cp1252"),
        (b"<?xml version='1.0' encoding='ISO-8859-2'?>\n<a>\xb1</a>\n", "<a>ą</a>", "iso8859-2"),
        (b'<html><head><meta charset="windows-1251">\xcf\xf0\xe8\xe2\xe5\xf2</head>', "Привет", "cp1251"),
        ("# coding: iso2022_jp\n# 日本語\n".encode("iso2022_jp"), "日本語", "iso2022_jp"),
        ("これは手順です。\n".encode("iso2022_jp"), "これは手順です。\n", "iso2022_jp_2"),
        ("이것은 절차입니다.\n".encode("iso2022_kr"), "이것은 절차입니다.\n", "iso2022_kr"),
        (b"\xef\xbb\xbf\xef\xbb\xbftwice\n", "twice\n", "utf-8"),
        ("/* prix en euros: été */\nint x;\n".encode("latin-1"), "été", "cp1252"),
        ("// Prüft die Größe\n".encode("cp1252"), "// Prüft die Größe\n", "cp1252"),
        ("# 日本語のコメントです\nx = 1\n".encode("shift_jis"), "日本語のコメントです", "cp932"),
        ("// Инициализация настроек из файла\n".encode("cp1251"), "Инициализация настроек", "cp1251"),
        ("// 初始化配置文件，读取参数\n".encode("gbk"), "初始化配置文件，读取参数", "gb18030"),
    ],
)
def test_encodings(data: bytes, expected: str, encoding: str) -> None:
    decoded = decode(data)
    assert decoded is not None
    assert expected in decoded[0]
    assert decoded[1] == encoding


def test_utf8_with_a_damaged_byte_stays_utf8() -> None:
    assert text("größe\n".encode() + b"\xc3") == "größe\n\ufffd"
    assert text("größer, höher, äußerst übel\n".encode() + b"\xb1\n") == "größer, höher, äußerst übel\n\ufffd\n"


@pytest.mark.parametrize("name", ["unicode_escape", "utf-7", "zlib", "rot13", "no-such-codec", "idna"])
def test_declarations_that_name_no_text_encoding_are_passed_over(name: str) -> None:
    assert text(f"# coding: {name}\nx = '\\n'\n".encode()) == f"# coding: {name}\nx = '\\n'\n"


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"a\nb\n", ["a", "b", ""]),
        (b"a\r\nb\r\n", ["a", "b", ""]),
        (b"a\rb\r", ["a", "b", ""]),
        (b"a\nb\r\nc\n", ["a", "b", "c", ""]),
        (b"a\x0cb\n", ["a\x0cb", ""]),
        ("a\u2028b\x85c\n".encode(), ["a\u2028b\x85c", ""]),
        (b"a\n50%\r100%\n", ["a", "50%\r100%", ""]),
    ],
)
def test_lines_are_those_of_git_and_editors(data: bytes, lines: list[str]) -> None:
    assert text(data).split("\n") == lines


def test_a_few_nuls_are_no_text_and_do_not_hide_the_rest() -> None:
    assert text(b"def before(): pass\n\0\0\ndef after(): pass\n") == "def before(): pass\n  \ndef after(): pass\n"
    late = b"x = 1\n" * 4000 + b"\0" + b"y = 2\n"
    assert "\0" not in text(late)


@given(st.binary(max_size=3000))
def test_whatever_the_bytes_the_text_can_be_stored(data: bytes) -> None:
    decoded = decode(data)
    if decoded is not None:
        decoded[0].encode("utf-8")
        assert "\0" not in decoded[0]


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252", "utf-16"])
def test_decoding_takes_linear_time(encoding: str) -> None:
    lines = "// Prüft die Größe der Übergabe für die Straße\nint xyz = compute(a, b);\n" * 12_000
    assert "Größe" in text(lines.encode(encoding)[:LIMIT])
    assert_linear(lambda part: text(part.encode(encoding)), lines[: LIMIT // 2])
