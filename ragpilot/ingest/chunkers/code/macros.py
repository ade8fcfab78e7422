"""What the preprocessor makes of C and C++ and a grammar, which runs none, takes for errors in the code around it.

It is blanked before the parser sees it, byte for byte, so that every place stays what it is; what is shown and searched
is the text as it stands. Only what is written as macros are counts, and only where it can be nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ragpilot.ingest.chunkers.code.conditionals import blank, without_fragments

_MACRO = (
    rb"(?:[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|WINAPI|CALLBACK|APIENTRY|(?:FORCE|NO|ALWAYS)?INLINE|(?:DLL)?(?:EXPORT|IMPORT)"
    rb"|NODISCARD|NORETURN|NOEXCEPT|OVERRIDE|CONSTEXPR|DEPRECATED|UNUSED|FINAL|HIDDEN|VISIBLE)\b"
)
_ARGUMENTS = rb"\((?:[^()\n]|\((?:[^()\n]|\([^()\n]{0,200}\)){0,200}\)){0,400}\)"
_CALL = rb"%b(?:%b)?" % (_MACRO, _ARGUMENTS)
_KEYWORD = (
    rb"(?:class|struct|union|enum|auto|void|bool|char|int|short|long|float|double|unsigned|signed|constexpr|static|inline"
    rb"|virtual|explicit|extern|friend|typedef|typename|template|using|namespace|decltype)\b"
)
_TWO_NAMES = rb"[A-Za-z_][\w:]{0,100}(?:<[^<>;{}\n]{0,100}>)?[ \t*&]{1,40}[A-Za-z_~]"

_C_LINKAGE = re.compile(
    rb"^(?P<begin>[ \t]*extern[ \t]+\"C(?:\+\+)?\"[ \t]*\{[ \t]*)\r?$(?=\n[ \t]*#[ \t]*endif)"
    rb"|^[ \t]*#[ \t]*if[^\n]{1,40}cplusplus[^\n]*\n(?P<end>[ \t]*\}[^\n{}]{0,80})$(?=\n[ \t]*#[ \t]*endif)",
    re.MULTILINE,
)
"""What makes a header's braces unequal: ``extern "C" {`` between ``#ifdef __cplusplus`` and ``#endif``, and its end."""
_LONG_DEFINITION = re.compile(rb"^[ \t]*#[ \t]*define\b[^\n]*\\\r?\n(?:[^\n]*\\\r?\n)*[^\n]*", re.MULTILINE)
_COMMENT = re.compile(rb"/\*[^\n]*?\*/")
"""Inside a definition of several rows a comment is its end to the grammar, and what follows is an error."""
_PLACES = (
    # Conditions, which hold whatever a compiler can say: #if __has_include(<x>) && \\ …
    rb"^[ \t]*#[ \t]*(?:el)?if\b(?P<condition>[ \t(!](?:[^\n\\]|\\\r?\n|\\)*)$",
    # How a function is called: int WINAPI f(void).
    rb"(?P<it>\b(?:WINAPI|WSAAPI|NTAPI|CALLBACK|APIENTRY|STDCALL|__stdcall|__cdecl|__fastcall)\b)"
    rb"(?=[ \t*]{1,8}\w+\s*[()])",
    # Before a declaration: API_EXPORT int f().
    rb"(?<![\w.>:\"(,=<#])(?P<it>%b)[ \t]{1,40}(?=%b|%b)" % (_CALL, _KEYWORD, _TWO_NAMES),
    # Before a constructor or a destructor: CONSTEXPR_IF stack(int size).
    rb"(?:^|[;{}>])[ \t]{0,80}(?:(?:constexpr|explicit|inline|virtual|static)[ \t]{1,8}){0,3}(?P<it>%b)\s{1,40}"
    rb"(?=~?[A-Za-z_]\w{0,80}\(|operator\b)" % _CALL,
    # An array's reference as a template's default, and the word that tells a compiler that a member is a template.
    rb"^[^\n;{}()]{1,200}=[ \t]*\w{1,80}(?P<it>[ \t]*\(&\)[ \t]*\[\w*\])(?=[ \t]*[,>])",
    rb"(?:\.|->)[ \t]*(?P<it>template)(?=[ \t]+\w)",
    # What is instantiated elsewhere, and declares nothing here.
    rb"^[ \t]*(?P<it>extern[ \t]{1,8}template\b[^;{}]{0,400};)",
    # Between a keyword and a name: class API_EXPORT Stack; if CONSTEXPR_IF (…).
    rb"\b(?:class|struct|union|enum)[ \t]{1,8}(?P<it>%b)[ \t]{1,8}(?=[A-Za-z_])" % _CALL,
    rb"\bif[ \t]{1,8}(?P<it>%b)[ \t]{0,8}(?=\()" % _MACRO,
    # In place of a word that makes a block: TRY {; CATCH(...) {; and of one that opens a section: PRIVATE_IF_TESTED:.
    rb"^[ \t]+(?P<it>%b)(?=[ \t]*\{)" % _MACRO,
    rb"^[ \t]+(?:\}[ \t]*)?(?P<it>%b[ \t]{0,8}\([^()\n\";]{0,200}(?:&|\*|\.\.\.)[^()\n\";]{0,80}\))(?=\s{0,80}\{)"
    % _MACRO,
    # A reference without a name: CHECK_THROWS_AS(f(), std::exception&), which is no expression.
    rb"(?<=[\w>])[ \t]?(?P<it>&{1,2})(?=[ \t]?\))",
    rb"^[ \t]*(?P<it>(?:%b|signals|Q_SIGNALS)[ \t]{0,8}:)[ \t]*\r?$" % _MACRO,
    rb"^[ \t]*(?:public|protected|private)[ \t]{1,8}(?P<it>slots|Q_SLOTS)[ \t]{0,8}(?=:)",
    # Behind a list of parameters: void f() API_NOEXCEPT {.
    rb"\)[ \t]{0,8}(?:const[ \t]{1,8})?(?P<it>%b)\s{0,40}(?=[{;=]|->)" % _CALL,
)
_EXPRESSIONS = tuple(re.compile(place, re.MULTILINE) for place in _PLACES)
_ALONE = re.compile(rb"^[ \t]*(?P<it>%b(?:[ \t]{0,8}%b)?)[ \t]*(?://[^\n]*)?\r?$" % (_MACRO, _ARGUMENTS), re.MULTILINE)
"""A row of its own: ``FMT_BEGIN_EXPORT``, ``Q_PROPERTY(int x READ x)``."""
_PARAMETER = re.compile(rb",\s{0,80}%b\(" % _MACRO)
"""A parameter of a template: ``template <class T, ENABLE_IF(is_integral<T>)>``."""

_AROUND = re.compile(
    rb"^[ \t]*(?:%b[ \t]{1,8}){0,2}%b\(\s{0,80}(?=[^\"]{1,200}?\w[ \t*]{1,20}\w{1,80}[ \t]{0,20}\()" % (_MACRO, _MACRO),
    re.MULTILINE,
)
"""Around a declaration: ``DEPRECATED(int f(int x), "use g");``, ``EXPORT_IF(void f(int x)) {``."""
_TAIL = re.compile(rb",[ \t]{0,8}(?://[^\n]{0,200})?\s{0,200}\"(?:[^\"\\\n]|\\.){0,400}\"\s{0,40}\)$")
_BODY = re.compile(rb"\s{0,80}\{|;")
_BRACKET = re.compile(rb"[()]")

_STRING = rb"\"(?:[^\"\\\n]|\\.){0,400}\""
_TEST_CASE = re.compile(
    rb"^[ \t]*(?:[A-Z]+_)?(?:TEST_CASE|SCENARIO)\w{0,40}"
    rb"(?P<it>\((?:[^(){};\"]|\([^(){};\"]{0,80}\)|%b){0,400}\))(?=\s{0,80}\{)" % _STRING,
    re.MULTILINE,
)
_DECORATED = re.compile(rb"[ \t]*\*[^,]*(?=\)\Z)")
_CALLED_OPERATOR = re.compile(rb"(?:->|\.)operator[ \t]?(?P<it>\[\]|\(\)|[-+*/%<>=!&|^]{1,3})(?=\()")
"""``map->operator[](key)``: to a grammar a member's call, once it looks like a name."""
_TEXT = re.compile(_STRING)
"""``TEST_CASE("pops, last first", "[stack]") {``: to a grammar a function, once its texts look like names."""

_GOES_ON = (b",", b"(", b"=", b"+", b"-", b"|", b"&", b"<", b"?", b"\\", b"*")
"""What ends a row that is not yet the end of a statement."""
_CONTINUES = (b"}", b")", b",", b"{", b"|", b"&", b"+", b"-", b"?", b"=", b"<", b";", b":", b".")
"""What begins a row that goes on with the one before."""
_ROW_COMMENT = re.compile(rb"//[^\n]*")
_NEAR = 400
_LONGEST_CALL = 1_000


def without_macros(data: bytes) -> bytes:
    """The same bytes, with what the preprocessor would take away or make into something else replaced by blanks."""
    found = bytearray(data)
    for definition in _LONG_DEFINITION.finditer(data):
        for comment in _COMMENT.finditer(data, *definition.span()):
            blank(found, *comment.span())
    for match in _C_LINKAGE.finditer(data):
        blank(found, *match.span(match.lastgroup or 0))
    data = without_fragments(bytes(found))
    found = bytearray(data)
    for start, end in _calls(data):
        blank(found, start, end)
    for case in list(_TEST_CASE.finditer(data)):
        if (decorated := _DECORATED.search(case["it"])) is not None:  # TEST_CASE("pops" * skip()) {
            blank(found, case.start("it") + decorated.start(), case.start("it") + decorated.end())
        for text in _TEXT.finditer(data, *case.span("it")):
            found[text.start() : text.end()] = b"_" * (text.end() - text.start())
    for operator in _CALLED_OPERATOR.finditer(data):
        found[operator.start("it") : operator.end("it")] = b"_" * len(operator["it"])
    for expression in _EXPRESSIONS:
        for match in list(expression.finditer(found)):
            if match.lastgroup == "condition":
                blank(found, *match.span("condition"))
                found[match.start("condition") + 1] = ord("1")
            elif not _is_directive(found, match.start("it")):
                blank(found, *match.span("it"))
    for start, end in list(_alone(bytes(found))):
        blank(found, start, end)
    return bytes(found)


def _is_directive(data: bytearray, at: int) -> bool:
    near = max(0, at - _NEAR)
    row = max(near, data.rfind(b"\n", near, at) + 1)
    return data[row:at].lstrip().startswith(b"#")


def _alone(data: bytes) -> Iterator[tuple[int, int]]:
    for match in _ALONE.finditer(data):
        before = _ROW_COMMENT.sub(b"", data[max(0, match.start() - _NEAR) : match.start()]).rstrip()[-1:]
        behind = data[match.end() : match.end() + _NEAR].lstrip()[:1]
        opens_a_block = behind == b"{" and not match["it"].endswith(b")") and before in (b";", b"{", b"}")
        ends_a_block = behind == b"}" and match["it"].endswith(b")") and before in (b";", b"}")
        if before not in _GOES_ON and (behind not in _CONTINUES or opens_a_block or ends_a_block):
            yield match.span("it")


def _calls(data: bytes) -> Iterator[tuple[int, int]]:
    """Calls among a template's parameters, and what is left and right of a declaration inside a call."""
    parameters, around = list(_PARAMETER.finditer(data)), list(_AROUND.finditer(data))
    closing = _closing(data) if parameters or around else {}
    for match in parameters:
        end = closing.get(match.end() - 1, 0)
        if 0 < end < match.end() + _LONGEST_CALL and data[end : end + 40].lstrip()[:1] in (b",", b">"):
            yield match.start(), end
    for match in around:
        end = closing.get(data.rindex(b"(", match.start(), match.end()), 0)
        if not 0 < end < match.end() + _LONGEST_CALL:
            continue
        if _BODY.match(data, end) and data[end - 2 : end - 1] == b")":
            yield match.span()
            yield end - 1, end
            continue
        start = max(match.end(), end - _NEAR)
        if data[end : end + 1] == b";" and (tail := _TAIL.search(data, start, end)) is not None:
            yield match.span()
            yield tail.span()


def _closing(data: bytes) -> dict[int, int]:
    """Where each bracket is closed."""
    closing: dict[int, int] = {}
    opened: list[int] = []
    for bracket in _BRACKET.finditer(data):
        if bracket.group() == b"(":
            opened.append(bracket.start())
        elif opened:
            closing[opened.pop()] = bracket.end()
    return closing
