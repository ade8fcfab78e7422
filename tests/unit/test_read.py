"""Bytes to text, and what is worth indexing: encodings, binaries, source types, refusals."""

from __future__ import annotations

import gzip
import os
import random
import shutil
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragpilot.ingest import opening
from ragpilot.ingest.encodings import decode
from ragpilot.ingest.filters import refused_by_content, refused_by_name
from ragpilot.ingest.kinds import source_type
from ragpilot.ingest.long_rows import shortened
from ragpilot.ingest.read import RawFile, Refusal, content_hash, read_file, text_of
from ragpilot.ingest.reasons import Reason
from tests.linear import assert_linear

LIMIT = 1_000_000
NOISE = random.Random(1).randbytes(300_000)  # noqa: S311 - no secret depends on it


def read(folder: Path, data: bytes, name: str = "file.py", limit: int = LIMIT) -> RawFile | Refusal:
    (folder / name).write_bytes(data)
    return read_file(os.fsencode(folder / name), inside=os.fsencode(folder), max_bytes=limit)


def text(data: bytes) -> str:
    decoded = decode(data)
    assert decoded is not None
    return decoded[0]


# --- encodings


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


# --- files


@pytest.mark.parametrize(
    "data",
    [
        NOISE,
        gzip.compress(b"text " * 1000),
        b"\x89PNG\r\n\x1a\n" + b"looks like text",
        b"%PDF-1.7\n%text follows\n",
        b"PK\x03\x04mimetype",
        b"GIF89a all ASCII from here on",
        b"\0" * 500,
        b"\x01\x02\x03\x04\x05\x06 few letters \x0e\x0f" * 30,
        NOISE.replace(b"\0", b"\1"),
        b"#!/bin/sh\nexit 0\n" * 600 + NOISE,
        b"\0\1\2",
        b"ab\1",
    ],
    ids=[
        *(
            "noise",
            "gzip",
            "png",
            "pdf",
            "zip",
            "gif",
            "nuls",
            "controls",
            "noise without nul",
            "payload behind a head",
        ),
        *("three bytes", "a control of three"),
    ],
)
def test_binaries_are_told_by_content(data: bytes, tmp_path: Path) -> None:
    raw = read(tmp_path, data, "looks_like.py")
    refusal = raw if isinstance(raw, Refusal) else text_of(raw)
    assert refusal == Refusal(Reason.BINARY)


def test_a_large_binary_costs_its_first_bytes(tmp_path: Path) -> None:
    with (tmp_path / "search.index").open("wb") as file:
        file.write(NOISE)
        file.truncate(500_000_000)
    tracemalloc.start()
    found = read_file(os.fsencode(tmp_path / "search.index"), inside=os.fsencode(tmp_path), max_bytes=10**9)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found == Refusal(Reason.BINARY)
    assert peak < 1_000_000


def test_limits(tmp_path: Path) -> None:
    assert isinstance(read(tmp_path, b"x" * 2000, limit=2000), RawFile)
    refusal = read(tmp_path, b"x" * 2001, limit=2000)
    assert refusal == Refusal(Reason.TOO_LARGE, "2001 bytes, limit 2000")
    for blank in (b"", b"\n\n\n", b" \t\r\n"):
        assert read(tmp_path, blank) == Refusal(Reason.EMPTY)
    marked = read(tmp_path, b"\xef\xbb\xbf \n")
    assert isinstance(marked, RawFile)
    assert text_of(marked) == Refusal(Reason.EMPTY)


def test_what_took_the_place_of_a_file(tmp_path: Path) -> None:
    assert read_file(os.fsencode(tmp_path / "gone"), inside=os.fsencode(tmp_path), max_bytes=LIMIT) == Refusal(
        Reason.VANISHED
    )
    os.mkfifo(tmp_path / "pipe")
    assert read_file(os.fsencode(tmp_path / "pipe"), inside=os.fsencode(tmp_path), max_bytes=LIMIT) == Refusal(
        Reason.SPECIAL
    )
    (tmp_path / "folder").mkdir()
    assert read_file(os.fsencode(tmp_path / "folder"), inside=os.fsencode(tmp_path), max_bytes=LIMIT) == Refusal(
        Reason.SPECIAL
    )
    (tmp_path / "link").symlink_to(tmp_path / "file")
    (tmp_path / "file").write_text("x", encoding="utf-8")
    with pytest.raises(OSError, match="link"):
        read_file(os.fsencode(tmp_path / "link"), inside=os.fsencode(tmp_path), max_bytes=LIMIT)


@pytest.mark.parametrize("by_folders", [True, False])
def test_no_link_on_the_way_is_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_folders: bool) -> None:
    monkeypatch.setattr(opening, "_BY_FOLDERS", by_folders)
    root, outside = tmp_path / "root", tmp_path / "outside"
    (root / "a/b").mkdir(parents=True)
    (outside / "b").mkdir(parents=True)
    (root / "a/b/own.md").write_text("ours", encoding="utf-8")
    (outside / "b/own.md").write_text("theirs", encoding="utf-8")
    inside = os.fsencode(root)

    def read_own() -> RawFile | Refusal:
        return read_file(inside + b"/a/b/own.md", inside=inside, max_bytes=LIMIT)

    found = read_own()
    assert isinstance(found, RawFile)
    assert found.data == b"ours"
    for linked, target in (("a", outside), ("a/b", outside / "b"), ("a", root / "kept")):
        (root / linked).rename(root / "kept")
        (root / linked).symlink_to(target)
        assert read_own() == Refusal(Reason.SYMLINK, "a folder above it is a link")
        (root / linked).unlink()
        (root / "kept").rename(root / linked)
    shutil.rmtree(root / "a")
    (root / "a").write_text("a file", encoding="utf-8")
    assert read_own() == Refusal(Reason.VANISHED)
    # What is above the root is the operator's, links and all.
    (tmp_path / "by-link").symlink_to(root)
    (root / "top.md").write_text("top", encoding="utf-8")
    by_link = os.fsencode(tmp_path / "by-link")
    found = read_file(by_link + b"/top.md", inside=by_link, max_bytes=LIMIT)
    assert isinstance(found, RawFile)
    assert found.data == b"top"
    assert read_file(inside + b"/../outside/b/own.md", inside=inside, max_bytes=LIMIT) == Refusal(Reason.VANISHED)
    assert read_file(os.fsencode(outside / "b/own.md"), inside=inside, max_bytes=LIMIT) == Refusal(Reason.VANISHED)


def test_identity_is_the_content(tmp_path: Path) -> None:
    raw = read(tmp_path, b"a = 1\n")
    assert isinstance(raw, RawFile)
    assert (raw.content_hash, raw.size) == (content_hash(b"a = 1\n"), 6)
    assert raw.mtime_ns == (tmp_path / "file.py").stat().st_mtime_ns


# --- source types


@pytest.mark.parametrize(
    ("path", "head", "expected"),
    [
        ("src/a.py", "", "code-python"),
        ("a.tsx", "", "code-typescript"),
        ("a.d.ts", "", "code-typescript"),
        ("i18n/de.ts", "<?xml version='1.0'?><!DOCTYPE TS>", "config"),
        ("a.mjs", "", "code-javascript"),
        ("A.CS", "", "code-csharp"),
        ("a.h", "int f(void);\n", "code-c"),
        ("a.h", "namespace x {\nclass Y;\n}\n", "code-cpp"),
        ("a.h", "#import <X/X.h>\n@interface Y : NSObject\n", "code-objectivec"),
        ("bin/tool", "#!/usr/bin/env -S python3 -u\n", "code-python"),
        ("bin/tool", "#!/bin/bash\n", "code-bash"),
        ("bin/tool", "#!/usr/bin/env VAR=1 node\n", "code-javascript"),
        ("bin/tool", "#!/opt/strange\n", "docs-text"),
        ("app/card.component.html", "", "template"),
        ("Cart.vue", "", "template"),
        ("a.scss", "", "style"),
        ("README.md", "", "docs-markdown"),
        ("README", "", "docs-text"),
        ("docs/x.rst", "", "docs-text"),
        ("docs/x.adoc", "", "docs-text"),
        ("n.ipynb", "{}", "notebook"),
        ("Dockerfile", "", "config"),
        ("Dockerfile.prod", "", "config"),
        ("Makefile", "", "config"),
        (".env.example", "", "config"),
        (".eslintrc", "{}", "config"),
        ("requirements-dev.txt", "", "config"),
        ("notes.txt", "", "docs-text"),
        ("schema.sql", "", "data-schema"),
        ("x.proto", "", "data-schema"),
        ("x.graphql", "", "data-schema"),
        ("api.yaml", "# comment\nopenapi: 3.1.0\ninfo: {}\n", "api-spec"),
        ("api.yaml", "swagger: '2.0'\n", "api-spec"),
        ("api.json", '{\n  "openapi": "3.0.3",\n  "paths": {}}', "api-spec"),
        ("api.json", '{"info":{"title":"x"},"swagger":"2.0","paths":{}}', "api-spec"),
        ("values.yaml", "docs:\n  text: 'openapi: 3.0 is a format'\n", "config"),
        ("package.json", '{"dependencies": {"openapi": "3.0.0"}}', "config"),
        ("openapi.py", "openapi: 3.0\n", "code-python"),
        ("strange.xyz", "words", "docs-text"),
    ],
)
def test_source_types(path: str, head: str, expected: str) -> None:
    assert source_type(path, head) == expected


# --- refusals


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("package-lock.json", Reason.LOCK_FILE),
        ("a/go.sum", Reason.LOCK_FILE),
        ("uv.lock", Reason.LOCK_FILE),
        (".gitignore", Reason.IGNORE_FILE),
        ("a/.ragpilotignore", Reason.IGNORE_FILE),
        ("app.min.js", Reason.MINIFIED),
        ("api_pb2.py", Reason.GENERATED),
        ("api.pb.go", Reason.GENERATED),
        ("Form.Designer.cs", Reason.GENERATED),
        ("logo.svg", Reason.DATA),
        ("app.js.map", Reason.DATA),
        ("server.log", Reason.DATA),
    ],
)
def test_names_that_are_left_out(path: str, reason: Reason) -> None:
    refusal = refused_by_name(path)
    assert refusal is not None
    assert refusal.reason == reason


@pytest.mark.parametrize("path", ["min.js", "locks.py", "svg.py", "src/map.py", "log", "gitignore.md", "Cargo.toml"])
def test_names_that_are_not(path: str) -> None:
    assert refused_by_name(path) is None


CODE = "function area(width, height) {\n  return width * height;\n}\n"


@pytest.mark.parametrize(
    ("path", "content", "reason"),
    [
        ("a.js", ";".join(f"function f{i}(a,b){{return a+b}}" for i in range(2000)), Reason.MINIFIED),
        (
            "b.js",
            " * a licence\n" * 30 + ";".join(f"function f{i}(a,b){{return a+b}}" for i in range(900)),
            Reason.MINIFIED,
        ),
        ("a.css", "".join(f".c{i}{{margin:{i}px}}" for i in range(4000)), Reason.MINIFIED),
        ("a.go", "// Code generated by protoc-gen-go. DO NOT EDIT.\npackage a\n", Reason.GENERATED),
        ("a.py", "# Generated by the compiler.  DO NOT EDIT!\nx = 1\n", Reason.GENERATED),
        ("a.cs", "// <auto-generated>\n// x\n", Reason.GENERATED),
        ("a.ts", "/**\n * @generated SignedSource<<1>>\n */\n", Reason.GENERATED),
        ("a.json", "[" + ",".join(f'{{"id":{i},"at":{i}}}' for i in range(400)) + "]", Reason.DATA),
        ("a.json", "[" + ", ".join(f'{{"id": {i}, "at": {i}}}' for i in range(9000)) + "]", Reason.DATA),
        ("a.html", "".join(f"<li><a href=/x/{i}>{i}</a></li>" for i in range(400)), Reason.MINIFIED),
        ("table.py", "TABLE = [" + "1," * 60_000 + "]\n", Reason.DATA),
        ("icons.py", ('A = "' + "aZ3/" * 1_000 + '"\nB = 1\n') * 40, Reason.DATA),
        ("c.js", CODE * 40 + ";".join(f"function f{i}(a,b){{return a+b}}" for i in range(9000)), Reason.MINIFIED),
        ("c.css", "a {\n  b: c\n}\n" * 40 + "".join(f".c{i}{{margin:{i}px}}" for i in range(9000)), Reason.MINIFIED),
        ("deps.json", '{"name": "x", "lockfileVersion": 3}', Reason.LOCK_FILE),
        ("other.lock", "[[package]]\nname = 'x'\n" * 30, Reason.LOCK_FILE),
        ("rows.csv", "id,name\n" + "1,x\n" * 6000, Reason.DATA),
        ("rows.json", '[{"a": 1},\n' * 20_000, Reason.DATA),
        ("dump.sql", "INSERT INTO t VALUES (1, 'x');\n" * 2000, Reason.DATA),
        ("numbers.txt", "0.123 4.567 8.901\n" * 4000, Reason.DATA),
        ("picture.png", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", Reason.DATA),
    ],
)
def test_contents_that_are_left_out(path: str, content: str, reason: Reason) -> None:
    refusal = refused_by_content(path, content, source_type(path, content[:65_536]))
    assert refusal is not None
    assert refusal.reason == reason


@pytest.mark.parametrize(
    "header",
    [
        "// Code generated by protoc-gen-go. DO NOT EDIT.",
        "# Generated by the compiler.  DO NOT EDIT!",
        "# Generated by the protocol buffer compiler.  DO NOT EDIT!",
        "// <auto-generated>",
        " * @generated SignedSource<<1>>",
        "// @generated",
        "# @generated by autocargo",
        "/* Autogenerated by Thrift Compiler (0.9.3)",
        "// This file was automatically generated by Swift",
        "/* This file is auto-generated. */",
        "-- This file is generated by gen.py",
        "# This file has been automatically generated.",
        "/* Automatically generated by gen. Do not edit. */",
        "/* A Bison parser, made by GNU Bison 3.8.2.  */",
        "/* Generated by Cython 0.29.21 */",
        "// Generated from Expr.g4 by ANTLR 4.9",
        "# DO NOT EDIT! This file is generated.",
        "// DO NOT EDIT - generated by tool",
        "# AUTO-GENERATED FILE. DO NOT MODIFY.",
        "# WARNING: This file was auto-generated, do not edit",
        "// Generated file, do not edit",
        "// GENERATED CODE - DO NOT MODIFY BY HAND",
        "/* eslint-disable */ // @generated",
        "# THIS CODE IS GENERATED - DO NOT MODIFY",
        "// This code was generated by a tool.",
        "//     This code was generated by a tool.",
        "# Automatically generated by Pynguin.",
        "# Form implementation generated from reading ui file 'x.ui'",
        "// Automatically generated file. DO NOT EDIT",
        "/* DO NOT EDIT THIS FILE - it is machine generated */",
        "# Do not edit. Autogenerated.",
        "<!-- This file is generated. Do not edit. -->",
        "##### THIS FILE IS AUTOMATICALLY GENERATED #####",
        "# This file is @generated by PDM.",
        "// Generated by the gRPC C++ plugin.",
        '"""Generated protocol buffer code."""',
        "/* This is an automatically generated file. Do not edit. */",
        "// This file is autogenerated by Cargo",
        "/*\n * WARNING: do not edit!\n * Generated by Makefile from a.h.in\n */",
        '"""Shapes of the wire. Generated; do not edit."""',
        "/* WARNING: do not edit! */\n/* Generated by Makefile from a.h.in */",
        "// Code generated by x.\n//\n// DO NOT EDIT.",
        "// shop/orders.ts @generated\n// from orders.proto",
    ],
)
def test_headers_of_generated_files(header: str) -> None:
    refusal = refused_by_content("a.py", f"{header}\nx = 1\n", "code-other")
    assert refusal is not None
    assert refusal.reason == Reason.GENERATED


@pytest.mark.parametrize(
    "comment",
    [
        "# This module handles auto-generated reports. Do not edit them by hand.",
        '// We do not edit generated code; this is "@generated"-aware.',
        "# Skips files that are marked @generated, as linters do",
        '# Files with "Code generated by x. DO NOT EDIT." are skipped.',
        "# Tests for code that was generated by protoc; do not edit the snapshots",
        '"""Writes files marked as generated."""',
        "# Checks whether this file is generated",
        "# If this file was generated, skip it.",
        "// The generated files say do not edit.",
        "# reports are automatically generated by the nightly job",
        "# Looks for @generated in headers.",
        "# Don't change the way ids are generated",
        "# do not modify: ids generated here are stored",
        "# Do not edit generated files by hand: run the tool.",
    ],
)
def test_comments_that_speak_of_generated_code(comment: str) -> None:
    assert refused_by_content("a.py", f"{comment}\nx = 1\n", "code-other") is None


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("a.js", CODE * 200),
        ("a.js", CODE * 200 + "const icon = 'data:image/png;base64," + "A" * 9000 + "';\n"),
        ("icon.py", "ICON = '" + "A" * 40_000 + "'\n" + "def area(width, height):\n    return width * height\n" * 8),
        ("large.py", '"""Icons."""\nICON = "' + "aZ3/" * 20_000 + '"\n' + "def area(w, h):\n    return w * h\n" * 41),
        ("large.js", CODE * 41 + "const icon = 'data:image/png;base64," + "aZ3/" * 20_000 + "';\n"),
        ("words.js", CODE * 41 + "const words = [" + '"word","more",' * 8_000 + "];\n"),
        (
            "table.py",
            "TABLE = [" + "1, " * 60_000 + "]\n" + "def area(width, height):\n    return width * height\n" * 8,
        ),
        (
            "a.html",
            "<html>\n<body>\n<img src='data:image/png;base64," + "aZ3/" * 9_000 + "'>\n<p>a</p>\n</body>\n</html>\n",
        ),
        ("map.yaml", "name: x\n" * 20 + "image: " + "aZ3/" * 70_000 + "\n"),
        ("deep.md", "\n".join(">" * at + " quote" for at in range(1, 400)) + "\n"),
        ("ruled.py", ("# " + "=" * 3000 + "\ndef after_rule():\n    return 1\n") * 3),
        ("gen.py", "HEADER = '// Code generated by gen. DO NOT EDIT.'\n"),
        ("gen.py", '"""Writes files marked as generated."""\nMARK = "@generated"\n'),
        ("Makefile", "### DO NOT EDIT BELOW THIS LINE\nall:\n"),
        ("README.md", "# Generated files: do not edit\n"),
        ("prose.md", ("A paragraph on one line, as many write them. " * 60 + "\n\n") * 20),
        ("few.csv", "id,name\n1,x\n"),
        ("nested.py", "\n".join("    " * at + "if value:" for at in range(400)) + "\n" + "    " * 400 + "pass\n"),
        ("nested.py", "value = " + "[" * 1500 + "1" + "]" * 1500 + "\n"),
        ("nested.js", "\n".join("  " * at + "if (value) {" for at in range(600)) + "\n" + "}" * 600 + "\n"),
        ("page.html", "<html><body><p>" + "Orders are shipped on the day they come in. " * 90 + "</p></body></html>"),
        ("schema.sql", "CREATE TABLE t (id INT);\n" * 2000),
        ("api.json", '{"openapi": "3.0.0", "paths": {' + " " * 300_000 + "}}"),
        ("n.ipynb", "{" + "x" * 200_000 + "}"),
        ("migrations/0001.py", "# Generated by Django 4.2 on 2024-01-01 10:00\nfrom django.db import models\n"),
    ],
)
def test_contents_that_are_kept(path: str, content: str) -> None:
    assert refused_by_content(path, content, source_type(path, content[:65_536])) is None


def test_runs_of_data_are_cut_and_rows_keep_their_numbers() -> None:
    picture, table = "aZ3/" * 20_000, "1.5, -2, 0x1f, " * 500
    code = f'def before():\n    return 1\nICON = "{picture}"\nTABLE = [{table}]\ndef after():\n    return 2\n'
    short = shortened(code, "code-python")
    rows = short.split("\n")
    assert (rows[0], rows[4:]) == ("def before():", ["def after():", "    return 2", ""])
    assert rows[2] == f'ICON = "{picture[:60]}…"'
    assert rows[3] == f"TABLE = [{table[:60]}…]"
    assert shortened(code, "notebook") == code


@pytest.mark.parametrize(
    "row",
    [
        " " * 1600 + "deeply_nested()",
        "A sentence of many words, as people write them. " * 60,
        "names = {" + ", ".join(f"'name_{at}'" for at in range(400)) + "}",
        "日本語の文章" * 300,
        "x = '" + "aZ3/" * 150 + "'",
    ],
)
def test_long_rows_that_are_no_data_stay(row: str) -> None:
    assert shortened(row, "code-python") == row
