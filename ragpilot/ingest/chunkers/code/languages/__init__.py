"""The declarations, one for each grammar, and which of them reads which file."""

from __future__ import annotations

from collections.abc import Mapping

from ragpilot.ingest.chunkers.code.language import Language
from ragpilot.ingest.chunkers.code.languages.python import PYTHON

LANGUAGES: tuple[Language, ...] = (PYTHON,)

_BY_SOURCE_TYPE: Mapping[str, Language] = {"code-python": PYTHON}


def language_for(source_type: str, path: str) -> Language | None:  # noqa: ARG001
    """The declaration that reads a file; None where there is none."""
    return _BY_SOURCE_TYPE.get(source_type)
