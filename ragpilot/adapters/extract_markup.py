"""Markdown that shows text of files as it is: fences, spans and headings that no content can break out of."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ragpilot.types import Chunk

WIDEST = 160
"""Characters of a code line that are shown."""
LONGEST = 50_000
"""Characters of a line that are looked at."""
NEAR = 20
"""How far on a word may begin for a cut to wait for it."""
CUT = "…"

_BREAK = re.compile(r"\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
# What a terminal obeys instead of showing it, what turns the direction of text, and halves of surrogate pairs.
_CONTROL = re.compile("[\0-\x08\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
_RISKY_IN_A_NAME = re.compile(r"[\\`*\[\]<>&~]|(?<!\w)_|_(?!\w)")
_WORD_BEGINS = re.compile(r"\W(?=\w)")
_SUFFIX = re.compile(r"[^./]+$")


def _table(text: str) -> dict[str, str]:
    """``value: key key`` lines as key -> value."""
    pairs = (line.split(":") for line in text.strip().splitlines())
    return {key: value.strip() for value, keys in pairs for key in keys.split()}


_BY_SOURCE_TYPE = _table("""
    html: code-vue code-svelte template
    vbnet: code-visualbasic
    objective-c: code-objectivec
    python: code-starlark
    common-lisp: code-lisp
    nasm: code-assembly
    delphi: code-pascal
    css: style
    markdown: docs-markdown
    text: api-spec notebook
""")
_BY_SUFFIX = _table("""
    tsx: tsx
    jsx: jsx
    scss: scss
    sass: sass
    less: less
    rst: rst
    toml: toml
    yaml: yaml yml
    json: json json5 jsonc avsc
    ini: ini cfg conf config properties env editorconfig
    xml: xml csproj fsproj vbproj props targets resx pom plist xsd wsdl
    sql: sql ddl
    graphql: graphql gql graphqls
    protobuf: proto
    makefile: makefile mk
    cmake: cmake
    dockerfile: dockerfile
""")
_SIGNS = {
    **dict.fromkeys(("text", "rst", "json", "markdown"), ""),
    **dict.fromkeys(
        "python ruby bash yaml toml ini r perl elixir julia nim makefile cmake dockerfile terraform graphql "
        "powershell tcl awk sh shell console zsh py rb yml".split(),
        "#",
    ),
    **dict.fromkeys(("sql", "lua", "haskell"), "--"),
    **dict.fromkeys(("common-lisp", "clojure", "nasm"), ";"),
    **dict.fromkeys(("html", "xml"), "<!-- -->"),
    "css": "/* */",
    "ocaml": "(* *)",
    "erlang": "%",
    "vbnet": "'",
    "fortran": "!",
    "batch": "rem",
}
"""What opens a comment, by language; ``//`` for those that are not named."""


def clean_lines(text: str) -> list[str]:
    """The lines of ``text`` at any kind of break, without blank ones at either end, controls made visible as ``�``."""
    lines = [_CONTROL.sub("\ufffd", shortened(line, LONGEST)) for line in _BREAK.split(text)]
    while lines and not lines[-1].strip():
        lines.pop()
    first = next((at for at, line in enumerate(lines) if line.strip()), 0)
    return lines[first:]


def one_line(text: str) -> str:
    """``text`` in one line, controls made visible."""
    return " ".join(" ".join(clean_lines(text)).split())


def language_of(chunk: Chunk) -> str:
    """What a fence around the chunk's text is labelled with, by the names that highlighters know."""
    found = _SUFFIX.search(chunk.path.lower())
    suffix = found.group() if found else ""
    source_type = chunk.source_type
    if not source_type.startswith("code-") or suffix in ("tsx", "jsx"):
        by_suffix = _BY_SUFFIX.get(suffix)
        if by_suffix and source_type not in ("api-spec", "notebook"):
            return by_suffix
    language = _BY_SOURCE_TYPE.get(source_type, source_type.removeprefix("code-"))
    return language if source_type.startswith("code-") or source_type in _BY_SOURCE_TYPE else "text"


def comment_sign(language: str) -> str:
    """What opens a comment; ``""`` where a language has none."""
    return _SIGNS.get(language, "//").partition(" ")[0]


def gap_mark(language: str) -> str:
    """A line that stands for lines left out: a comment of nothing but ``…``."""
    opening, _, closing = _SIGNS.get(language, "//").partition(" ")
    return " ".join(part for part in (opening, CUT, closing) if part)


def fenced(lines: Sequence[str], language: str) -> list[str]:
    """``lines`` in a fence longer than any run of backticks in them."""
    longest = max((len(run) for line in lines for run in re.findall("`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    return [fence + language, *lines, fence]


def code_span(text: str) -> str:
    """``text`` as inline code, whatever backticks it holds."""
    text = one_line(text)
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    ticks, pad = "`" * (longest + 1), " " if longest else ""
    return f"{ticks}{pad}{text}{pad}{ticks}"


def name_span(name: str) -> str:
    """A symbol or a title in bold; as code where signs of it could be taken for Markdown."""
    name = shortened(one_line(name), 90)
    return f"**{code_span(name)}**" if _RISKY_IN_A_NAME.search(name) else f"**{name}**"


def shortened(text: str, width: int) -> str:
    """``text`` cut to ``width`` characters, the mark included."""
    return text if len(text) <= width else text[: width - 1].rstrip() + CUT


def around(text: str, width: int, place: int) -> str:
    """About ``width`` characters of ``text`` with what stands at ``place`` among them, marked where it is cut.

    From the beginning where that reaches far enough, else from the beginning of a word where one is near.
    """
    start = place - width // 3 if place > width // 2 else 0
    if start + width > len(text):
        start = max(0, len(text) - width + 1) if len(text) > width else 0
    if start and (word := _WORD_BEGINS.search(text, start - 1, min(place, start + NEAR) + 1)):
        start = word.end()
    head = CUT if start else ""
    return head + shortened(text[start:], width - len(head))
