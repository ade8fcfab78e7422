"""The declarations, one for each grammar, and which of them reads which file."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ragpilot.ingest.chunkers.code.language import Language
from ragpilot.ingest.chunkers.code.languages.bash import BASH
from ragpilot.ingest.chunkers.code.languages.c_family import CPP, C
from ragpilot.ingest.chunkers.code.languages.csharp import CSHARP
from ragpilot.ingest.chunkers.code.languages.ecma import JAVASCRIPT, TSX, TYPESCRIPT
from ragpilot.ingest.chunkers.code.languages.go import GO
from ragpilot.ingest.chunkers.code.languages.java import JAVA
from ragpilot.ingest.chunkers.code.languages.kotlin import KOTLIN
from ragpilot.ingest.chunkers.code.languages.php import PHP
from ragpilot.ingest.chunkers.code.languages.python import CYTHON, PYTHON
from ragpilot.ingest.chunkers.code.languages.ruby import RUBY
from ragpilot.ingest.chunkers.code.languages.rust import RUST
from ragpilot.ingest.chunkers.code.languages.scala import SCALA
from ragpilot.ingest.chunkers.code.languages.swift import SWIFT

_BY_SOURCE_TYPE: Mapping[str, Language] = {
    "code-bash": BASH,
    "code-c": C,
    "code-cpp": CPP,
    "code-csharp": CSHARP,
    "code-go": GO,
    "code-java": JAVA,
    "code-javascript": JAVASCRIPT,
    "code-kotlin": KOTLIN,
    "code-php": PHP,
    "code-python": PYTHON,
    "code-ruby": RUBY,
    "code-rust": RUST,
    "code-scala": SCALA,
    "code-swift": SWIFT,
    "code-typescript": TYPESCRIPT,
}

LANGUAGES: tuple[Language, ...] = (*_BY_SOURCE_TYPE.values(), TSX, CYTHON)

_CPP_IN_A_HEADER = re.compile(r"^[ \t]*(?:namespace|class|template|using|public:|private:)\b|\w::\w", re.MULTILINE)


def language_for(source_type: str, path: str, text: str) -> Language | None:
    """The declaration that reads a file; None where there is none.

    JSX and angle-bracket casts exclude each other, so ``.tsx`` has a grammar of its own; a ``.h`` may be C++; and
    Cython is Python with types.
    """
    if source_type == "code-python" and path.endswith((".pyx", ".pxd", ".pxi")):
        return CYTHON
    if source_type == "code-typescript" and path.endswith(".tsx"):
        return TSX
    if source_type == "code-c" and path.endswith(".h") and _CPP_IN_A_HEADER.search(text):
        return CPP
    return _BY_SOURCE_TYPE.get(source_type)
