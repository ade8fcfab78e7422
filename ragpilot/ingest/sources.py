"""The files behind the index: where they lie, and their text as it would be indexed."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from ragpilot.config import CorpusSettings, IngestSettings
from ragpilot.ingest.access_files import is_access_file
from ragpilot.ingest.prepare import size_limit
from ragpilot.ingest.read import Refusal, read_file, text_of
from ragpilot.ingest.roots import Root, known_roots, locate, place_of
from ragpilot.ingest.secrets import redact
from ragpilot.ingest.secrets.file_names import is_secret_file


class SourceFiles:
    """Looks up the files of configured corpora. Its calls block, and never raise for what a file is."""

    def __init__(self, corpora: Iterable[CorpusSettings], settings: IngestSettings) -> None:
        self._roots: dict[str, tuple[Root, ...]] = {}
        self._corpora = {corpus.name: corpus for corpus in corpora}
        self._settings = settings

    def locate(self, corpus: str, path: str) -> Path | None:
        """Where the file of ``path`` lies, or lay before it went; None where its root is not on this machine."""
        return place_of(self._roots_of(corpus), path)

    def read_text(self, corpus: str, path: str) -> str | None:
        """Decoded, secrets replaced; None for what a run would leave out by its kind."""
        roots = self._roots_of(corpus)
        file = None if is_secret_file(path) else locate(roots, path)
        if file is None:
            return None
        try:
            root = next(os.fsencode(root.folder) for root in roots if file.is_relative_to(root.folder))
            raw = read_file(os.fsencode(file), inside=root, max_bytes=size_limit(path, self._settings))
        except (OSError, ValueError):
            return None
        text = raw if isinstance(raw, Refusal) else text_of(raw)
        return None if isinstance(text, Refusal) or is_access_file(path, text) else redact(text)[0]

    def _roots_of(self, corpus: str) -> tuple[Root, ...]:
        if corpus not in self._roots:
            known = self._corpora.get(corpus)
            self._roots[corpus] = known_roots(known) if known is not None else ()
        return self._roots[corpus]
